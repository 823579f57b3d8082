//! The running lanes of this server: at most one for each endpoint.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::DerefMut,
    sync::Arc,
};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use payments_core::WebhookId;
use tokio::sync::Notify;

/// The running lanes, each with the signal that its outbox has new deliveries.
type Running = HashMap<WebhookId, Arc<Notify>>;

/// A lock. Tests use another type, which tries many orders of the threads.
pub(super) trait Lock {
    fn locked(&self) -> impl DerefMut<Target = Running>;
}

impl Lock for Mutex<Running> {
    fn locked(&self) -> impl DerefMut<Target = Running> {
        self.lock()
    }
}

/// The running lanes behind a lock.
#[derive(Default)]
pub(super) struct Lanes<L: Lock = Mutex<Running>>(L);

impl<L: Lock> Lanes<L> {
    /// Tells an endpoint's lane that the outbox has new deliveries. If no lane is running, returns the entry with which
    /// the caller must start one.
    #[must_use]
    pub(super) fn notify(self: &Arc<Self>, endpoint: &WebhookId) -> Option<LaneEntry<L>> {
        match self.0.locked().entry(endpoint.clone()) {
            Entry::Occupied(lane) => {
                lane.get().notify_one();
                None
            }
            Entry::Vacant(lane) => {
                let notify = Arc::clone(lane.insert(Arc::default()));
                Some(LaneEntry { lanes: Arc::clone(self), endpoint: endpoint.clone(), notify, is_removed: false })
            }
        }
    }
}

/// A lane's entry among the running ones. It is removed when the lane ends, even by a panic.
pub(super) struct LaneEntry<L: Lock = Mutex<Running>> {
    lanes: Arc<Lanes<L>>,
    endpoint: WebhookId,
    /// Signals that the outbox has new deliveries. Read the outbox after the signal.
    pub(super) notify: Arc<Notify>,
    is_removed: bool,
}

impl<L: Lock> LaneEntry<L> {
    pub(super) fn endpoint(&self) -> &WebhookId {
        &self.endpoint
    }

    /// Removes the entry of a lane whose outbox is empty. Returns the entry instead if [`notify`](Self::notify) was called
    /// and the lane has not received that.
    pub(super) fn remove_unless_notified(mut self) -> Option<Self> {
        // Take one lock, so that a concurrent `notify` is either seen here or starts a new lane.
        let lanes = Arc::clone(&self.lanes);
        let mut running = lanes.0.locked();
        if self.notify.notified().now_or_never().is_some() {
            return Some(self);
        }
        // From here on the entry may belong to another lane.
        self.is_removed = true;
        running.remove(&self.endpoint);
        None
    }
}

impl<L: Lock> Drop for LaneEntry<L> {
    fn drop(&mut self) {
        if !self.is_removed {
            self.lanes.0.locked().remove(&self.endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;

    use futures_util::FutureExt as _;
    use shuttle::{
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    use super::{LaneEntry, Lock, Running, WebhookId};

    type Lanes = super::Lanes<Mutex<Running>>;

    impl Lock for Mutex<Running> {
        fn locked(&self) -> impl super::DerefMut<Target = Running> {
            self.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Two committers add two deliveries each, and start a lane where none is running.
    fn deliver_from_two_committers() {
        let endpoint: WebhookId = "wh_1".parse().unwrap();
        let lanes = Arc::new(Lanes::default());
        let (pending, working, delivered) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (pending, delivered) = (Arc::clone(&pending), Arc::clone(&delivered));
            move |mut lane: LaneEntry<Mutex<Running>>| {
                assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two lanes for one endpoint");
                loop {
                    // A lane also does this while it has requests in flight.
                    let _ = lane.notify.notified().now_or_never();
                    match pending.swap(0, Ordering::SeqCst) {
                        0 => {
                            // The new lane may start before this one returns, but not before its entry is removed.
                            working.fetch_sub(1, Ordering::SeqCst);
                            let Some(notified) = lane.remove_unless_notified() else { return };
                            lane = notified;
                            working.fetch_add(1, Ordering::SeqCst);
                        }
                        some => drop(delivered.fetch_add(some, Ordering::SeqCst)),
                    }
                }
            }
        };
        let committers: Vec<_> = (0..2)
            .map(|_| {
                let (lanes, pending, endpoint, work) =
                    (Arc::clone(&lanes), Arc::clone(&pending), endpoint.clone(), work.clone());
                thread::spawn(move || {
                    let mut lane = Vec::new();
                    for _ in 0..2 {
                        pending.fetch_add(1, Ordering::SeqCst);
                        if let Some(entry) = lanes.notify(&endpoint) {
                            let work = work.clone();
                            lane.push(thread::spawn(move || work(entry)));
                        }
                    }
                    lane.into_iter().for_each(|lane| lane.join().unwrap());
                })
            })
            .collect();
        committers.into_iter().for_each(|committer| committer.join().unwrap());
        assert_eq!(delivered.load(Ordering::SeqCst), 4);
        assert!(lanes.0.locked().is_empty());
    }

    #[test]
    fn in_any_order_of_threads_all_deliveries_are_sent_and_no_endpoint_has_two_lanes() {
        shuttle::check_random(deliver_from_two_committers, 20_000);
        shuttle::check_pct(deliver_from_two_committers, 5_000, 3);
    }

    #[test]
    fn an_endpoint_whose_lane_panicked_gets_another_lane() {
        shuttle::check_random(
            || {
                let (lanes, endpoint) = (Arc::new(Lanes::default()), "wh_1".parse().unwrap());
                let lane = lanes.notify(&endpoint).unwrap();
                assert!(lanes.notify(&endpoint).is_none());
                let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _lane = lane;
                    std::panic::resume_unwind(Box::new("a fault in a lane"));
                }));
                assert!(panicked.is_err() && lanes.0.locked().is_empty());
                assert!(lanes.notify(&endpoint).is_some());
            },
            1,
        );
    }
}
