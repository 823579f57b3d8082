//! Claims on work, in memory, for an engine with one process. A start voids them all.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use payments_core::{PaymentId, Timestamp};

use super::{Claim, Lease, Result, Work};

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

    /// Claims the first unclaimed pieces of work, at most `at_most`, and drops leases that have ended.
    pub(crate) fn claim_first(
        &self,
        due: impl IntoIterator<Item = Result<Due>>,
        lease: &Lease,
        at_most: usize,
    ) -> Result<Vec<Claim>> {
        self.lock().held.retain(|_, held| lease.finds_running(held.until) || planted!(LeaseNeverEnds));
        let (mut claims, mut waiting) = (Vec::new(), Vec::new());
        for due in due {
            if claims.len() == at_most {
                break;
            }
            let (work, payment) = match due {
                Ok(due) => due,
                // The claims so far are work; the next call meets the error again.
                Err(_) if !claims.is_empty() => break,
                Err(error) => return Err(error),
            };
            if payment.as_ref().is_some_and(|payment| waiting.contains(payment)) {
                continue;
            }
            match self.claim(work, lease) {
                Some(claim) => claims.push(claim),
                None => waiting.extend(payment),
            }
        }
        Ok(claims)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ServerId, StoreError};

    fn lane(nth: u8) -> Result<Due> {
        Ok((Work::Lane(format!("wh_{nth}").parse().unwrap()), None))
    }

    fn unreadable() -> Result<Due> {
        Err(StoreError::corrupt(b"key", "it is damaged"))
    }

    #[test]
    fn work_before_unreadable_work_is_claimed_and_the_next_call_reports_the_error() {
        let (leases, lease) = (Leases::default(), Lease::new(ServerId([1; 16]), Timestamp::UNIX_EPOCH, 10));
        let claims = leases.claim_first([lane(1), lane(2), unreadable(), lane(3)], &lease, 9).unwrap();
        assert_eq!(
            claims.iter().map(|claim| &claim.work).collect::<Vec<_>>(),
            [&lane(1).unwrap().0, &lane(2).unwrap().0]
        );
        assert!(claims.iter().all(|claim| leases.holds(claim)));
        assert!(leases.claim_first([unreadable(), lane(3)], &lease, 9).is_err());
        assert!(leases.claim_first([lane(1), unreadable()], &lease, 9).is_err(), "the first is claimed already");
        assert_eq!(leases.claim_first([lane(3), lane(4)], &lease, 1).unwrap().len(), 1);
    }
}
