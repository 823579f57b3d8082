//! Permits: each is the right to have one delivery in memory and one request in flight.

use std::{iter, sync::Arc};

use parking_lot::Mutex;
use payments_core::DeveloperId;
use tokio::sync::oneshot;

use super::shares::{Amount, Shares};
use crate::metrics::PermitGauges;

/// Memory for all deliveries in flight.
const BUDGET_KIB: u64 = 32 * 1024;
/// Memory reserved for a permit before its delivery is loaded. An event is in memory twice, and has at most about 150 KiB: 16
/// KiB of metadata, and other fields full of characters that JSON escapes.
const RESERVE_KIB: u64 = 320;

/// The developer whose permit it is; `None` if the endpoint no longer exists.
pub(super) type Holder = Option<DeveloperId>;

/// All permits of a dispatcher. [`shares`](super::shares) decides which developer gets the next one.
pub(super) struct Permits {
    shares: Mutex<Shares<Holder, oneshot::Sender<Permit>>>,
    gauges: PermitGauges,
}

impl Permits {
    pub(super) fn new(permits: usize, gauges: PermitGauges) -> Arc<Self> {
        let all = Amount { permits: u64::try_from(permits.max(1)).unwrap_or(u64::MAX), kib: BUDGET_KIB };
        Arc::new(Self { shares: Mutex::new(Shares::new(all, RESERVE_KIB)), gauges })
    }

    pub(super) async fn acquire(self: Arc<Self>, holder: Holder) -> Permit {
        loop {
            let (waiter, granted) = oneshot::channel();
            self.gauges.waiting.inc();
            self.update(|shares| shares.enqueue(holder.clone(), waiter));
            // The sender always sends a permit. The loop only satisfies the type.
            if let Ok(permit) = granted.await {
                return permit;
            }
        }
    }

    /// Changes the shares, then grants as many permits as possible.
    fn update(self: &Arc<Self>, change: impl FnOnce(&mut Shares<Holder, oneshot::Sender<Permit>>)) {
        let mut shares = self.shares.lock();
        change(&mut shares);
        let granted: Vec<_> = iter::from_fn(|| shares.grant()).collect();
        drop(shares);
        // Send outside the lock: if a waiter is gone, its permit is dropped, which takes the lock again.
        for (holder, waiter) in granted {
            self.gauges.waiting.dec();
            self.gauges.held.inc();
            self.gauges.kib.inc_by(i64::try_from(RESERVE_KIB).unwrap_or(i64::MAX));
            let _ = waiter.send(Permit { permits: Arc::clone(self), holder, kib: RESERVE_KIB });
        }
    }
}

/// A permit. Dropping it makes it free again.
pub(super) struct Permit {
    permits: Arc<Permits>,
    holder: Holder,
    kib: u64,
}

impl Permit {
    /// Returns the reserved memory that a delivery of `bytes` does not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let kib = (u64::try_from(bytes).unwrap_or(u64::MAX) / 1024 + 1).min(self.kib);
        self.release(Amount { permits: 0, kib: self.kib - kib });
        self.kib = kib;
    }

    fn release(&self, amount: Amount) {
        self.permits.gauges.kib.dec_by(i64::try_from(amount.kib).unwrap_or(i64::MAX));
        self.permits.update(|shares| shares.release(self.holder.clone(), amount));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.gauges.held.dec();
        self.release(Amount { permits: 1, kib: self.kib });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn a_cancelled_wait_takes_no_permit_and_dropped_permits_are_free_again() {
        let gauges = Metrics::new().deliveries.permits;
        let permits = Permits::new(1, gauges.clone());
        let held = Arc::clone(&permits).acquire(None).await;
        let mut cancelled = Box::pin(Arc::clone(&permits).acquire(None));
        assert!((&mut cancelled).now_or_never().is_none());
        drop(cancelled);
        let next = Arc::clone(&permits).acquire("dev_1".parse().ok());
        drop(held);
        let mut next = next.await;
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (1, 0, 320));
        next.shrink_to(3_000);
        assert_eq!(gauges.kib.get(), 3);
        drop(next);
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (0, 0, 0));
    }
}
