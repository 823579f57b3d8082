//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has its own [lane](super::lane), so a slow or dead endpoint delays no other. A server claims a lane before
//! it works on it, and polls for unclaimed lanes. A delivery is one request of at most 8 seconds, not retried (API
//! specification, "Delivery"). One commit logs its outcome and removes it from the outbox. A delivery in flight at a crash
//! is still in the outbox and is sent again.

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
    sender::ATTEMPT_TIMEOUT,
    slots::{Slot, Slots},
};
use crate::{
    ambient::Ambient,
    domain::Outgoing,
    metrics::{Deliveries, DeliveryOutcome},
    store::{Change, Claim, CommitError, Lease, Queue, ServerId, Store, Work, Write},
};

/// How often the dispatcher polls for unclaimed lanes. A new delivery of this process starts its lane at once.
const POLL: Duration = Duration::from_secs(1);
/// How many lanes one poll claims.
const LANES_PER_POLL: usize = 1024;
/// How long the claim of a crashed server lasts. Far longer than a delivery attempt.
const LEASE_SECONDS: u32 = 60;
/// How long to wait after a store error.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Calls the endpoints whose outboxes are not empty.
pub(crate) struct Dispatcher {
    pub(super) store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    server: ServerId,
    sender: Arc<Sender>,
    metrics: Deliveries,
    pub(super) lanes: Arc<Lanes>,
    pub(super) slots: Arc<Slots>,
    /// One task for each lane.
    tasks: TaskTracker,
    /// Cancelled when the server shuts down: no further request may start.
    pub(super) closing: CancellationToken,
    log_limit: LogLimit,
}

/// Frees the slot and waits before the delivery is tried again.
async fn retry_later(slot: Slot) -> AttemptOutcome {
    drop(slot);
    sleep(STORE_RETRY).await;
    AttemptOutcome::NotSent
}

/// Allows one log message in [`EVERY`](Self::EVERY).
#[derive(Default)]
struct LogLimit(Mutex<Option<Instant>>);

impl LogLimit {
    const EVERY: Duration = Duration::from_secs(10);

    fn allows(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= Self::EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// The outcome of a delivery, as its lane needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The endpoint responded in time.
    Answered,
    /// The endpoint did not respond, or its response did not end in time.
    Unanswered,
    /// The endpoint is inactive or removed.
    Withdrawn,
    /// This server could not send it. It is still in the outbox.
    NotSent,
    /// It was sent and not logged: the claim on the lane no longer counts.
    ClaimLost,
}

impl Dispatcher {
    /// A dispatcher that has at most `slots` requests in flight.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ambient: Arc<dyn Ambient>,
        server: ServerId,
        sender: Arc<Sender>,
        metrics: Deliveries,
        slots: usize,
    ) -> Arc<Self> {
        let slots = Slots::new(slots, metrics.slots.clone());
        let (lanes, tasks, closing) = (Arc::new(Lanes::new()), TaskTracker::new(), CancellationToken::new());
        let log_limit = LogLimit::default();
        Arc::new(Self { store, ambient, server, sender, metrics, lanes, slots, tasks, closing, log_limit })
    }

