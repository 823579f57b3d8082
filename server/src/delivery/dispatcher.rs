//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has a lane of its own, so one that is slow or dead delays nobody else's events. A delivery is one
//! request of at most 8 seconds, not repeated (API specification, "Delivery"); its outcome is logged and it leaves the
//! outbox in one commit. What was under way at a crash is still in the outbox and is sent again.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use payments_core::{DeliveryStatus, WebhookId};
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{Sender, sender::ATTEMPT};
use crate::{
    metrics::{DeliveryLabels, DeliveryOutcome},
    store::{Change, Outgoing, Store, Write},
};

/// How many requests to one endpoint may be under way at once.
const LANE_WIDTH: usize = 8;
/// How many deliveries a lane takes from the outbox at a time.
const LANE_BATCH: usize = 64;
/// How long a lane rests after the store failed it.
const REST: Duration = Duration::from_secs(1);

/// Calls the endpoints that are owed something.
pub(crate) struct Dispatcher {
    store: Arc<dyn Store>,
    sender: Arc<Sender>,
    made: Family<DeliveryLabels, Counter>,
    lanes: Mutex<HashMap<WebhookId, Lane>>,
    idle: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

/// A lane that is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// It will end when it finds the outbox empty.
    Busy,
    /// Something was put into the outbox since it last looked.
    Woken,
}

impl Dispatcher {
    pub(crate) fn new(store: Arc<dyn Store>, sender: Arc<Sender>, made: Family<DeliveryLabels, Counter>) -> Arc<Self> {
        Arc::new(Self {
            store,
            sender,
            made,
            lanes: Mutex::default(),
            idle: watch::Sender::new(true),
            closing: watch::Sender::new(false),
        })
    }

    /// Takes up what an earlier run left in the outbox, then whatever is put into it.
    pub(crate) async fn run(self: Arc<Self>, mut woken: mpsc::UnboundedReceiver<WebhookId>) {
        loop {
            match self.store.endpoints_with_outbox().await {
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
        let _ = timeout(at_most.min(ATTEMPT), self.idle.subscribe().wait_for(|idle| *idle)).await;
    }

    fn wake(self: &Arc<Self>, endpoint: WebhookId) {
        match self.lanes().entry(endpoint.clone()) {
            Entry::Occupied(mut lane) => {
                lane.insert(Lane::Woken);
            }
            Entry::Vacant(lane) => {
                lane.insert(Lane::Busy);
                self.idle.send_replace(false);
                tokio::spawn(Arc::clone(self).work(endpoint));
            }
        }
    }

    /// A lane at work: delivers until the endpoint is owed nothing.
    async fn work(self: Arc<Self>, endpoint: WebhookId) {
        loop {
            if *self.closing.borrow() {
                return self.leave(self.lanes(), &endpoint);
            }
            match self.store.outbox(&endpoint, LANE_BATCH).await {
                Ok(owed) if owed.is_empty() => {
                    // Under one lock, so that whoever wakes the lane now either is seen or starts it anew.
                    let mut lanes = self.lanes();
                    if lanes.get(&endpoint) != Some(&Lane::Woken) {
                        return self.leave(lanes, &endpoint);
                    }
                    lanes.insert(endpoint.clone(), Lane::Busy);
                }
                Ok(owed) => {
                    futures_util::stream::iter(owed)
                        .for_each_concurrent(LANE_WIDTH, |outgoing| self.deliver(outgoing))
                        .await;
                }
                Err(error) => {
                    tracing::error!(%error, %endpoint, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
    }

    fn leave(&self, mut lanes: MutexGuard<'_, HashMap<WebhookId, Lane>>, endpoint: &WebhookId) {
        lanes.remove(endpoint);
        if lanes.is_empty() {
            self.idle.send_replace(true);
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<WebhookId, Lane>> {
        // No code panics while it holds the lock, and the map is whole between any two of its lines.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one attempt and logs it.
    async fn deliver(&self, mut outgoing: Outgoing) {
        if *self.closing.borrow() {
            return;
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
            Err(error) => return self.put_off(&outgoing, &error).await,
        };
        self.made.get_or_create(&DeliveryLabels { outcome }).inc();
        let change = Change::of(Write::DeliveryEnded(Box::new(outgoing.clone())));
        if let Err(error) = self.store.commit(change).await {
            self.put_off(&outgoing, &error).await;
        }
    }

    /// The delivery stays in the outbox; the lane will find it again.
    async fn put_off(&self, outgoing: &Outgoing, error: &(dyn std::error::Error + Sync)) {
        tracing::error!(%error, delivery = %outgoing.delivery.id, "a delivery could not be logged and stays in the outbox");
        sleep(REST).await;
    }
}
