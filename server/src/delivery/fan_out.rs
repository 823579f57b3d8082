//! Fan-out: turns events into deliveries, one for each subscribed endpoint.
//!
//! A payment is committed with its event, which is then pending; the deliveries follow in later commits. So a payment does
//! not wait for its deliveries, however many endpoints it has. Events that are pending at a crash are claimed again. The
//! worker polls for pending events; [`Bell`] makes it start at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use payments_core::{PaymentId, WebhookId};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::Dispatcher;
use crate::{
    ambient::Ambient,
    domain::{Endpoint, PendingEvent, fan_out},
    store::{Change, Claim, CommitError, Lease, Queue, ServerId, Store, StoreError, Work, Write},
};

/// Limits of one round: it claims this many events, and makes deliveries for about this many endpoints.
const EVENTS_PER_ROUND: usize = 64;
const ENDPOINTS_PER_ROUND: usize = 128;
/// How long the worker waits between polls without a [`Bell`].
const POLL: Duration = Duration::from_secs(1);
/// How long a crashed server holds its claims before another server takes over.
const LEASE_SECONDS: u32 = 30;
/// The longest wait of [`Bell::settled`].
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// Starts a round of the fan-out when there is a new event, and waits until events are fanned out.
pub(crate) struct Bell {
    rung: Notify,
    /// How many calls of [`settled`](Self::settled) have begun.
    calls: AtomicU64,
    /// How many of them had begun before a round that found no pending event.
    settled: watch::Sender<u64>,
}

impl Bell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { rung: Notify::new(), calls: AtomicU64::new(0), settled: watch::Sender::new(0) })
    }

    /// Starts a round of the fan-out.
    pub(crate) fn ring(&self) {
        self.rung.notify_one();
    }

    /// Waits, at most a second, until the events committed so far have their deliveries.
    pub(crate) async fn settled(&self) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let mut settled = self.settled.subscribe();
        self.ring();
        let _ = timeout(SETTLES_WITHIN, settled.wait_for(|settled| *settled >= call)).await;
    }
}

/// The fan-out worker.
pub(crate) struct FanOut {
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    dispatcher: Arc<Dispatcher>,
    server: ServerId,
    bell: Arc<Bell>,
}

/// One round's change for one payment, its events in order.
struct PaymentBatch {
    payment: PaymentId,
    change: Change,
    /// The endpoints of the new deliveries.
    endpoints: Vec<WebhookId>,
}

impl FanOut {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ambient: Arc<dyn Ambient>,
        dispatcher: Arc<Dispatcher>,
        server: ServerId,
        bell: Arc<Bell>,
    ) -> Self {
        Self { store, ambient, dispatcher, server, bell }
    }

    /// Fans events out. Never returns.
    pub(crate) async fn run(self) {
        loop {
            let calls = self.bell.calls.load(Ordering::SeqCst);
            match self.round().await {
                Ok(0) => {
                    self.bell.settled.send_replace(calls);
                    let _ = timeout(POLL, self.bell.rung.notified()).await;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot fan events out; retrying");
                    sleep(POLL).await;
                }
            }
        }
    }

    /// Fans out the oldest pending events. Returns how many it claimed.
    async fn round(&self) -> Result<usize, StoreError> {
        let lease = Lease::new(self.server, self.ambient.now(), LEASE_SECONDS);
        let mut claims = self.store.claim(Queue::FanOut, &lease, EVENTS_PER_ROUND).await?;
        let claimed = claims.len();
        let outcome = self.fan_out(&mut claims).await;
        for claim in &claims {
            self.store.release(claim).await?;
        }
        outcome.map(|()| claimed)
    }

    /// Makes the next deliveries of the claimed events. Removes unreadable events from `claims`: they are not released,
    /// so they are tried again only after their lease.
    async fn fan_out(&self, claims: &mut Vec<Claim>) -> Result<(), StoreError> {
        let mut batches: Vec<PaymentBatch> = Vec::new();
        let mut endpoints_left = ENDPOINTS_PER_ROUND;
        let mut unreadable = Vec::new();
        for claim in claims.iter() {
            // The others are released, and the next round claims them.
            if endpoints_left == 0 {
                break;
            }
            let Work::FanOut(id) = &claim.work else { continue };
            let (event, endpoints) = match self.store.pending_event(id, endpoints_left).await {
                Ok(Some(event)) => event,
                Ok(None) => continue,
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(%error, event = %id, "cannot read a pending event; run check");
                    unreadable.push(claim.clone());
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.add(&event, claim, &endpoints, endpoints.len() < endpoints_left, &mut batches);
            // An event without endpoints counts as one endpoint.
            endpoints_left = endpoints_left.saturating_sub(endpoints.len().max(1));
        }
        claims.retain(|claim| !unreadable.contains(claim));
        // In tasks of their own, so that one sync makes many of them durable.
        let mut commits = JoinSet::new();
        for batch in batches {
            commits.spawn(commit(Arc::clone(&self.store), Arc::clone(&self.dispatcher), batch));
        }
        commits.join_all().await.into_iter().collect()
    }

    /// Adds the deliveries of an event to `endpoints`, the next of its endpoints.
    fn add(
        &self,
        event: &PendingEvent,
        claim: &Claim,
        endpoints: &[Endpoint],
        is_last: bool,
        batches: &mut Vec<PaymentBatch>,
    ) {
        let at = batches.iter().position(|other| other.payment == event.payment).unwrap_or_else(|| {
            let (payment, change) = (event.payment.clone(), Change::default());
            batches.push(PaymentBatch { payment, change, endpoints: Vec::new() });
            batches.len() - 1
        });
        let PaymentBatch { change, endpoints: lanes, .. } = &mut batches[at];
        let after = endpoints.last().filter(|_| !is_last).map(|endpoint| endpoint.endpoint.id.clone());
        change.under.push(claim.clone());
        change.writes.push(Write::FannedOut { scope: event.scope.clone(), event: event.id.clone(), after });
        for delivery in fan_out(event, endpoints, || self.ambient.id_bytes()) {
            lanes.push(delivery.delivery.webhook_id.clone());
            change.writes.push(Write::Delivery(Box::new(delivery)));
        }
    }
}

async fn commit(store: Arc<dyn Store>, dispatcher: Arc<Dispatcher>, batch: PaymentBatch) -> Result<(), StoreError> {
    match store.commit(batch.change).await {
        Ok(()) => {
            for endpoint in &batch.endpoints {
                dispatcher.start_lane(endpoint).await;
            }
            Ok(())
        }
        // Another server has claimed the event and makes the deliveries.
        Err(CommitError::Conflict(_)) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
    }
}
