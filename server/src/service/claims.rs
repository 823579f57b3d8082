//! Runs an effect outside the store once per `Idempotency-Key`: a test ping, or a refund at a gateway.
//!
//! If the effect is itself a commit, the store accepts only the first commit under a key. An effect outside the store
//! cannot share a commit with its record. So the request claims its key first, with a lease:
//!
//! 1. It commits the claim. The store refuses if the key has a stored response or another holder.
//! 2. It performs the effect.
//! 3. It stores the response, records the effect and ends the claim, in one commit. If the effect fails, the request
//!    releases the claim, and the key can be used again.
//!
//! Requests that find the key claimed wait for the claim's end. Then they get the response or claim the key themselves.
//! The next start voids claims that a crash left. If a claim cannot be released, its lease ends it.
//!
//! The effect runs in a task of its own, so the server still records it if the client disconnects.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use payments_core::{DeveloperId, Timestamp};
use tokio::{
    sync::Notify,
    task::JoinError,
    time::{Instant, timeout_at},
};
use tracing::Instrument;

use super::{Acting, Answer, IdempotentRequest, Result, Service, ServiceError};
use crate::domain::{ClaimToken, IdempotencyKey, KeyClaim};
use crate::metrics::BudgetMetrics;
use crate::process::budget::{Budget, Held};
use crate::store::{Change, CommitError, Conflict, StoreError, Write};
use crate::trace;

/// Maximum effects of a kind in progress, with or without a key. One developer gets at most half.
const MAX_IN_PROGRESS: i64 = 128;
/// Time for the commits around an effect. A request waits for another request's effect at most the effect's bound plus this.
const MARGIN: Duration = Duration::from_secs(2);
/// A lease lasts twice the effect's bound plus this.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// Number of wake-up signals that all keys share. A request woken for another key checks its own and waits again.
const WAKE_UPS: usize = 64;

/// Tells waiting requests of this process when a claim ends, and limits the effects in progress.
pub struct Claims {
    ended: [Notify; WAKE_UPS],
    pings: Arc<Budget<DeveloperId>>,
    refunds: Arc<Budget<DeveloperId>>,
}

/// A kind of effect. Each has permits of its own, so a slow gateway stops no test pings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effect {
    TestPing,
    Refund,
}

impl Claims {
    /// The metrics show the effects in progress.
    pub fn new(metrics: &BudgetMetrics) -> Self {
        let permits = || Budget::new(MAX_IN_PROGRESS, metrics.clone());
        Self { ended: std::array::from_fn(|_| Notify::new()), pings: permits(), refunds: permits() }
    }

    fn ended(&self, key: &IdempotencyKey) -> &Notify {
        // The digest's bytes are uniformly distributed.
        &self.ended[usize::from(key.digest[0]) % WAKE_UPS]
    }

    /// Takes a permit until the result is dropped.
    fn enter(&self, effect: Effect, developer: &DeveloperId) -> Result<Held<DeveloperId>> {
        let permits = match effect {
            Effect::TestPing => &self.pings,
            Effect::Refund => &self.refunds,
        };
        permits.take(developer, 1).ok_or(ServiceError::TooManyEffects { at_most: MAX_IN_PROGRESS })
    }
}

/// The outcome of a request's try to claim its key and perform its effect.
enum Try {
    Answered(Answer),
    /// Another request holds the key, at most until this time.
    Claimed(Timestamp),
}

