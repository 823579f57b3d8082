//! The claims of an engine that one process has to itself. They live in memory: a start voids them all.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use payments_core::Timestamp;

use super::{Claim, Lease, ServerId, StoreError, Work};

/// Who works on what.
#[derive(Default)]
pub(crate) struct Leases(Mutex<Table>);

#[derive(Default)]
struct Table {
    held: HashMap<Work, Held>,
    last_epoch: u64,
}

struct Held {
    server: ServerId,
    epoch: u64,
    until: Timestamp,
}

impl Leases {
    /// Claims a piece of work, unless somebody's lease on it runs.
    pub(crate) fn claim(&self, work: Work, lease: &Lease) -> Option<Claim> {
        let mut table = self.lock();
        if table.held.get(&work).is_some_and(|held| held.until > lease.now) {
            return None;
        }
        table.last_epoch += 1;
        let epoch = table.last_epoch;
        table.held.insert(work.clone(), Held { server: lease.server, epoch, until: lease.until });
        Some(Claim { work, epoch })
    }

    /// Claims the first pieces of work that nobody has, and forgets leases that are over.
    pub(crate) fn claim_first(
        &self,
        due: impl IntoIterator<Item = Result<Work, StoreError>>,
        lease: &Lease,
        at_most: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        self.lock().held.retain(|_, held| held.until > lease.now);
        let mut claims = Vec::new();
        for work in due {
            if claims.len() == at_most {
                break;
            }
            claims.extend(self.claim(work?, lease));
        }
        Ok(claims)
    }

    /// Whether another server has a piece of work.
    pub(crate) fn is_another_servers(&self, work: &Work, lease: &Lease) -> bool {
        self.lock().held.get(work).is_some_and(|held| held.until > lease.now && held.server != lease.server)
    }

    /// Whether a claim still counts.
    pub(crate) fn holds(&self, claim: &Claim) -> bool {
        self.lock().held.get(&claim.work).is_some_and(|held| held.epoch == claim.epoch)
    }

    /// Makes a claim last longer, if it still counts.
    pub(crate) fn renew(&self, claim: &Claim, lease: &Lease) -> bool {
        let mut table = self.lock();
        let held = table.held.get_mut(&claim.work).filter(|held| held.epoch == claim.epoch);
        held.map(|held| held.until = lease.until).is_some()
    }

    /// Ends a claim, if it still counts.
    pub(crate) fn release(&self, claim: &Claim) {
        let mut table = self.lock();
        if table.held.get(&claim.work).is_some_and(|held| held.epoch == claim.epoch) {
            table.held.remove(&claim.work);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
