//! Claims on work, in memory, for an engine with one process. A start voids them all.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use payments_core::{PaymentId, Timestamp};

use super::{Claim, Lease, Work};

/// The claims that count.
#[derive(Default)]
pub(crate) struct Leases(Mutex<Table>);

#[derive(Default)]
struct Table {
    held: HashMap<Work, Held>,
    last_epoch: u64,
}

struct Held {
    epoch: u64,
    until: Timestamp,
}

/// A piece of work that is due, and the payment whose work is done in order, if any. While an earlier piece of a payment is
/// claimed, a later one is not.
pub(crate) type Due = (Work, Option<PaymentId>);

impl Leases {
    /// Claims a piece of work; `None` while another claim counts.
    pub(crate) fn claim(&self, work: Work, lease: &Lease) -> Option<Claim> {
        let mut table = self.lock();
        let counts = |held: &&Held| lease.finds_running(held.until) || planted!(LeaseNeverEnds);
        if table.held.get(&work).filter(counts).is_some() {
            return None;
        }
        table.last_epoch += 1;
        let epoch = table.last_epoch;
        table.held.insert(work.clone(), Held { epoch, until: lease.until });
        Some(Claim { work, epoch })
    }

    /// Drops leases that have ended.
    pub(crate) fn drop_ended(&self, lease: &Lease) {
        self.lock().held.retain(|_, held| lease.finds_running(held.until) || planted!(LeaseNeverEnds));
    }

    /// Whether a claim still counts.
    pub(crate) fn holds(&self, claim: &Claim) -> bool {
        self.lock().held.get(&claim.work).is_some_and(|held| held.epoch == claim.epoch)
    }

    /// Extends a claim, if it still counts.
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