impl Service {
    /// Performs a developer's effect outside the store, once for all requests with the same key. `bound` is the effect's time
    /// limit. `perform` gets the request with the claim, and stores the response under that claim.
    pub(super) async fn once<F: Future<Output = Result<Answer>> + Send + 'static>(
        self: &Arc<Self>,
        effect: Effect,
        developer: &DeveloperId,
        request: Option<&IdempotentRequest>,
        bound: Duration,
        perform: impl FnOnce(Arc<Self>, Option<IdempotentRequest>) -> F + Clone + Send + 'static,
    ) -> Result<Answer> {
        let deadline = Instant::now() + bound + MARGIN;
        let any = Notify::new();
        loop {
            let mut ended = pin!(request.map_or(&any, |request| self.claims.ended(request.key())).notified());
            // From here on, no notification is missed.
            ended.as_mut().enable();
            let (developer, perform) = (developer.clone(), perform.clone());
            let perform = move |service: Arc<Self>, request| async move {
                let _permit = service.claims.enter(effect, &developer)?;
                perform(Arc::clone(&service), request).await
            };
            let task = Arc::clone(self).claim_and_perform(request.cloned(), bound, perform);
            let until = match self
                .tasks
                .spawn(trace::same_trace(Acting::scope_of(Acting::present(), task).in_current_span()))
                .await
                .map_err(JoinError::try_into_panic)
            {
                Ok(Ok(Try::Answered(answer))) => return Ok(answer),
                Ok(Ok(Try::Claimed(until))) => until,
                Ok(Err(error)) => return Err(error),
                Err(Ok(panic)) => resume_unwind(panic),
                // Only the runtime's shutdown cancels the task.
                Err(Err(_)) => return Err(StoreError::Stopped.into()),
            };
            let left = until.as_millis() - self.ambient.now().as_millis();
            let lease_ends = Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0));
            // After a wake-up or a timeout, ask the store again.
            let _ = timeout_at(deadline.min(lease_ends), ended).await;
            if Instant::now() >= deadline {
                return Err(ServiceError::KeyInProgress);
            }
        }
    }

    async fn claim_and_perform<F: Future<Output = Result<Answer>>>(
        self: Arc<Self>,
        request: Option<IdempotentRequest>,
        bound: Duration,
        effect: impl FnOnce(Arc<Self>, Option<IdempotentRequest>) -> F,
    ) -> Result<Try> {
        let perform = |request| effect(Arc::clone(&self), request);
        let Some(request) = request else { return perform(None).await.map(Try::Answered) };
        // A request that waited usually finds the response here.
        if let Some(answer) = self.replay(&request).await? {
            return Ok(Try::Answered(answer));
        }
        let token = ClaimToken::new(self.ambient.random());
        let lease = u32::try_from((bound * 2 + LEASE_MARGIN).as_secs()).unwrap_or(u32::MAX);
        let now = self.ambient.now();
        let (key, fingerprint) = request.to_parts();
        let claim = KeyClaim { token: token.clone(), fingerprint, claimed_at: now, until: now.plus_seconds(lease) };
        match self.commit(Change::of(Write::KeyClaimed(Box::new((key, claim))))).await {
            Ok(()) => {}
            Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(stored))) => {
                return request.answer_from(*stored).map(Try::Answered);
            }
            Err(CommitError::Conflict(Conflict::KeyClaimed(held))) if request.has(&held.fingerprint) => {
                return Ok(Try::Claimed(held.until));
            }
            Err(CommitError::Conflict(Conflict::KeyClaimed(_))) => return Err(ServiceError::IdempotencyKeyReused),
            Err(error) => return Err(error.into()),
        }
        let held = request.clone().holding(token.clone());
        let outcome = AssertUnwindSafe(perform(Some(held))).catch_unwind().await;
        // An effect that stored its response has also ended the claim. Then this writes nothing.
        if let Err(error) = self.commit(Change::of(Write::KeyReleased(request.key().clone(), token))).await {
            tracing::warn!(%error, "a claim on an idempotency key could not be released; it ends with its lease");
        }
        self.claims.ended(request.key()).notify_waiters();
        match outcome {
            Ok(Ok(answer)) => Ok(Try::Answered(answer)),
            // The effect outlived its lease. The request that took over will answer.
            Ok(Err(ServiceError::KeyInProgress)) => Ok(Try::Claimed(now)),
            Ok(Err(error)) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use payments_core::{Environment, RawJson};

    use super::*;
    use crate::{
        domain::Scope,
        service::in_memory::{BOUND, service},
    };

    fn request(body: &str) -> IdempotentRequest {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        IdempotentRequest::new(
            &scope,
            "POST",
            "/api/v1/webhooks/wh_1/test",
            "key",
            &bytes::Bytes::copy_from_slice(body.as_bytes()),
        )
    }

    /// Performs a test ping of a developer.
    async fn ping<F: Future<Output = Result<Answer>> + Send + 'static>(
        service: &Arc<Service>,
        developer: &str,
        request: Option<IdempotentRequest>,
        perform: impl FnOnce(Arc<Service>, Option<IdempotentRequest>) -> F + Clone + Send + 'static,
    ) -> Result<Answer> {
        let developer = developer.parse().unwrap();
        service.once(Effect::TestPing, &developer, request.as_ref(), BOUND, perform).await
    }

    /// Stores a response, as a finished effect does.
    async fn finish(service: &Service, request: Option<&IdempotentRequest>) -> Result<Answer> {
        let body = RawJson::new(r#"{"id":"wh_1"}"#).unwrap();
        service.records().commit_once(Vec::new(), body, request).await
    }

    #[tokio::test]
    async fn a_request_waits_for_the_holder_of_its_key_up_to_a_limit() {
        let service = service();
        let (go_on, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let effect = {
            let (go_on, begun) = (Arc::clone(&go_on), Arc::clone(&begun));
            move |service: Arc<Service>, request: Option<IdempotentRequest>| {
                let (go_on, begun) = (Arc::clone(&go_on), Arc::clone(&begun));
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    finish(&service, request.as_ref()).await
                }
            }
        };
        let never = |_: Arc<Service>, _: Option<IdempotentRequest>| async { panic!("another holds the key") };
        let (holder, held) = (Arc::clone(&service), effect.clone());
        let first = tokio::spawn(async move { ping(&holder, "dev_1", Some(request("{}")), held).await });
        begun.notified().await;
        let other = ping(&service, "dev_1", Some(request(r#"{"a":1}"#)), never).await;
        assert!(matches!(other, Err(ServiceError::IdempotencyKeyReused)));
        // A wake-up for another key does not end the wait.
        service.claims.ended(request("{}").key()).notify_waiters();
        assert!(matches!(ping(&service, "dev_1", Some(request("{}")), never).await, Err(ServiceError::KeyInProgress)));
        let (waiting, third) = (Arc::clone(&service), request("{ }"));
        let third = tokio::spawn(async move { ping(&waiting, "dev_1", Some(third), never).await });
        go_on.notify_one();
        assert!(!first.await.unwrap().unwrap().replayed);
        assert!(third.await.unwrap().unwrap().replayed);
    }

    #[tokio::test]
    async fn a_failed_effect_releases_its_key_and_effects_in_progress_are_limited() {
        let service = service();
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let effect = move |service: Arc<Service>, request: Option<IdempotentRequest>| {
            let nth = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match nth {
                    0 => Err(ServiceError::RefundInProgress),
                    1 => panic!("on purpose"),
                    _ => finish(&service, request.as_ref()).await,
                }
            }
        };
        let once = || {
            let (service, effect) = (Arc::clone(&service), effect.clone());
            tokio::spawn(async move { ping(&service, "dev_1", Some(request("")), effect).await })
        };
        assert!(matches!(once().await.unwrap(), Err(ServiceError::RefundInProgress)));
        assert!(once().await.unwrap_err().is_panic());
        let enter = |developer: &str| service.claims.enter(Effect::TestPing, &developer.parse().unwrap());
        let mut full: Vec<_> = std::iter::from_fn(|| enter("dev_1").ok()).collect();
        assert_eq!(i64::try_from(full.len()).unwrap(), MAX_IN_PROGRESS / 2);
        assert!(matches!(once().await.unwrap(), Err(ServiceError::TooManyEffects { .. })));
        let keyless = ping(&service, "dev_1", None, effect.clone()).await;
        assert!(matches!(keyless, Err(ServiceError::TooManyEffects { .. })));
        assert_eq!(tries.load(Ordering::Relaxed), 2);
        // Another developer and another kind of effect have permits left.
        assert!(enter("dev_2").is_ok() && service.claims.enter(Effect::Refund, &"dev_1".parse().unwrap()).is_ok());
        drop(full.pop());
        assert!(!once().await.unwrap().unwrap().replayed);
        assert!(once().await.unwrap().unwrap().replayed);
        assert_eq!(tries.load(Ordering::Relaxed), 3);
        drop(full);
    }
}
