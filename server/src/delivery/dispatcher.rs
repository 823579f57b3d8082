//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has a lane of its own, so one that is slow or dead delays nobody else's events. A delivery is one
//! request of at most 8 seconds, not repeated (API specification, "Delivery"); its outcome is logged and it leaves the
//! outbox in one commit. What was under way at a crash is still in the outbox and is sent again.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use payments_core::{DeliveryStatus, WebhookId};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::{sleep, timeout},
};

use super::{Sender, lanes::Lanes, sender::ATTEMPT};
use crate::{
    metrics::{DeliveryLabels, DeliveryOutcome},
    store::{Change, Outgoing, Store, Write},
};

/// How many to one endpoint, as long as it answers. To one that does not, one: it holds no place that others need.
const LANE_WIDTH: usize = 8;
/// How many deliveries a lane takes from the outbox at a time.
const LANE_BATCH: usize = 16;
/// How long a lane rests after the store failed it.
const REST: Duration = Duration::from_secs(1);

/// Calls the endpoints that are owed something.
pub(crate) struct Dispatcher {
    store: Arc<dyn Store>,
    sender: Arc<Sender>,
    made: Family<DeliveryLabels, Counter>,
    lanes: Lanes,
    /// Whoever has waited longest gets the next place.
    workers: Semaphore,
    closing: watch::Sender<bool>,
}

impl Dispatcher {
    /// At most `places` requests are under way at once, to all endpoints together.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        sender: Arc<Sender>,
        made: Family<DeliveryLabels, Counter>,
        places: usize,
    ) -> Arc<Self> {
        let (workers, closing) = (Semaphore::new(places), watch::Sender::new(false));
        Arc::new(Self { store, sender, made, lanes: Lanes::new(), workers, closing })
    }

    /// Takes up what an earlier run left in the outbox, then whatever is put into it.
    pub(crate) async fn run(self: Arc<Self>, mut woken: mpsc::UnboundedReceiver<WebhookId>) {
        loop {
            let owed = match self.store.settled().await {
                Ok(()) => self.store.endpoints_with_outbox().await,
                Err(error) => Err(error),
            };
            match owed {
                Ok(endpoints) => {
                    endpoints.into_iter().for_each(|endpoint| self.wake(endpoint));
                    break;
                }
                Err(error) => {
                    tracing::error!(%error, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
        while let Some(endpoint) = woken.recv().await {
            self.wake(endpoint);
        }
    }

    /// Lets the requests under way end, for at most so long, and begins no other. What does not end stays in the outbox.
    pub(crate) async fn close(&self, at_most: Duration) {
        self.closing.send_replace(true);
        let _ = timeout(at_most.min(ATTEMPT), self.lanes.idle()).await;
    }

    fn wake(self: &Arc<Self>, endpoint: WebhookId) {
        if self.lanes.wake(&endpoint) {
            tokio::spawn(Arc::clone(self).work(endpoint));
        }
    }

    /// A lane at work: delivers until the endpoint is owed nothing.
    async fn work(self: Arc<Self>, endpoint: WebhookId) {
        let mut answers = true;
        loop {
            if *self.closing.borrow() {
                return self.lanes.end(&endpoint);
            }
            let (batch, width) = if answers { (LANE_BATCH, LANE_WIDTH) } else { (1, 1) };
            match self.store.outbox(&endpoint, batch).await {
                Ok(owed) if owed.is_empty() => {
                    if self.lanes.end_unless_woken(&endpoint) {
                        return;
                    }
                }
                Ok(owed) => {
                    let attempts = futures_util::stream::iter(owed).map(|outgoing| self.deliver(outgoing));
                    answers = attempts.buffer_unordered(width).fold(false, async |any, one| any || one).await;
                }
                Err(error) => {
                    tracing::error!(%error, %endpoint, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
    }

    /// Makes one attempt and logs it. Tells whether the endpoint answered.
    async fn deliver(&self, mut outgoing: Outgoing) -> bool {
        // It is never closed.
        let _place = self.workers.acquire().await;
        if *self.closing.borrow() {
            return false;
        }
        let outcome = match self.store.endpoint(&outgoing.delivery.webhook_id).await {
            Ok(Some(found)) if found.endpoint.is_active => {
                self.sender.attempt(&found.endpoint, &mut outgoing.delivery).await;
                match (&outgoing.delivery.status, outgoing.delivery.response_status) {
                    (DeliveryStatus::Success, _) => DeliveryOutcome::Success,
                    (_, Some(_)) => DeliveryOutcome::Refused,
                    (_, None) => DeliveryOutcome::Unanswered,
                }
            }
            Ok(_) => {
                outgoing.delivery.status = DeliveryStatus::Failed;
                DeliveryOutcome::Withdrawn
            }
            Err(error) => {
                tracing::error!(%error, delivery = %outgoing.delivery.id, "a delivery stays in the outbox");
                sleep(REST).await;
                return false;
            }
        };
        self.made.get_or_create(&DeliveryLabels { outcome }).inc();
        self.log(&outgoing).await;
        outgoing.delivery.response_status.is_some()
    }

    /// Logs an attempt, and tries to until it is logged: the endpoint has been called, and is not to be called again
    /// because our disk is full.
    async fn log(&self, outgoing: &Outgoing) {
        loop {
            let change = Change::of(Write::DeliveryEnded(Box::new(outgoing.clone())));
            let Err(error) = self.store.commit(change).await else { return };
            tracing::error!(%error, delivery = %outgoing.delivery.id, "an attempt could not be logged yet");
            if *self.closing.borrow() {
                return;
            }
            sleep(REST).await;
        }
    }
}
