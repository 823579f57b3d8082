//! A lane: sends the deliveries of one endpoint, several requests at a time.
//!
//! A lane acquires a slot before it loads a delivery, so a lane that waits for a slot holds no delivery in memory. It
//! acquires the next slot while other requests are in flight, so it waits for none of them.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use payments_core::{DeliveryId, WebhookId};
use tokio::time::{Instant, interval_at, sleep};

use super::{
    backlog::Backlog,
    dispatcher::{AttemptOutcome, Dispatcher},
    lanes::LaneEntry,
    slots::{Holder, Slot, Slots},
    width::Width,
};
use crate::{
    domain::Outgoing,
    store::{Claim, StoreError},
};

/// How long a lane waits after a store error.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// How often a lane renews its claim: several times in a lease.
const RENEWAL: Duration = Duration::from_secs(15);

/// A running lane.
pub(super) struct Lane {
    dispatcher: Arc<Dispatcher>,
    claim: Claim,
    /// Whether the claim still counts, as far as this lane knows.
    is_claimed: bool,
    backlog: Backlog,
    width: Width,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Last, so that it is dropped last: once another lane can start, this one has no request in flight.
    entry: LaneEntry,
}

/// A finished future of the lane.
enum Done {
    Delivery(DeliveryId, AttemptOutcome),
    /// The wait after a store error is over.
    StoreRetry,
}

impl Lane {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, entry: LaneEntry, claim: Claim) -> Self {
        let (backlog, width, in_flight) = (Backlog::new(), Width::new(), FuturesUnordered::new());
        Self { dispatcher, claim, is_claimed: true, backlog, width, in_flight, entry }
    }

    /// Sends deliveries until the outbox is empty, the server shuts down, or another server has claimed the lane.
    pub(super) async fn run(mut self) {
        let (dispatcher, notify) = (Arc::clone(&self.dispatcher), self.entry.signal());
        let holder = holder(&dispatcher, self.entry.endpoint()).await;
        let mut renewal = interval_at(Instant::now() + RENEWAL, RENEWAL);
        let mut slot: Option<Pin<Box<dyn Future<Output = Slot> + Send>>> = None;
        loop {
            let is_closing = dispatcher.closing.is_cancelled() || !self.is_claimed;
            if self.entry.take_notification() {
                self.backlog.request_refill();
            }
            if is_closing || !self.can_send() {
                slot = None;
            } else if slot.is_none() {
                slot = Some(Box::pin(Slots::acquire(Arc::clone(&dispatcher.slots), holder.clone())));
            }
            if slot.is_none() && self.in_flight.is_empty() {
                // Release the claim first: a lane that starts once this entry is gone must find the endpoint unclaimed.
                dispatcher.release(&self.claim).await;
                if is_closing {
                    return;
                }
                let Some(entry) = self.entry.remove_unless_notified() else { return };
                let Some(claim) = dispatcher.claim(entry.endpoint()).await else { return };
                (self.entry, self.claim) = (entry, claim);
                self.backlog.request_refill();
                continue;
            }
            tokio::select! {
                Some(done) = self.in_flight.next() => self.done(done),
                acquired = async { slot.as_mut()?.await.into() }, if slot.is_some() => {
                    slot = None;
                    if let Some(acquired) = acquired {
                        self.send_next(acquired).await;
                    }
                }
                () = notify.notified() => {}
                _ = renewal.tick() => self.is_claimed = self.is_claimed && dispatcher.renew(&self.claim).await,
                () = dispatcher.closing.cancelled(), if !is_closing => {}
            }
        }
    }

    /// Whether one more request may be sent, before a refill.
    fn can_send(&self) -> bool {
        self.in_flight.len() < self.width.get() && (self.backlog.needs_refill() || self.backlog.next().is_some())
    }

    /// Loads the next delivery and sends it in `slot`.
    async fn send_next(&mut self, mut slot: Slot) {
        match self.load().await {
            Ok(Some(outgoing)) => {
                // The payload is in memory twice: as stored and as sent.
                slot.shrink_to(2 * outgoing.delivery.payload.as_str().len());
                let (dispatcher, claim) = (Arc::clone(&self.dispatcher), self.claim.clone());
                let id = outgoing.delivery.id.clone();
                self.in_flight.push(Box::pin(async move {
                    let outcome = dispatcher.deliver(outgoing, slot, claim).await;
                    Done::Delivery(id, outcome)
                }));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, endpoint = %self.entry.endpoint(), "cannot read the outbox; retrying");
                self.backlog.request_refill();
                self.in_flight.push(Box::pin(async {
                    sleep(STORE_RETRY).await;
                    Done::StoreRetry
                }));
            }
        }
    }

    /// Loads the next delivery that may be sent; `None` if there is none.
    async fn load(&mut self) -> Result<Option<Outgoing>, StoreError> {
        let store = Arc::clone(&self.dispatcher.store);
        loop {
            let Some(id) = self.backlog.next().cloned() else {
                if !self.backlog.needs_refill() {
                    return Ok(None);
                }
                self.backlog.refill(store.outbox(self.entry.endpoint(), self.backlog.refill_limit()).await?);
                continue;
            };
            match store.outgoing(&id).await {
                Ok(Some(outgoing)) => {
                    if self.backlog.loaded(&id, outgoing.payment.as_ref()) {
                        return Ok(Some(outgoing));
                    }
                }
                Ok(None) => self.skip(&id, "its record is missing"),
                Err(error @ StoreError::Corrupt { .. }) => self.skip(&id, &error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }

    fn skip(&mut self, id: &DeliveryId, why: &str) {
        tracing::error!(delivery = %id, why, "cannot load a delivery; it stays in the outbox unsent; run check");
        self.backlog.unreadable(id);
    }

    fn done(&mut self, done: Done) {
        let Done::Delivery(id, outcome) = done else { return };
        match outcome {
            AttemptOutcome::Answered => self.width.answered(),
            AttemptOutcome::Unanswered => self.width.unanswered(),
            AttemptOutcome::NotSent => return self.backlog.put_back(&id),
            AttemptOutcome::Withdrawn => {}
            // The lane sends nothing more.
            AttemptOutcome::ClaimLost => self.is_claimed = false,
        }
        self.backlog.finished(&id);
    }
}

/// The developer whose share of the slots this endpoint's lane uses.
async fn holder(dispatcher: &Dispatcher, endpoint: &WebhookId) -> Holder {
    let found = dispatcher.store.endpoint(endpoint).await;
    found.ok().flatten().map(|endpoint| endpoint.endpoint.developer_id)
}
