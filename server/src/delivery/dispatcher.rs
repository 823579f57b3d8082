//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has a [lane](super::lane) of its own, so one that is slow or dead delays nobody else's events. A server
//! works on a lane under a claim, so no other server works on it, and it polls for lanes that nobody has. A delivery
//! is one request of at most 8 seconds, not repeated (API specification, "Delivery"); its outcome is logged and it leaves
//! the outbox in one commit. What was in flight at a crash is still in the outbox and is sent again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use payments_core::{DeliveryStatus, WebhookId};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Sender, fault,
    lane::Lane,
    lanes::Lanes,
    places::{Place, Places},
    sender::ATTEMPT,
};
use crate::{
    ambient::Ambient,
    domain::Outgoing,
    metrics::{Deliveries, DeliveryLabels, DeliveryOutcome},
    store::{Change, Claim, CommitError, Lease, Queue, ServerId, Store, Work, Write},
};

/// How often the store is asked for lanes that nobody works on. A new delivery of this process is begun at once.
const POLL: Duration = Duration::from_secs(1);
/// How many lanes are claimed at a time.
const LANES_PER_POLL: usize = 1024;
/// How long a lane stays claimed by a server that is gone. Far longer than an attempt takes.
const LEASE_SECONDS: u32 = 60;
/// How long to wait after the store failed.
const REST: Duration = Duration::from_secs(1);

/// Calls the endpoints whose outboxes are not empty.
pub(crate) struct Dispatcher {
    pub(super) store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    server: ServerId,
    sender: Arc<Sender>,
    metrics: Deliveries,
    pub(super) lanes: Arc<Lanes>,
    pub(super) places: Arc<Places>,
    /// The lanes' tasks.
    tasks: TaskTracker,
    /// Cancelled when no further request may begin.
    pub(super) closing: CancellationToken,
    complaints: Complaints,
}

/// Waits, without a place, until a delivery that was not sent may be tried again.
async fn rest(place: Place) -> Ended {
    drop(place);
    sleep(REST).await;
    Ended::NotSent
}

/// Lets one of many like complaints through in [`EVERY`](Self::EVERY).
#[derive(Default)]
struct Complaints(Mutex<Option<Instant>>);

impl Complaints {
    const EVERY: Duration = Duration::from_secs(10);

    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= Self::EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// What came of a delivery that was to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The endpoint answered.
    Answered,
    /// It did not.
    Unanswered,
    /// There is no endpoint any more.
    GivenUp,
    /// It was not sent, for a reason of our own. It is still in the outbox.
    NotSent,
}

