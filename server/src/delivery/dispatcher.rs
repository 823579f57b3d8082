//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has a [lane](super::lane) of its own, so one that is slow or dead delays nobody else's events. A delivery
//! is one request of at most 8 seconds, not repeated (API specification, "Delivery"); its outcome is logged and it leaves
//! the outbox in one commit. What was in flight at a crash is still in the outbox and is sent again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use payments_core::{DeliveryStatus, WebhookId};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    Sender, fault,
    lane::Lane,
    lanes::Lanes,
    places::{Place, Places},
    sender::{ATTEMPT, LONGEST_ATTEMPT},
};
use crate::{
    domain::Outgoing,
    metrics::{Deliveries, DeliveryLabels, DeliveryOutcome},
    store::{Change, Store, Write},
};

/// How long to wait after the store failed.
const REST: Duration = Duration::from_secs(1);

/// Calls the endpoints whose outboxes are not empty.
pub(crate) struct Dispatcher {
    pub(super) store: Arc<dyn Store>,
    sender: Arc<Sender>,
    metrics: Deliveries,
    pub(super) lanes: Arc<Lanes>,
    pub(super) places: Arc<Places>,
    closing: watch::Sender<bool>,
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
    /// A dispatcher that has at most so many requests in flight.
    pub(crate) fn new(store: Arc<dyn Store>, sender: Arc<Sender>, metrics: Deliveries, places: usize) -> Arc<Self> {
        let places = Places::new(places, metrics.places.clone());
        let (lanes, closing) = (Arc::new(Lanes::new()), watch::Sender::new(false));
        Arc::new(Self { store, sender, metrics, lanes, places, closing, complaints: Complaints::default() })
    }

    /// Takes up what an earlier run left in the outbox, then whatever is put into it.
    pub(crate) async fn run(self: Arc<Self>, mut woken: mpsc::UnboundedReceiver<WebhookId>) {
        loop {
            let waiting = match self.store.settled().await {
                Ok(()) => self.store.endpoints_with_outbox().await,
                Err(error) => Err(error),
            };
            match waiting {
                Ok(endpoints) => {
                    endpoints.iter().for_each(|endpoint| self.wake(endpoint));
                    break;
                }
                Err(error) => {
                    tracing::error!(%error, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
        while let Some(endpoint) = woken.recv().await {
            self.wake(&endpoint);
        }
    }

    /// Lets the requests in flight end, for at most so long, and begins no other. What does not end stays in the outbox.
    pub(crate) async fn close(&self, at_most: Duration) {
        self.closing.send_replace(true);
        let _ = timeout(at_most.min(LONGEST_ATTEMPT), self.lanes.idle()).await;
    }

    /// Tells when the dispatcher closes.
    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    fn wake(self: &Arc<Self>, endpoint: &WebhookId) {
        if let Some(at_work) = self.lanes.wake(endpoint) {
            tokio::spawn(Lane::new(Arc::clone(self), at_work).work());
        }
    }

    /// Makes one attempt and logs it. The place is held until then: what cannot be logged is not to be called further.
    pub(super) async fn deliver(&self, mut outgoing: Outgoing, place: Place) -> Ended {
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
        self.metrics.made.get_or_create(&DeliveryLabels { outcome }).inc();
        self.log(&outgoing).await;
        ended
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