    /// Polls for unclaimed lanes with pending deliveries and runs them. Never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.store.claim(Queue::Lanes, &self.lease(), LANES_PER_POLL).await {
                Ok(claims) => {
                    for claim in claims {
                        self.start_claimed(claim).await;
                    }
                }
                Err(error) => tracing::error!(%error, "cannot read the outbox; retrying"),
            }
        }
    }

    /// Starts an endpoint's lane for a new delivery, or tells the running one.
    pub(super) async fn start_lane(self: &Arc<Self>, endpoint: &WebhookId) {
        let Some(entry) = self.lanes.notify(endpoint) else { return };
        // If the claim fails, the poll finds the lane later.
        if let Some(claim) = self.claim(endpoint).await {
            self.tasks.spawn(Lane::new(Arc::clone(self), entry, claim).run());
        }
    }

    async fn start_claimed(self: &Arc<Self>, claim: Claim) {
        let Work::Lane(endpoint) = &claim.work else { return };
        match self.lanes.notify(endpoint) {
            Some(entry) => drop(self.tasks.spawn(Lane::new(Arc::clone(self), entry, claim).run())),
            // The running lane has lost its claim and stops soon.
            None => self.release(&claim).await,
        }
    }

    /// Claims an endpoint's lane if it has pending deliveries and no other claim.
    pub(super) async fn claim(&self, endpoint: &WebhookId) -> Option<Claim> {
        let claim = self.store.claim_lane(endpoint, &self.lease()).await;
        claim.inspect_err(|error| tracing::error!(%error, %endpoint, "cannot read the outbox")).ok().flatten()
    }

    /// Releases a claim. If that fails, the claim ends with its lease.
    pub(super) async fn release(&self, claim: &Claim) {
        if let Err(error) = self.store.release(claim).await {
            tracing::warn!(%error, "cannot release a lane; it stays claimed until its lease expires");
        }
    }

    /// Renews a claim. False if another server has claimed the lane.
    pub(super) async fn renew(&self, claim: &Claim) -> bool {
        let renewed = self.store.renew(claim, &self.lease()).await;
        renewed
            .inspect_err(|error| tracing::warn!(%error, "cannot renew the claim on a lane; retrying"))
            .unwrap_or(true)
    }

    fn lease(&self) -> Lease {
        Lease::new(self.server, self.ambient.now(), LEASE_SECONDS)
    }

    /// Starts no further request and waits for those in flight. Unfinished deliveries stay in the outbox.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Makes one delivery attempt and logs it. Holds the slot until then: while the log fails, no further request starts.
    pub(super) async fn deliver(&self, mut outgoing: Outgoing, slot: Slot, claim: Claim) -> AttemptOutcome {
        let (outcome, result) = match self.store.endpoint(&outgoing.delivery.webhook_id).await {
            Ok(Some(found)) if found.endpoint.is_active => {
                if let Err(exhausted) = self.sender.attempt(&found.endpoint, &mut outgoing.delivery).await {
                    self.metrics.not_sent.inc();
                    if self.log_limit.allows() {
                        tracing::error!(error = %exhausted, "webhooks stay in the outbox; retrying");
                    }
                    return retry_later(slot).await;
                }
                // A response that did not end in time held the slot as long as no response.
                let in_time =
                    outgoing.delivery.duration_ms.is_none_or(|took| u128::from(took) < ATTEMPT_TIMEOUT.as_millis());
                let answered = if in_time { AttemptOutcome::Answered } else { AttemptOutcome::Unanswered };
                match (&outgoing.delivery.status, outgoing.delivery.response_status) {
                    (DeliveryStatus::Success, _) => (DeliveryOutcome::Success, answered),
                    (_, Some(_)) => (DeliveryOutcome::Refused, answered),
                    (_, None) => (DeliveryOutcome::Unanswered, AttemptOutcome::Unanswered),
                }
            }
            Ok(_) => {
                outgoing.delivery.status = DeliveryStatus::Failed;
                outgoing.delivery.error = Some(fault::endpoint_removed());
                (DeliveryOutcome::Withdrawn, AttemptOutcome::Withdrawn)
            }
            Err(error) => {
                tracing::error!(%error, delivery = %outgoing.delivery.id, "cannot read the endpoint; the delivery stays in the outbox");
                return retry_later(slot).await;
            }
        };
        outgoing.version += 1;
        self.metrics.made.get_or_create(&[("outcome", outcome)]).inc();
        if self.log(&outgoing, claim).await { result } else { AttemptOutcome::ClaimLost }
    }

    /// Logs a delivery attempt, and retries until that succeeds: a full disk must not make the endpoint receive it twice.
    /// Returns false if the claim on the lane no longer counts.
    async fn log(&self, outgoing: &Outgoing, claim: Claim) -> bool {
        loop {
            let under = vec![claim.clone()];
            let change = Change { under, ..Change::of(Write::DeliveryEnded(Box::new(outgoing.clone()))) };
            let id = &outgoing.delivery.id;
            match self.store.commit(change).await {
                Ok(()) => return true,
                Err(CommitError::Conflict(conflict)) => {
                    tracing::warn!(%conflict, delivery = %id, "delivery attempt not logged; another server makes its own");
                    return false;
                }
                Err(error) => tracing::error!(%error, delivery = %id, "cannot log a delivery attempt; retrying"),
            }
            if self.closing.is_cancelled() {
                return true;
            }
            sleep(STORE_RETRY).await;
        }
    }
}