impl Dispatcher {
    /// A dispatcher that has at most `places` requests in flight.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ambient: Arc<dyn Ambient>,
        server: ServerId,
        sender: Arc<Sender>,
        metrics: Deliveries,
        places: usize,
    ) -> Arc<Self> {
        let places = Places::new(places, metrics.places.clone());
        let (lanes, tasks, closing) = (Arc::new(Lanes::new()), TaskTracker::new(), CancellationToken::new());
        let complaints = Complaints::default();
        Arc::new(Self { store, ambient, server, sender, metrics, lanes, places, tasks, closing, complaints })
    }

    /// Works on every lane that has deliveries and that nobody works on, for as long as it is polled.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.store.claim(Queue::Lanes, &self.lease(), LANES_PER_POLL).await {
                Ok(claims) => {
                    for claim in claims {
                        self.begin(claim).await;
                    }
                }
                Err(error) => tracing::error!(%error, "the outbox cannot be read; it is read again"),
            }
        }
    }

    /// There is a new delivery to an endpoint.
    pub(super) async fn wake(self: &Arc<Self>, endpoint: &WebhookId) {
        let Some(at_work) = self.lanes.wake(endpoint) else { return };
        // Where it fails, or another server has the lane, the lane is found by polling.
        if let Some(claim) = self.claim(endpoint).await {
            self.tasks.spawn(Lane::new(Arc::clone(self), at_work, claim).work());
        }
    }

    async fn begin(self: &Arc<Self>, claim: Claim) {
        let Work::Lane(endpoint) = &claim.work else { return };
        match self.lanes.wake(endpoint) {
            Some(at_work) => drop(self.tasks.spawn(Lane::new(Arc::clone(self), at_work, claim).work())),
            // The lane at work has lost its claim and ends soon.
            None => self.release(&claim).await,
        }
    }

    /// Claims an endpoint's lane, if it has deliveries and nobody works on it.
    pub(super) async fn claim(&self, endpoint: &WebhookId) -> Option<Claim> {
        let claim = self.store.claim_one(Work::Lane(endpoint.clone()), &self.lease()).await;
        claim.inspect_err(|error| tracing::error!(%error, %endpoint, "the outbox cannot be read")).ok().flatten()
    }

    /// Ends a claim. One that cannot be ended now ends with its lease.
    pub(super) async fn release(&self, claim: &Claim) {
        if let Err(error) = self.store.release(claim).await {
            tracing::warn!(%error, "a lane stays claimed until its lease is over");
        }
    }

    /// Makes a claim last longer. False if another server has taken the lane over.
    pub(super) async fn renew(&self, claim: &Claim) -> bool {
        let renewed = self.store.renew(claim, &self.lease()).await;
        renewed
            .inspect_err(|error| tracing::warn!(%error, "a claim on a lane could not be renewed yet"))
            .unwrap_or(true)
    }

    fn lease(&self) -> Lease {
        Lease::new(self.server, self.ambient.now(), LEASE_SECONDS)
    }

    /// Begins no further request, and waits until those in flight have ended. What does not end stays in the outbox.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Makes one attempt and logs it. The place is held until then: what cannot be logged is not to be called further.
    pub(super) async fn deliver(&self, mut outgoing: Outgoing, place: Place, claim: Claim) -> Ended {
        let (outcome, ended) = match self.store.endpoint(&outgoing.delivery.webhook_id).await {
            Ok(Some(found)) if found.endpoint.is_active => {
                if let Err(exhausted) = self.sender.attempt(&found.endpoint, &mut outgoing.delivery).await {
                    self.metrics.not_sent.inc();
                    if self.complaints.is_due() {
                        tracing::error!(error = %exhausted, "webhooks stay in the outbox until there is more");
                    }
                    return rest(place).await;
                }
                // An answer that did not end took the place for as long as none.
                let has_ended = outgoing.delivery.duration_ms.is_none_or(|took| u128::from(took) < ATTEMPT.as_millis());
                let answered = if has_ended { Ended::Answered } else { Ended::Unanswered };
                match (&outgoing.delivery.status, outgoing.delivery.response_status) {
                    (DeliveryStatus::Success, _) => (DeliveryOutcome::Success, answered),
                    (_, Some(_)) => (DeliveryOutcome::Refused, answered),
                    (_, None) => (DeliveryOutcome::Unanswered, Ended::Unanswered),
                }
            }
            Ok(_) => {
                outgoing.delivery.status = DeliveryStatus::Failed;
                outgoing.delivery.error = Some(fault::endpoint_removed());
                (DeliveryOutcome::Withdrawn, Ended::GivenUp)
            }
            Err(error) => {
                tracing::error!(%error, delivery = %outgoing.delivery.id, "a delivery stays in the outbox");
                return rest(place).await;
            }
        };
        outgoing.version += 1;
        self.metrics.made.get_or_create(&DeliveryLabels { outcome }).inc();
        self.log(&outgoing, claim).await;
        ended
    }

    /// Logs an attempt, and tries to until it is logged: the endpoint has been called, and is not to be called again
    /// because our disk is full.
    async fn log(&self, outgoing: &Outgoing, claim: Claim) {
        loop {
            let under = vec![claim.clone()];
            let change = Change { under, ..Change::of(Write::DeliveryEnded(Box::new(outgoing.clone()))) };
            let id = &outgoing.delivery.id;
            match self.store.commit(change).await {
                Ok(()) => return,
                Err(CommitError::Conflict(conflict)) => {
                    tracing::warn!(%conflict, delivery = %id, "an attempt is not logged; another server makes its own");
                    return;
                }
                Err(error) => tracing::error!(%error, delivery = %id, "an attempt could not be logged yet"),
            }
            if self.closing.is_cancelled() {
                return;
            }
            sleep(REST).await;
        }
    }
}
