//! Leases in memory, for a place with one process. A start of the process voids them all.

use std::collections::{HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use payments_core::Timestamp;

use super::claim::{Claim, Lease, Work};

#[derive(Default)]
pub struct Leases(Mutex<Table>);

#[derive(Default)]
struct Table {
    held: HashMap<Work, Held>,
    last_epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub epoch: u64,
    pub until: Timestamp,
}

impl Held {
    /// Whether the claim still counts when `lease` begins.
    pub(crate) fn runs_under(&self, lease: &Lease) -> bool {
        lease.finds_running(self.until) || planted!(LeaseNeverEnds)
    }

    /// The epoch and the end, each in eight bytes.
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.epoch.to_be_bytes(), self.until.as_millis().to_be_bytes()].concat()
    }

    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let (epoch, until) = value.split_first_chunk()?;
        let until = Timestamp::from_millis(i64::from_be_bytes(until.try_into().ok()?)).ok()?;
        Some(Self { epoch: u64::from_be_bytes(*epoch), until })
    }
}

impl Leases {
    /// Claims a piece of work; `None` while another claim counts.
    pub fn claim(&self, work: Work, lease: &Lease) -> Option<Claim> {
        let mut table = self.lock();
        if table.held.get(&work).is_some_and(|held| held.runs_under(lease)) {
            return None;
        }
        table.last_epoch += 1;
        let epoch = table.last_epoch;
        table.held.insert(work.clone(), Held { epoch, until: lease.until });
        Some(Claim { work, epoch })
    }

    pub fn running(&self, lease: &Lease) -> HashSet<Work> {
        let table = self.lock();
        table.held.iter().filter(|(_, held)| held.runs_under(lease)).map(|(work, _)| work.clone()).collect()
    }

    pub fn drop_ended(&self, lease: &Lease) {
        self.lock().held.retain(|_, held| held.runs_under(lease));
    }

    pub fn holds(&self, claim: &Claim) -> bool {
        self.lock().held.get(&claim.work).is_some_and(|held| held.epoch == claim.epoch)
    }

    /// Extends a claim, if it still counts.
    pub fn renew(&self, claim: &Claim, lease: &Lease) -> bool {
        let mut table = self.lock();
        let held = table.held.get_mut(&claim.work).filter(|held| held.epoch == claim.epoch);
        held.map(|held| held.until = lease.until).is_some()
    }

    /// Ends a claim, if it still counts.
    pub fn release(&self, claim: &Claim) {
        let mut table = self.lock();
        if table.held.get(&claim.work).is_some_and(|held| held.epoch == claim.epoch) {
            table.held.remove(&claim.work);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}
