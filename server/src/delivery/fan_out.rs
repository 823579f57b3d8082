//! Fan-out: turns events into deliveries, one for each subscribed endpoint.
//!
//! A payment is committed with its event, which is then pending. The deliveries follow in later commits. So a payment does
//! not wait for its deliveries, however many endpoints it has. Events that are pending at a crash are claimed again. The
//! worker polls for pending events; [`FanOutSignal`] makes it start at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, future::join_all, stream};
use payments_core::Timestamp;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::Dispatcher;
use crate::{
    ambient::Ambient,
    domain::{Subject, fan_out},
    metrics::FanOutTimes,
    store::{Change, Claim, CommitError, LEASE_SECONDS, Lease, Queue, Store, StoreError, Work, Write},
};

/// Limits of one round: it claims this many events, and makes deliveries for about this many endpoints.
const EVENTS_PER_ROUND: usize = 64;
const ENDPOINTS_PER_ROUND: usize = 128;
/// How many events are read at a time. Events read beyond [`ENDPOINTS_PER_ROUND`] are read again in the next round.
const READ_AHEAD: usize = 4;
/// How long the worker waits between polls without a [`FanOutSignal`].
const POLL: Duration = Duration::from_secs(1);
/// The longest wait of [`FanOutSignal::settled`].
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// Starts a round of the fan-out when there is a new event, and waits until events are fanned out.
#[derive(Default)]
pub struct FanOutSignal {
    new_event: Notify,
    /// How many calls of [`settled`](Self::settled) have begun.
    calls: AtomicU64,
    /// How many of these calls had begun before a round that found no pending event.
    settled: watch::Sender<u64>,
}

impl FanOutSignal {
    pub fn notify(&self) {
        self.new_event.notify_one();
    }

    /// Waits, at most a second, until the events committed so far have their deliveries.
    pub async fn settled(&self) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let mut settled = self.settled.subscribe();
        self.notify();
        let _ = timeout(SETTLES_WITHIN, settled.wait_for(|settled| *settled >= call)).await;
    }
}

pub struct FanOut {
    pub store: Arc<Store>,
    pub ambient: Arc<dyn Ambient>,
    pub dispatcher: Arc<Dispatcher>,
    pub signal: Arc<FanOutSignal>,
    pub times: FanOutTimes,
}

impl FanOut {
    /// Fans events out. Never returns.
    pub async fn run(self) {
        loop {
            let calls = self.signal.calls.load(Ordering::SeqCst);
            match self.round().await {
                Ok(0) => {
                    self.signal.settled.send_replace(calls);
                    let _ = timeout(POLL, self.signal.new_event.notified()).await;
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
        let lease = Lease::new(self.ambient.now(), LEASE_SECONDS);
        let mut claims = self.store.claim(Queue::FanOut, &lease, EVENTS_PER_ROUND).await?;
        let claimed = claims.len();
        let outcome = self.fan_out(&mut claims).await;
        let released = self.store.release(&claims).await;
        outcome.and(released).map(|()| claimed)
    }

    /// Makes the next deliveries of the claimed events. Removes unreadable events from `claims`: they are not released, so
    /// they are tried again only after their lease.
    async fn fan_out(&self, claims: &mut Vec<Claim>) -> Result<(), StoreError> {
        // One change for each payment, with its events in order.
        let mut changes: Vec<SubjectChange> = Vec::new();
        let mut endpoints_left = ENDPOINTS_PER_ROUND;
        let mut unreadable = Vec::new();
        let read = |claim: Claim| async {
            let next = match &claim.work {
                Work::FanOut(id) => self.store.pending_event(id, ENDPOINTS_PER_ROUND).await,
                _ => Ok(None),
            };
            (claim, next)
        };
        let mut events = stream::iter(claims.clone()).map(read).buffered(READ_AHEAD);
        // The remaining claims are released, and the next round claims those events.
        while endpoints_left > 0 {
            let Some((claim, event)) = events.next().await else { break };
            let (event, mut endpoints) = match event {
                Ok(Some(event)) => event,
                Ok(None) => continue,
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(%error, ?claim, "cannot read a pending event; run check");
                    unreadable.push(claim);
                    continue;
                }
                Err(error) => return Err(error),
            };
            endpoints.truncate(endpoints_left);
            let has_more = endpoints.len() == endpoints_left;
            let after = endpoints.last().filter(|_| has_more).map(|endpoint| endpoint.endpoint.id.clone());
            let at = changes.iter().position(|change| change.subject == event.subject).unwrap_or_else(|| {
                let subject = event.subject.clone();
                changes.push(SubjectChange { subject, change: Change::default(), finished: Vec::new() });
                changes.len() - 1
            });
            let SubjectChange { change, finished, .. } = &mut changes[at];
            finished.extend(after.is_none().then_some(event.created_at));
            change.under.push(claim);
            change.writes.push(Write::FannedOut { scope: event.scope.clone(), event: event.id.clone(), after });
            let deliveries = fan_out(&event, &endpoints, || self.ambient.id_bytes());
            change.writes.extend(deliveries.into_iter().map(|delivery| Write::Delivery(Box::new(delivery))));
            // An event without endpoints counts as one endpoint.
            endpoints_left = endpoints_left.saturating_sub(endpoints.len().max(1));
        }
        drop(events);
        claims.retain(|claim| !unreadable.contains(claim));
        // Commit them together, so that one sync makes many durable, and in order, so that a list of deliveries has the order
        // of their events.
        let commits = changes.into_iter().map(|change| self.commit(change));
        join_all(commits).await.into_iter().collect()
    }

    /// Commits deliveries and starts the lanes of their endpoints.
    async fn commit(&self, SubjectChange { change, finished, .. }: SubjectChange) -> Result<(), StoreError> {
        let endpoint_of = |write: &Write| match write {
            Write::Delivery(outgoing) => Some(outgoing.delivery.webhook_id.clone()),
            _ => None,
        };
        let endpoints: Vec<_> = change.writes.iter().filter_map(endpoint_of).collect();
        match self.store.commit(change).await {
            Ok(_) => {
                let now = self.ambient.now();
                finished.into_iter().for_each(|created_at| self.times.fanned_out(created_at, now));
                for endpoint in &endpoints {
                    self.dispatcher.start_lane(endpoint).await;
                }
                Ok(())
            }
            // Another server has claimed the event and makes the deliveries.
            Err(CommitError::Conflict(_)) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
        }
    }
}

/// The next deliveries of the events of one payment or payout.
struct SubjectChange {
    subject: Subject,
    change: Change,
    /// When each event was created that has all its deliveries with this change.
    finished: Vec<Timestamp>,
}
