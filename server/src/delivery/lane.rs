//! A lane: delivers what one endpoint's outbox holds, as many requests at once as the endpoint takes.
//!
//! It asks for a place, reads names and loads one delivery only once it has the place, and asks for the next place
//! whatever the requests in flight do. So it waits for none of them, and a lane that waits for a place holds no delivery.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use payments_core::{DeliveryId, WebhookId};
use tokio::time::{Instant, interval_at, sleep};

use super::{
    backlog::Backlog,
    dispatcher::{Dispatcher, Ended},
    lanes::AtWork,
    places::{Holder, Place, Places},
    width::Width,
};
use crate::{
    domain::Outgoing,
    store::{Claim, StoreError},
};

/// How long a lane rests after the store failed it.
const REST: Duration = Duration::from_secs(1);
/// How often a lane's claim is renewed: several times in a lease.
const RENEWAL: Duration = Duration::from_secs(15);

/// A lane at work.
pub(super) struct Lane {
    dispatcher: Arc<Dispatcher>,
    claim: Claim,
    backlog: Backlog,
    width: Width,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Last, so that it is dropped last: when the endpoint may have another lane, this one has nothing in flight.
    at_work: AtWork,
}

/// What came of something that took time.
enum Done {
    Delivery(DeliveryId, Ended),
    /// The store failed a moment ago and may be asked again.
    Rest,
}

impl Lane {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, at_work: AtWork, claim: Claim) -> Self {
        let (backlog, width, in_flight) = (Backlog::new(), Width::new(), FuturesUnordered::new());
        Self { dispatcher, claim, backlog, width, in_flight, at_work }
    }

    /// Delivers until the outbox is empty, the server closes, or another server has the lane.
    pub(super) async fn work(mut self) {
        let (dispatcher, bell) = (Arc::clone(&self.dispatcher), self.at_work.bell());
        let holder = holder(&dispatcher, self.at_work.endpoint()).await;
        let mut renewal = interval_at(Instant::now() + RENEWAL, RENEWAL);
        let mut is_ours = true;
        let mut place: Option<Pin<Box<dyn Future<Output = Place> + Send>>> = None;
        loop {
            let is_closing = dispatcher.closing.is_cancelled() || !is_ours;
            if self.at_work.look_again() {
                self.backlog.fall_behind();
            }
            if is_closing || !self.has_room() {
                place = None;
            } else if place.is_none() {
                place = Some(Box::pin(Places::take(Arc::clone(&dispatcher.places), holder.clone())));
            }
            if place.is_none() && self.in_flight.is_empty() {
                // In this order: whoever finds no lane at work finds it unclaimed.
                dispatcher.release(&self.claim).await;
                if is_closing {
                    return;
                }
                let Some(at_work) = self.at_work.end_unless_woken() else { return };
                let Some(claim) = dispatcher.claim(at_work.endpoint()).await else { return };
                (self.at_work, self.claim) = (at_work, claim);
                self.backlog.fall_behind();
                continue;
            }
            tokio::select! {
                Some(done) = self.in_flight.next() => self.done(done),
                taken = async { place.as_mut()?.await.into() }, if place.is_some() => {
                    place = None;
                    if let Some(taken) = taken {
                        self.fill(taken).await;
                    }
                }
                () = bell.notified() => {}
                _ = renewal.tick() => is_ours = is_ours && dispatcher.renew(&self.claim).await,
                () = dispatcher.closing.cancelled(), if !is_closing => {}
            }
        }
    }

    /// Whether one more request can be sent, as far as is known without looking.
    fn has_room(&self) -> bool {
        self.in_flight.len() < self.width.get() && (self.backlog.is_behind() || self.backlog.next().is_some())
    }

    /// Loads the next delivery that may be sent into a place, and sends it.
    async fn fill(&mut self, mut place: Place) {
        match self.load().await {
            Ok(Some(outgoing)) => {
                // It is in memory as it is stored and as it is sent.
                place.loaded(2 * outgoing.delivery.payload.as_str().len());
                let (dispatcher, claim) = (Arc::clone(&self.dispatcher), self.claim.clone());
                let id = outgoing.delivery.id.clone();
                self.in_flight.push(Box::pin(async move {
                    let ended = dispatcher.deliver(outgoing, place, claim).await;
                    Done::Delivery(id, ended)
                }));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, endpoint = %self.at_work.endpoint(), "the outbox cannot be read; it is read again");
                self.backlog.fall_behind();
                self.in_flight.push(Box::pin(async {
                    sleep(REST).await;
                    Done::Rest
                }));
            }
        }
    }

    /// The next delivery that may be sent; `None` if there is none.
    async fn load(&mut self) -> Result<Option<Outgoing>, StoreError> {
        let store = Arc::clone(&self.dispatcher.store);
        loop {
            let Some(id) = self.backlog.next().cloned() else {
                if !self.backlog.is_behind() {
                    return Ok(None);
                }
                self.backlog.refill(store.outbox(self.at_work.endpoint(), self.backlog.reach()).await?);
                continue;
            };
            match store.outgoing(&id).await {
                Ok(Some(outgoing)) => {
                    if self.backlog.loaded(&id, outgoing.payment.as_ref()) {
                        return Ok(Some(outgoing));
                    }
                }
                Ok(None) => self.pass_over(&id, "its record is not there"),
                Err(error @ StoreError::Corrupt { .. }) => self.pass_over(&id, &error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }

    fn pass_over(&mut self, id: &DeliveryId, why: &str) {
        tracing::error!(delivery = %id, why, "a delivery stays in the outbox and is not sent; run check");
        self.backlog.unreadable(id);
    }

    fn done(&mut self, done: Done) {
        let Done::Delivery(id, ended) = done else { return };
        match ended {
            Ended::Answered => self.width.answered(),
            Ended::Unanswered => self.width.unanswered(),
            Ended::NotSent => return self.backlog.not_sent(&id),
            Ended::GivenUp => {}
        }
        self.backlog.ended(&id);
    }
}

/// Whose share of the places an endpoint's lane uses.
async fn holder(dispatcher: &Dispatcher, endpoint: &WebhookId) -> Holder {
    let found = dispatcher.store.endpoint(endpoint).await;
    found.ok().flatten().map(|endpoint| endpoint.endpoint.developer_id)
}
