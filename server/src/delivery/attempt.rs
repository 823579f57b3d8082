//! Delivery attempts: each is one request for a delivery in the outbox. One commit logs its outcome, removes the delivery
//! from the outbox and, for an endpoint with retries, plans the next attempt.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use payments_core::{Delivery, DeliveryError, DeliveryErrorCode, DeliveryStatus};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    Sender,
    permits::{Permit, Permits},
    sender::ATTEMPT_TIMEOUT,
};
use crate::{
    domain::{Endpoint, Outgoing, after_attempt},
    metrics::{Deliveries, DeliveryOutcome},
    store::{Change, Claim, CommitError, Conflict, Store, Write},
    trace,
};

/// How long to wait after a store error, or when this server lacks a resource.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about a lack of resources.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Makes and logs delivery attempts, each with a permit.
pub(super) struct Attempts {
    pub(super) store: Arc<Store>,
    pub(super) permits: Arc<Permits>,
    sender: Arc<Sender>,
    metrics: Deliveries,
    /// Cancelled when the server shuts down.
    closing: CancellationToken,
    last_logged: Mutex<Option<Instant>>,
}

/// The outcome of a delivery attempt, as its lane needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The endpoint responded in time.
    Answered,
    /// The endpoint did not respond, or its response did not end in time.
    Unanswered,
    /// The endpoint is inactive or removed.
    Withdrawn,
    /// This server could not send the request. The delivery is still in the outbox.
    NotSent,
    /// The request was sent but not logged: the claim on the lane no longer counts.
    ClaimLost,
}

/// An attempt that was made, or that its endpoint no longer wants.
struct Sent {
    outcome: AttemptOutcome,
    label: DeliveryOutcome,
    /// The endpoint that was called.
    endpoint: Option<Endpoint>,
}

impl Attempts {
    /// At most `permits` attempts are in flight. After `closing`, an attempt that cannot be logged is not tried again.
    pub(super) fn new(
        store: Arc<Store>,
        sender: Arc<Sender>,
        metrics: Deliveries,
        permits: usize,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let permits = Permits::new(permits, metrics.permits.clone());
        Arc::new(Self { store, permits, sender, metrics, closing, last_logged: Mutex::default() })
    }

    /// Makes one delivery attempt and logs it. Holds the permit until it is logged: while logging fails, no further request
    /// starts.
    pub(super) async fn make(&self, mut outgoing: Outgoing, permit: Permit, claim: Claim) -> AttemptOutcome {
        let Some(Sent { outcome, label, endpoint }) =
            trace::attempts_of(outgoing.event.as_ref(), self.send(&mut outgoing.delivery)).await
        else {
            drop(permit);
            sleep(RETRY).await;
            return AttemptOutcome::NotSent;
        };
        (outgoing.version, outgoing.due_since) = (outgoing.version + 1, None);
        self.metrics.made.get_or_create(&[("outcome", label)]).inc();
        if let (Some(_), Some(millis)) = (&endpoint, outgoing.delivery.duration_ms) {
            self.metrics.seconds.observe(Duration::from_millis(millis).as_secs_f64());
        }
        if self.log(&outgoing, endpoint, &claim).await { outcome } else { AttemptOutcome::ClaimLost }
    }

    /// Sends the request and writes its outcome into the delivery; `None` if this server could not send it.
    async fn send(&self, delivery: &mut Delivery) -> Option<Sent> {
        let found = self.store.endpoint(&delivery.webhook_id).await.inspect_err(|error| {
            tracing::error!(%error, delivery = %delivery.id, "cannot read the endpoint; the delivery stays in the outbox");
        });
        let Some(found) = found.ok()?.filter(|found| found.endpoint.is_active) else {
            delivery.status = DeliveryStatus::Failed;
            let message = "the endpoint was removed before this delivery was sent";
            delivery.error = Some(DeliveryError::new(DeliveryErrorCode::EndpointRemoved, message));
            (delivery.response_status, delivery.response_body, delivery.delivered_at) = (None, None, None);
            let (outcome, label) = (AttemptOutcome::Withdrawn, DeliveryOutcome::Withdrawn);
            return Some(Sent { outcome, label, endpoint: None });
        };
        if let Err(exhausted) = self.sender.attempt(&found, delivery).await {
            self.metrics.not_sent.inc();
            if self.may_log() {
                tracing::error!(error = %exhausted, "webhooks stay in the outbox; retrying");
            }
            return None;
        }
        let label = match (&delivery.status, delivery.response_status) {
            (DeliveryStatus::Success, _) => DeliveryOutcome::Success,
            (_, Some(_)) => DeliveryOutcome::Refused,
            (_, None) => DeliveryOutcome::Unanswered,
        };
        // A response that did not end in time held the permit as long as no response would.
        let in_time = delivery.duration_ms.is_none_or(|took| u128::from(took) < ATTEMPT_TIMEOUT.as_millis());
        let is_answered = delivery.response_status.is_some() && in_time;
        let outcome = if is_answered { AttemptOutcome::Answered } else { AttemptOutcome::Unanswered };
        Some(Sent { outcome, label, endpoint: Some(found) })
    }

