//! Which endpoints have a lane at work: one at most for each, and one for each that is owed something.

#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use payments_core::WebhookId;
// In tests, so that every order of the threads can be tried.
#[cfg(test)]
use shuttle::sync::{Mutex, MutexGuard};
#[cfg(test)]
use std::sync::PoisonError;
use tokio::sync::Notify;

/// The lanes that are at work.
pub(super) struct Lanes {
    at_work: Mutex<HashMap<WebhookId, Lane>>,
}

/// A lane that is at work.
struct Lane {
    /// Whether something was put into the outbox since it last looked.
    is_woken: bool,
    bell: Bell,
}

/// Rings when [`AtWork::look_again`] may have something to say.
pub(super) type Bell = Arc<Notify>;

impl Lanes {
    pub(super) fn new() -> Self {
        Self { at_work: Mutex::new(HashMap::new()) }
    }

    /// Something was put into an endpoint's outbox. The entry of a lane that must be set to work; `None` where the one at
    /// work will look again.
    #[must_use]
    pub(super) fn wake(self: &Arc<Self>, endpoint: &WebhookId) -> Option<AtWork> {
        match self.lock().entry(endpoint.clone()) {
            Entry::Occupied(mut lane) => {
                lane.get_mut().is_woken = true;
                lane.get().bell.notify_one();
                None
            }
            Entry::Vacant(lane) => {
                let bell = Bell::default();
                lane.insert(Lane { is_woken: false, bell: Arc::clone(&bell) });
                Some(AtWork { lanes: Arc::clone(self), endpoint: endpoint.clone(), bell, has_ended: false })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WebhookId, Lane>> {
        // No code panics while it holds the lock, and the map is whole between any two of its lines.
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lane's entry among those at work. However the lane ends, by a panic too, the endpoint may have another one then.
pub(super) struct AtWork {
    lanes: Arc<Lanes>,
    endpoint: WebhookId,
    bell: Bell,
    has_ended: bool,
}

impl AtWork {
    pub(super) fn endpoint(&self) -> &WebhookId {
        &self.endpoint
    }

    pub(super) fn bell(&self) -> Bell {
        Arc::clone(&self.bell)
    }

    /// The lane is about to look into its outbox. True if something was put into it since it last looked.
    #[must_use]
    pub(super) fn look_again(&self) -> bool {
        self.lanes.lock().get_mut(&self.endpoint).is_some_and(|lane| std::mem::take(&mut lane.is_woken))
    }

    /// The lane found its outbox empty, and ends. If something came since it looked, it is given back and must look again.
    pub(super) fn end_unless_woken(mut self) -> Option<Self> {
        // Under one lock, so that whoever wakes the lane now either is seen or sets a new one to work.
        let lanes = Arc::clone(&self.lanes);
        let mut at_work = lanes.lock();
        if at_work.get_mut(&self.endpoint).is_some_and(|lane| std::mem::take(&mut lane.is_woken)) {
            return Some(self);
        }
        // From here on the entry may be another lane's.
        self.has_ended = true;
        at_work.remove(&self.endpoint);
        None
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.has_ended {
            self.lanes.lock().remove(&self.endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use shuttle::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    use super::*;

    /// Two committers put two deliveries each into the outbox; whoever is told to sets a lane to work.
    fn nothing_is_left_behind() {
        let endpoint: WebhookId = "wh_1".parse().unwrap();
        let lanes = Arc::new(Lanes::new());
        let (owed, working, delivered) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = {
            let (owed, delivered) = (Arc::clone(&owed), Arc::clone(&delivered));
            move |mut lane: AtWork| {
                assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two lanes for one endpoint");
                loop {
                    // As a lane does while it has requests in flight.
                    let _ = lane.look_again();
                    match owed.swap(0, Ordering::SeqCst) {
                        0 => {
                            // The new lane may begin before this one returns, but not before it has ended.
                            working.fetch_sub(1, Ordering::SeqCst);
                            let Some(woken) = lane.end_unless_woken() else { return };
                            lane = woken;
                            working.fetch_add(1, Ordering::SeqCst);
                        }
                        some => drop(delivered.fetch_add(some, Ordering::SeqCst)),
                    }
                }
            }
        };
        let committers: Vec<_> = (0..2)
            .map(|_| {
                let (lanes, owed, endpoint, work) =
                    (Arc::clone(&lanes), Arc::clone(&owed), endpoint.clone(), work.clone());
                thread::spawn(move || {
                    let mut lane = Vec::new();
                    for _ in 0..2 {
                        owed.fetch_add(1, Ordering::SeqCst);
                        if let Some(at_work) = lanes.wake(&endpoint) {
                            let work = work.clone();
                            lane.push(thread::spawn(move || work(at_work)));
                        }
                    }
                    lane.into_iter().for_each(|lane| lane.join().unwrap());
                })
            })
            .collect();
        committers.into_iter().for_each(|committer| committer.join().unwrap());
        assert_eq!(delivered.load(Ordering::SeqCst), 4);
        assert!(lanes.lock().is_empty());
    }

    #[test]
    fn in_whatever_order_threads_run_nothing_stays_in_the_outbox_and_no_endpoint_has_two_lanes() {
        shuttle::check_random(nothing_is_left_behind, 20_000);
        shuttle::check_pct(nothing_is_left_behind, 5_000, 3);
    }

    #[test]
    fn an_endpoint_whose_lane_panicked_gets_another_one() {
        shuttle::check_random(
            || {
                let (lanes, endpoint) = (Arc::new(Lanes::new()), "wh_1".parse().unwrap());
                let lane = lanes.wake(&endpoint).unwrap();
                assert!(lanes.wake(&endpoint).is_none());
                let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let _lane = lane;
                    std::panic::resume_unwind(Box::new("a fault in a lane"));
                }));
                assert!(panicked.is_err() && lanes.lock().is_empty());
                assert!(lanes.wake(&endpoint).is_some());
            },
            1,
        );
    }
}
