//! Slots: each is the right to have one delivery in memory and one request in flight.

use std::{iter, sync::Arc};

use parking_lot::Mutex;
use payments_core::DeveloperId;
use tokio::sync::oneshot;

use super::shares::{Amount, Shares};
use crate::metrics::SlotGauges;

/// Memory for all deliveries in flight.
const BUDGET_KIB: u64 = 32 * 1024;
/// Memory reserved for a slot before its delivery is loaded. An event has at most about 150 KiB: 16 KiB of metadata, and
/// every other field full of characters that JSON escapes. It is in memory twice.
const RESERVE_KIB: u64 = 320;

/// The developer whose slot it is; `None` if the endpoint no longer exists.
pub(super) type Holder = Option<DeveloperId>;

/// All slots of a dispatcher. [`shares`](super::shares) decides who gets the next one.
pub(super) struct Slots {
    shares: Mutex<Shares<Holder, oneshot::Sender<Slot>>>,
    gauges: SlotGauges,
}

impl Slots {
    pub(super) fn new(slots: usize, gauges: SlotGauges) -> Arc<Self> {
        let all = Amount { slots: u64::try_from(slots.max(1)).unwrap_or(u64::MAX), kib: BUDGET_KIB };
        Arc::new(Self { shares: Mutex::new(Shares::new(all, RESERVE_KIB)), gauges })
    }

    pub(super) async fn acquire(self: Arc<Self>, holder: Holder) -> Slot {
        loop {
            let (waiter, granted) = oneshot::channel();
            self.gauges.waiting.inc();
            self.update(|shares| shares.enqueue(holder.clone(), waiter));
            // A granted slot is always sent; this only satisfies the type.
            if let Ok(slot) = granted.await {
                return slot;
            }
        }
    }

    /// Changes the shares, then grants as many slots as possible.
    fn update(self: &Arc<Self>, change: impl FnOnce(&mut Shares<Holder, oneshot::Sender<Slot>>)) {
        let mut shares = self.shares.lock();
        change(&mut shares);
        let granted: Vec<_> = iter::from_fn(|| shares.grant()).collect();
        drop(shares);
        // Outside the lock: if the waiter is gone, its slot is dropped and locks again.
        for (holder, waiter) in granted {
            self.gauges.waiting.dec();
            self.gauges.held.inc();
            self.gauges.kib.inc_by(i64::try_from(RESERVE_KIB).unwrap_or(i64::MAX));
            let _ = waiter.send(Slot { slots: Arc::clone(self), holder, kib: RESERVE_KIB });
        }
    }
}

/// A slot. Dropping it frees it.
pub(super) struct Slot {
    slots: Arc<Slots>,
    holder: Holder,
    kib: u64,
}

impl Slot {
    /// Returns the part of the reserved memory that a delivery of `bytes` does not need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let kib = (u64::try_from(bytes).unwrap_or(u64::MAX) / 1024 + 1).min(self.kib);
        self.release(Amount { slots: 0, kib: self.kib - kib });
        self.kib = kib;
    }

    fn release(&self, amount: Amount) {
        self.slots.gauges.kib.dec_by(i64::try_from(amount.kib).unwrap_or(i64::MAX));
        self.slots.update(|shares| shares.release(self.holder.clone(), amount));
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.gauges.held.dec();
        self.release(Amount { slots: 1, kib: self.kib });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn a_cancelled_wait_takes_no_slot_and_dropped_slots_are_free_again() {
        let gauges = Metrics::new().deliveries.slots;
        let slots = Slots::new(1, gauges.clone());
        let held = Arc::clone(&slots).acquire(None).await;
        let mut cancelled = Box::pin(Arc::clone(&slots).acquire(None));
        assert!((&mut cancelled).now_or_never().is_none());
        drop(cancelled);
        let next = Arc::clone(&slots).acquire("dev_1".parse().ok());
        drop(held);
        let mut next = next.await;
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (1, 0, 320));
        next.shrink_to(3_000);
        assert_eq!(gauges.kib.get(), 3);
        drop(next);
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (0, 0, 0));
    }
}
