//! Fan-out: turns events into deliveries, one for each subscribed endpoint.
//!
//! A payment's event is committed with the payment, as pending, and its deliveries are made afterwards. So a payment does not
//! wait for its deliveries, however many endpoints its developer has. What is pending at a crash is claimed again. The
//! worker polls for pending events; [`Bell`] only makes it prompt.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use payments_core::{PaymentId, WebhookId};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::Dispatcher;
use crate::{
    ambient::Ambient,
    domain::{Endpoint, PendingEvent, fan_out},
    store::{Change, Claim, CommitError, Lease, Queue, ServerId, Store, StoreError, Work, Write},
};

/// How many events, and about how many endpoints, one round looks at. Everybody's next event waits for a round.
const EVENTS_PER_ROUND: usize = 64;
const ENDPOINTS_PER_ROUND: usize = 128;
/// How long the worker waits for the bell before it polls.
const POLL: Duration = Duration::from_secs(1);
/// How long a server may take for a round before another one takes over.
const LEASE_SECONDS: u32 = 30;
/// How long [`Bell::settled`] waits.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// Rings for the worker when there is a new event, and tells when all events so far have their deliveries.
pub(crate) struct Bell {
    rung: Notify,
    /// How many have asked in [`settled`](Self::settled).
    asked: AtomicU64,
    /// How many of them had asked before a round that found no event.
    settled: watch::Sender<u64>,
}

impl Bell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { rung: Notify::new(), asked: AtomicU64::new(0), settled: watch::Sender::new(0) })
    }

    /// There is a new event.
    pub(crate) fn ring(&self) {
        self.rung.notify_one();
    }

    /// Waits until the events committed before this moment have their deliveries, for a second at most.
    pub(crate) async fn settled(&self) {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut settled = self.settled.subscribe();
        self.ring();
        let _ = timeout(SETTLES_WITHIN, settled.wait_for(|settled| *settled >= asked)).await;
    }
}

/// The worker.
pub(crate) struct FanOut {
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    dispatcher: Arc<Dispatcher>,
    server: ServerId,
    bell: Arc<Bell>,
}

/// What a round writes for one payment: its events in their order.
struct OfPayment {
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

    /// Fans events out for as long as it is polled.
    pub(crate) async fn run(self) {
        loop {
            let asked = self.bell.asked.load(Ordering::SeqCst);
            match self.round().await {
                Ok(0) => {
                    self.bell.settled.send_replace(asked);
                    let _ = timeout(POLL, self.bell.rung.notified()).await;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "events could not be fanned out; it is tried again");
                    sleep(error.retry_after()).await;
                }
            }
        }
    }

    /// Looks at the oldest pending events; how many it claimed.
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

    /// Makes the next deliveries of claimed events. A claim on an unreadable event is taken out of `claims`: it is not
    /// released, and the event is tried again when its lease is over.
    async fn fan_out(&self, claims: &mut Vec<Claim>) -> Result<(), StoreError> {
        let mut of_payments: Vec<OfPayment> = Vec::new();
        let mut left = ENDPOINTS_PER_ROUND;
        let mut unreadable = Vec::new();
        for claim in claims.iter().take_while(|_| left > 0).collect::<Vec<_>>() {
            let Work::FanOut(id) = &claim.work else { continue };
            let (event, endpoints) = match self.store.pending_event(id, left).await {
                Ok(Some(event)) => event,
                Ok(None) => continue,
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(%error, event = %id, "an event cannot be fanned out; run check");
                    unreadable.push(claim.clone());
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.add(&event, claim, &endpoints, endpoints.len() < left, &mut of_payments);
            // An event costs something too, even if it has no endpoints.
            left = left.saturating_sub(endpoints.len().max(1));
        }
        claims.retain(|claim| !unreadable.contains(claim));
        let commits = of_payments.into_iter().map(|of_payment| self.commit(of_payment));
        join_all(commits).await.into_iter().collect()
    }

    /// Adds an event's deliveries to its next endpoints, which may be its last.
    fn add(
        &self,
        event: &PendingEvent,
        claim: &Claim,
        endpoints: &[Endpoint],
        are_last: bool,
        of_payments: &mut Vec<OfPayment>,
    ) {
        let at = of_payments.iter().position(|other| other.payment == event.payment).unwrap_or_else(|| {
            let (payment, change) = (event.payment.clone(), Change::default());
            of_payments.push(OfPayment { payment, change, endpoints: Vec::new() });
            of_payments.len() - 1
        });
        let OfPayment { change, endpoints: woken, .. } = &mut of_payments[at];
        let after = endpoints.last().filter(|_| !are_last).map(|endpoint| endpoint.endpoint.id.clone());
        change.under.push(claim.clone());
        change.writes.push(Write::FannedOut { scope: event.scope.clone(), event: event.id.clone(), after });
        for delivery in fan_out(event, endpoints, || self.ambient.id_bytes()) {
            woken.push(delivery.delivery.webhook_id.clone());
            change.writes.push(Write::Delivery(Box::new(delivery)));
        }
    }

    async fn commit(&self, of_payment: OfPayment) -> Result<(), StoreError> {
        match self.store.commit(of_payment.change).await {
            Ok(()) => {
                for endpoint in &of_payment.endpoints {
                    self.dispatcher.wake(endpoint).await;
                }
                Ok(())
            }
            // Another server took over, and makes the deliveries.
            Err(CommitError::Conflict(_)) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}