    fn may_log(&self) -> bool {
        let mut last = self.last_logged.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= LOG_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    /// Logs a delivery attempt and its consequences. Retries until that succeeds: a full disk must not make the endpoint
    /// receive the delivery twice. `endpoint` is the endpoint as it was read, `None` if no attempt was made. Returns false if
    /// the claim on the lane no longer counts.
    async fn log(&self, attempted: &Outgoing, mut endpoint: Option<Endpoint>, claim: &Claim) -> bool {
        let id = &attempted.delivery.id;
        let ambient = &self.sender.ambient;
        let (now, random) = (ambient.now(), ambient.random());
        let version = |endpoint: &Endpoint| endpoint.version;
        loop {
            let (outgoing, changed) = match &endpoint {
                Some(endpoint) => after_attempt(attempted, endpoint, now, random),
                None => (attempted.clone(), None),
            };
            let disabled = changed.as_ref().and_then(|changed| changed.endpoint.disabled_reason.clone());
            let mut change = Change { under: vec![claim.clone()], ..Change::default() };
            change.writes.push(Write::DeliveryChanged(Box::new(outgoing)));
            change.writes.extend(changed.map(|changed| Write::EndpointChanged(Box::new(changed))));
            let changes_endpoint = change.writes.len() > 1;
            match self.store.commit(change).await {
                Ok(_) => {
                    if let Some(reason) = disabled {
                        tracing::warn!(endpoint = %attempted.delivery.webhook_id, delivery = %id, %reason,
                            "webhook endpoint disabled after a failed attempt");
                    }
                    return true;
                }
                Err(CommitError::Conflict(Conflict::Stale)) if changes_endpoint => {
                    match self.store.endpoint(&attempted.delivery.webhook_id).await {
                        // The endpoint has been changed or removed: decide again.
                        Ok(read) if read.as_ref().map(version) != endpoint.as_ref().map(version) => {
                            endpoint = read;
                            continue;
                        }
                        Ok(_) => {
                            tracing::warn!(delivery = %id, "delivery attempt not logged; it has been logged already");
                            return false;
                        }
                        Err(error) => {
                            tracing::error!(%error, delivery = %id, "cannot log a delivery attempt; retrying")
                        }
                    }
                }
                Err(CommitError::Conflict(conflict)) => {
                    tracing::warn!(%conflict, delivery = %id, "delivery attempt not logged; another server makes its own");
                    return false;
                }
                Err(error) => tracing::error!(%error, delivery = %id, "cannot log a delivery attempt; retrying"),
            }
            if self.closing.is_cancelled() {
                return true;
            }
            sleep(RETRY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{sender_to, shop::Shop, virtual_time},
        *,
    };
    use crate::{metrics::Metrics, store::layout::MemoryStore};

    #[tokio::test]
    async fn the_log_reports_a_lack_of_resources_once_in_ten_seconds() {
        let sender = sender_to(&Shop::new(|_| unreachable!()), &virtual_time());
        let (metrics, closing) = (Metrics::new().deliveries, CancellationToken::new());
        let attempts = Attempts::new(MemoryStore::default().into_store(), sender, metrics, 1, closing);
        assert!(attempts.may_log() && !attempts.may_log() && !attempts.may_log());
        *attempts.last_logged.lock() = Instant::now().checked_sub(LOG_INTERVAL);
        assert!(attempts.may_log() && !attempts.may_log());
    }
}
