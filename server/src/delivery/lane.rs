//! A lane: sends the deliveries of one endpoint, several requests at a time.
//!
//! A lane acquires a permit before it loads a delivery, so a lane that waits for a permit has no delivery in memory. It
//! acquires the next permit while other requests are in flight, so it does not wait for them.

use std::{fmt::Display, sync::Arc};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use payments_core::{DeliveryId, WebhookId};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    attempt::{AttemptOutcome, Attempts, RETRY},
    backlog::Backlog,
    permits::{Holder, Permit},
    width::Width,
};
use crate::{
    domain::Outgoing,
    store::{Claim, StoreError},
};

pub(super) struct Lane {
    attempts: Arc<Attempts>,
    endpoint: WebhookId,
    /// Cancelled when the server shuts down or the claim no longer counts: no further request may start.
    stopping: CancellationToken,
    backlog: Backlog,
    width: Width,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Whether a future in `in_flight` waits for a permit, or for the store after an error.
    is_waiting: bool,
}

/// A finished future of the lane.
enum Done {
    Delivery(DeliveryId, AttemptOutcome),
    /// A permit for the next delivery; `None` after a store error, or if the lane stops.
    Permit(Option<Permit>),
}

impl Lane {
    pub(super) fn new(attempts: Arc<Attempts>, endpoint: WebhookId, stopping: CancellationToken) -> Self {
        let (backlog, width, in_flight) = (Backlog::default(), Width::new(), FuturesUnordered::new());
        Self { attempts, endpoint, stopping, backlog, width, in_flight, is_waiting: false }
    }

    /// Sends deliveries under `claim`, until the outbox is empty or `stopping` is cancelled and no request is in flight.
    /// `notify` signals new deliveries.
    ///
    /// A lane with an unreadable delivery does not end: the poll would claim its endpoint again and again.
    pub(super) async fn run(&mut self, claim: &Claim, notify: &Notify) {
        self.backlog.request_refill();
        let found = self.attempts.store.endpoint(&self.endpoint).await;
        let holder = found.ok().flatten().map(|found| found.endpoint.developer_id);
        loop {
            if self.can_send() {
                self.acquire_permit(holder.clone());
            }
            let is_stopping = self.stopping.is_cancelled();
            if self.in_flight.is_empty() && (is_stopping || self.backlog.is_empty()) {
                return;
            }
            tokio::select! {
                biased;
                Some(done) = self.in_flight.next() => self.done(done, claim).await,
                () = notify.notified() => self.backlog.request_refill(),
                () = self.stopping.cancelled(), if !is_stopping => {}
            }
        }
    }

    /// Whether one more request may be sent, before a refill.
    fn can_send(&self) -> bool {
        !self.is_waiting
            && !self.stopping.is_cancelled()
            && self.in_flight.len() < self.width.get()
            && (self.backlog.needs_refill() || self.backlog.next().is_some())
    }

    fn acquire_permit(&mut self, holder: Holder) {
        let (permits, stopping) = (Arc::clone(&self.attempts.permits), self.stopping.clone());
        self.is_waiting = true;
        self.in_flight
            .push(Box::pin(async move { Done::Permit(stopping.run_until_cancelled(permits.acquire(holder)).await) }));
    }

    async fn done(&mut self, done: Done, claim: &Claim) {
        match done {
            Done::Permit(permit) => {
                self.is_waiting = false;
                if let Some(permit) = permit.filter(|_| self.can_send()) {
                    self.send_next(permit, claim).await;
                }
            }
            Done::Delivery(id, AttemptOutcome::NotSent) => self.backlog.put_back(&id),
            Done::Delivery(id, outcome) => {
                self.backlog.finished(&id);
                match outcome {
                    AttemptOutcome::Answered => self.width.answered(),
                    AttemptOutcome::Unanswered => self.width.unanswered(),
                    AttemptOutcome::ClaimLost => self.stopping.cancel(),
                    AttemptOutcome::Withdrawn | AttemptOutcome::NotSent => {}
                }
            }
        }
    }

