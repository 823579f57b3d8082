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
use tokio::sync::{Notify, watch};

/// The lanes that are at work.
pub(super) struct Lanes {
    at_work: Mutex<HashMap<WebhookId, Lane>>,
    idle: watch::Sender<bool>,
}

/// A lane that is at work.
struct Lane {
    /// Whether something was put into the outbox since it last looked.
    is_woken: bool,
    bell: Bell,
}

/// Rings when [`Lanes::look_again`] may have something to say.
pub(super) type Bell = Arc<Notify>;

impl Lanes {
    pub(super) fn new() -> Self {
        Self { at_work: Mutex::new(HashMap::new()), idle: watch::Sender::new(true) }
    }

    /// Something was put into an endpoint's outbox. The bell of a lane that must be set to work; `None` where the one at
    /// work will look again.
    #[must_use]
    pub(super) fn wake(&self, endpoint: &WebhookId) -> Option<Bell> {
        match self.lock().entry(endpoint.clone()) {
            Entry::Occupied(mut lane) => {
                lane.get_mut().is_woken = true;
                lane.get().bell.notify_one();
                None
            }
            Entry::Vacant(lane) => {
                let bell = Bell::default();
                lane.insert(Lane { is_woken: false, bell: Arc::clone(&bell) });
                self.idle.send_replace(false);
                Some(bell)
            }
        }
    }

    /// A lane is about to look into its outbox. True if something was put into it since it last looked.
    #[must_use]
    pub(super) fn look_again(&self, endpoint: &WebhookId) -> bool {
        self.lock().get_mut(endpoint).is_some_and(|lane| std::mem::take(&mut lane.is_woken))
    }

    /// A lane found its outbox empty. True if it has ended; false if something came since it looked, so that it must
    /// look again.
    #[must_use]
    pub(super) fn end_unless_woken(&self, endpoint: &WebhookId) -> bool {
        // Under one lock, so that whoever wakes the lane now either is seen or sets a new one to work.
        let mut at_work = self.lock();
        if at_work.get_mut(endpoint).is_some_and(|lane| std::mem::take(&mut lane.is_woken)) {
            return false;
        }
        self.remove(at_work, endpoint);
        true
    }

    /// A lane ends, whatever its endpoint is still owed.
    pub(super) fn end(&self, endpoint: &WebhookId) {
        self.remove(self.lock(), endpoint);
    }

    /// Waits until no lane is at work.
    pub(super) async fn idle(&self) {
        let _ = self.idle.subscribe().wait_for(|idle| *idle).await;
    }

    fn remove(&self, mut at_work: MutexGuard<'_, HashMap<WebhookId, Lane>>, endpoint: &WebhookId) {
        at_work.remove(endpoint);
        if at_work.is_empty() {
            self.idle.send_replace(true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WebhookId, Lane>> {
        // No code panics while it holds the lock, and the map is whole between any two of its lines.
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
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
            let (lanes, owed, delivered) = (Arc::clone(&lanes), Arc::clone(&owed), Arc::clone(&delivered));
            let endpoint = endpoint.clone();
            move || {
                assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two lanes for one endpoint");
                loop {
                    // As a lane does while it has requests in flight.
                    let _ = lanes.look_again(&endpoint);
                    match owed.swap(0, Ordering::SeqCst) {
                        0 => {
                            // The new lane may begin before this one returns, but not before it has ended.
                            working.fetch_sub(1, Ordering::SeqCst);
                            if lanes.end_unless_woken(&endpoint) {
                                return;
                            }
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
                        if lanes.wake(&endpoint).is_some() {
                            lane.push(thread::spawn(work.clone()));
                        }
                    }
                    lane.into_iter().for_each(|lane| lane.join().unwrap());
                })
            })
            .collect();
        committers.into_iter().for_each(|committer| committer.join().unwrap());
        assert_eq!(delivered.load(Ordering::SeqCst), 4);
        assert!(*lanes.idle.borrow());
    }

    #[test]
    fn in_whatever_order_threads_run_nothing_stays_in_the_outbox_and_no_endpoint_has_two_lanes() {
        shuttle::check_random(nothing_is_left_behind, 20_000);
        shuttle::check_pct(nothing_is_left_behind, 5_000, 3);
    }
}
