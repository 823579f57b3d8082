//! Places: the right to have one delivery in memory and one request in flight.

use std::sync::{Arc, Mutex, PoisonError};

use payments_core::DeveloperId;
use tokio::sync::oneshot;

use super::shares::{Amount, Shares};
use crate::metrics::PlaceGauges;

/// The memory that all deliveries in flight may take together.
const BUDGET_KIB: u64 = 32 * 1024;
/// What a place sets aside before its delivery is loaded. A payment's texts are bounded: with 16 KiB of metadata and every
/// other field full of characters that JSON escapes, an event has about 150 KiB, and it is in memory twice.
const RESERVE_KIB: u64 = 320;

/// Whose delivery it is; `None` where its endpoint is no more.
pub(super) type Holder = Option<DeveloperId>;

/// All places. See [`shares`](super::shares) for who gets the next one.
pub(super) struct Places {
    shares: Mutex<Shares<Holder, oneshot::Sender<Place>>>,
    gauges: PlaceGauges,
}

impl Places {
    pub(super) fn new(places: usize, gauges: PlaceGauges) -> Arc<Self> {
        let all = Amount { places: u64::try_from(places.max(1)).unwrap_or(u64::MAX), kib: BUDGET_KIB };
        Arc::new(Self { shares: Mutex::new(Shares::new(all, RESERVE_KIB)), gauges })
    }

    /// Waits for a place.
    pub(super) async fn take(self: Arc<Self>, holder: Holder) -> Place {
        loop {
            let (waiter, granted) = oneshot::channel();
            self.gauges.waiting.inc();
            self.update(|shares| shares.ask(holder.clone(), waiter));
            // A place is never thrown away without being sent.
            if let Ok(place) = granted.await {
                return place;
            }
        }
    }

    /// Changes the shares and gives what can be given then.
    fn update(self: &Arc<Self>, change: impl FnOnce(&mut Shares<Holder, oneshot::Sender<Place>>)) {
        let mut granted = Vec::new();
        {
            // No code panics while it holds the lock.
            let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut shares);
            while let Some(grant) = shares.grant() {
                granted.push(grant);
            }
        }
        // Outside of the lock: where nobody waits any more, the place comes back.
        for (holder, waiter) in granted {
            self.gauges.waiting.dec();
            self.gauges.held.inc();
            self.gauges.kib.inc_by(i64::try_from(RESERVE_KIB).unwrap_or(i64::MAX));
            let _ = waiter.send(Place { places: Arc::clone(self), holder, kib: RESERVE_KIB });
        }
    }
}

/// A place. It is free again when this is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    holder: Holder,
    kib: u64,
}

impl Place {
    /// A delivery of this size was loaded: what it does not take is for others.
    pub(super) fn loaded(&mut self, bytes: usize) {
        let kib = (u64::try_from(bytes).unwrap_or(u64::MAX) / 1024 + 1).min(self.kib);
        self.give_back(Amount { places: 0, kib: self.kib - kib });
        self.kib = kib;
    }

    fn give_back(&self, amount: Amount) {
        self.places.gauges.kib.dec_by(i64::try_from(amount.kib).unwrap_or(i64::MAX));
        self.places.update(|shares| shares.give_back(self.holder.clone(), amount));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.gauges.held.dec();
        self.give_back(Amount { places: 1, kib: self.kib });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn whoever_gives_up_waiting_takes_no_place_and_every_place_comes_back() {
        let gauges = Metrics::new().deliveries.places;
        let places = Places::new(1, gauges.clone());
        let held = Arc::clone(&places).take(None).await;
        let mut gave_up = Box::pin(Arc::clone(&places).take(None));
        assert!((&mut gave_up).now_or_never().is_none());
        drop(gave_up);
        let next = Arc::clone(&places).take("dev_1".parse().ok());
        drop(held);
        let mut next = next.await;
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (1, 0, 320));
        next.loaded(3_000);
        assert_eq!(gauges.kib.get(), 3);
        drop(next);
        assert_eq!((gauges.held.get(), gauges.waiting.get(), gauges.kib.get()), (0, 0, 0));
    }
}