    /// Loads the next delivery and sends it with `permit`.
    async fn send_next(&mut self, mut permit: Permit, claim: &Claim) {
        match self.load().await {
            Ok(Some(outgoing)) => {
                // The payload is in memory twice: as it is stored and as it is sent.
                permit.shrink_to(2 * outgoing.delivery.payload.as_str().len());
                let (attempts, claim) = (Arc::clone(&self.attempts), claim.clone());
                let id = outgoing.delivery.id.clone();
                self.in_flight
                    .push(Box::pin(async move { Done::Delivery(id, attempts.make(outgoing, permit, claim).await) }));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, endpoint = %self.endpoint, "cannot read the outbox; retrying");
                self.backlog.request_refill();
                self.is_waiting = true;
                self.in_flight.push(Box::pin(async {
                    sleep(RETRY).await;
                    Done::Permit(None)
                }));
            }
        }
    }

    /// Loads the next delivery that may be sent; `None` if there is none.
    async fn load(&mut self) -> Result<Option<Outgoing>, StoreError> {
        let store = Arc::clone(&self.attempts.store);
        loop {
            let Some(id) = self.backlog.next().cloned() else {
                if !self.backlog.needs_refill() {
                    return Ok(None);
                }
                self.backlog.refill(store.outbox(&self.endpoint, self.backlog.refill_limit()).await?);
                continue;
            };
            match store.outgoing(&id).await {
                Ok(Some(outgoing)) => {
                    if self.backlog.loaded(&id, outgoing.subject.as_ref()) {
                        return Ok(Some(outgoing));
                    }
                }
                Ok(None) => self.skip(&id, &"its record is missing"),
                Err(error @ StoreError::Corrupt { .. }) => self.skip(&id, &error),
                Err(error) => return Err(error),
            }
        }
    }

    fn skip(&mut self, id: &DeliveryId, why: &dyn Display) {
        tracing::error!(delivery = %id, %why, "cannot load a delivery; it stays in the outbox unsent; run check");
        self.backlog.unreadable(id);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin, time::Duration};

    use futures_util::FutureExt as _;
    use payments_core::{DeliveryStatus, Environment, EventKind, RawJson};
    use tokio::time::timeout;

    use super::*;
    use crate::{
        ambient::{Ambient as _, OperatingSystem},
        delivery::{Sender, TargetPolicy},
        domain::Scope,
        metrics::{Deliveries, Metrics},
        process::descriptors::Shares,
        store::{Change, Lease, Work, Write, layout::MemoryStore},
    };

    fn attempts(store: &MemoryStore, metrics: Deliveries) -> Arc<Attempts> {
        let targets = TargetPolicy::new(false);
        let sender = Sender::new(Arc::new(OperatingSystem), targets, "Service", Shares::default()).unwrap();
        Attempts::new(store.store(), Arc::new(sender), metrics, 8, CancellationToken::new())
    }

    #[tokio::test]
    async fn a_lane_that_may_send_no_more_returns_the_permit_that_it_waited_for() {
        let (metrics, endpoint) = (Metrics::new().deliveries, "wh_1".parse::<WebhookId>().unwrap());
        let attempts = attempts(&MemoryStore::default(), metrics.clone());
        let mut lane = Lane::new(Arc::clone(&attempts), endpoint.clone(), CancellationToken::new());
        let claim = Claim { work: Work::Lane(endpoint), epoch: 1 };
        lane.in_flight.extend((0..2).map(|_| pending::<Done>().boxed()));
        lane.acquire_permit(None);
        lane.width.unanswered();
        assert_eq!(lane.in_flight.len() - 1, lane.width.get());
        let granted = lane.in_flight.next().await.unwrap();
        assert_eq!(metrics.permits.held.get(), 1);
        lane.done(granted, &claim).await;
        assert_eq!((lane.in_flight.len(), lane.is_waiting, metrics.permits.held.get()), (2, false, 0));
    }

    #[tokio::test]
    async fn a_lane_with_an_unreadable_delivery_sends_later_ones_at_once() {
        const MOMENT: Duration = Duration::from_millis(200);
        let (store, ambient) = (Arc::new(MemoryStore::default()), Arc::new(OperatingSystem));
        let endpoint: WebhookId = "wh_1".parse().unwrap();
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        let add = async |random| {
            let (now, payload) = (ambient.now(), RawJson::new("{}").unwrap());
            let id = DeliveryId::new(payments_core::Slot::FIRST, now, [random; payments_core::RANDOM_BYTES]);
            let delivery = Outgoing::new(id.clone(), &scope, &endpoint, &EventKind::TestPing, payload, now);
            store.commit(Change::of(Write::Delivery(Box::new(delivery)))).await.unwrap();
            id
        };
        let attempts = attempts(&store, Metrics::new().deliveries);
        store.lose_delivery(&add(1).await);
        let lease = Lease::new(ambient.now(), 10);
        let claim = store.claim_lane(&endpoint, &lease).await.unwrap().unwrap();
        let (stopping, notify) = (CancellationToken::new(), Notify::new());
        let mut lane = Lane::new(attempts, endpoint.clone(), stopping.clone());
        let mut lane = pin!(lane.run(&claim, &notify));
        assert!(timeout(MOMENT, &mut lane).await.is_err(), "the poll would claim the endpoint again");
        // The endpoint does not exist, so its deliveries end without a request.
        let readable = add(2).await;
        notify.notify_one();
        assert!(timeout(MOMENT, &mut lane).await.is_err());
        let sent = store.outgoing(&readable).await.unwrap().unwrap();
        assert_eq!(sent.delivery.status, DeliveryStatus::Failed);
        stopping.cancel();
        lane.await;
    }
}
