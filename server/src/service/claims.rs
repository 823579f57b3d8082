//! Effects outside the store, once for each `Idempotency-Key`: a test ping, a refund at a gateway.
//!
//! Where the effect is a commit, the store lets the first commit under a key through, and nothing more is needed. An
//! effect elsewhere cannot share a commit with its record. So a request claims its key first, durably, under a lease:
//!
//! 1. It commits the claim. The store refuses it where the key has its response or another request holds it.
//! 2. It has the effect.
//! 3. It keeps the response, records the effect and ends the claim in one commit. A refusal or a failure releases the
//!    claim, so the same key may try again.
//!
//! Requests that find the key claimed wait for its end and then get the response, or make the next try. What a crash
//! leaves is void at the next start; what a full disk leaves ends with its lease.
//!
//! All this runs in a task of its own: a client that hangs up does not cut an effect off from its record.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use payments_core::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tracing::Instrument;

use super::{Answer, IdempotentRequest, Refused, Service};
use crate::domain::{ClaimToken, IdempotencyKey, KeyClaim};
use crate::store::{Change, CommitError, Conflict, StoreError, Write};

/// How many effects may be under way at once, those of requests without a key too.
pub(super) const AT_ONCE: i64 = 256;
/// How long a commit may take beside an effect. A request waits so much longer than another one's effect may take.
const MARGIN: Duration = Duration::from_secs(2);
/// A lease lasts so much longer than twice the effect's own bound.
const LEASE_MARGIN: Duration = Duration::from_secs(10);
/// Keys share so many wake-ups: one that is woken for another key looks again and goes on waiting.
const WAKE_UPS: usize = 64;

/// What the requests of this process know of each other's claims.
pub(crate) struct Claims {
    ended: [Notify; WAKE_UPS],
    under_way: Gauge,
}

impl Claims {
    /// The gauge shows how many effects are under way.
    pub(crate) fn new(under_way: Gauge) -> Self {
        Self { ended: std::array::from_fn(|_| Notify::new()), under_way }
    }

    fn ended(&self, key: &IdempotencyKey) -> &Notify {
        // The digest's bytes are even.
        &self.ended[usize::from(key.digest[0]) % WAKE_UPS]
    }

    fn enter(&self) -> Result<UnderWay, Refused> {
        let under_way = UnderWay(self.under_way.clone());
        if self.under_way.inc() < AT_ONCE { Ok(under_way) } else { Err(Refused::TooManyEffects) }
    }
}

/// An effect under way, until it is dropped.
struct UnderWay(Gauge);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What came of a request's try to have its effect.
enum Try {
    Answered(Answer),
    /// Another request holds the key, until then at most.
    Claimed {
        until: Timestamp,
    },
}

impl Service {
    /// Has an effect outside the store, once for all requests with one key. `bound` is how long one effect takes at most.
    /// The effect keeps its response under the request it is given, which holds the claim.
    pub(super) async fn once<F>(
        self: &Arc<Self>,
        request: Option<&IdempotentRequest>,
        bound: Duration,
        effect: impl Fn(Arc<Self>, Option<IdempotentRequest>) -> F + Clone + Send + 'static,
    ) -> Result<Answer, Refused>
    where
        F: Future<Output = Result<Answer, Refused>> + Send,
    {
        let deadline = Instant::now() + bound + MARGIN;
        let any = Notify::new();
        loop {
            let mut ended = pin!(request.map_or(&any, |request| self.claims.ended(request.key())).notified());
            // From here on no end is missed.
            ended.as_mut().enable();
            let (service, request, effect) = (Arc::clone(self), request.cloned(), effect.clone());
            let attempt = async move {
                match request {
                    Some(request) => service.claim_and_do(request, bound, effect).await,
                    None => {
                        let _under_way = service.claims.enter()?;
                        effect(Arc::clone(&service), None).await.map(Try::Answered)
                    }
                }
            };
            let until = match self.tasks.spawn(attempt.in_current_span()).await.map_err(|error| error.try_into_panic())
            {
                Ok(Ok(Try::Answered(answer))) => return Ok(answer),
                Ok(Ok(Try::Claimed { until })) => until,
                Ok(Err(refused)) => return Err(refused),
                Err(Ok(panic)) => resume_unwind(panic),
                // Only a runtime that shuts down cancels it.
                Err(Err(_)) => return Err(StoreError::Stopped.into()),
            };
            let left = until.as_millis() - self.ambient.now().as_millis();
            let lease_ends = Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0));
            // Woken or not, the store is asked again, which knows best.
            let _ = timeout_at(deadline.min(lease_ends), ended).await;
            if Instant::now() >= deadline {
                return Err(Refused::KeyUnderWay);
            }
        }
    }

    async fn claim_and_do<F>(
        self: Arc<Self>,
        request: IdempotentRequest,
        bound: Duration,
        effect: impl FnOnce(Arc<Self>, Option<IdempotentRequest>) -> F,
    ) -> Result<Try, Refused>
    where
        F: Future<Output = Result<Answer, Refused>>,
    {
        // One that has waited most often finds the response.
        if let Some(answer) = self.replay(&request).await? {
            return Ok(Try::Answered(answer));
        }
        let token = ClaimToken::new(self.ambient.random());
        let lease = u32::try_from((bound * 2 + LEASE_MARGIN).as_secs()).unwrap_or(u32::MAX);
        let now = self.ambient.now();
        let claim = KeyClaim {
            token: token.clone(),
            fingerprint: request.fingerprint().to_owned(),
            claimed_at: now,
            until: now.plus_seconds(lease),
        };
        let claimed = Change::of(Write::KeyClaimed(Box::new((request.key().clone(), claim))));
        match self.commit(claimed).await {
            Ok(()) => {}
            Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(kept))) => {
                return request.answer_from(*kept).map(Try::Answered);
            }
            Err(CommitError::Conflict(Conflict::KeyClaimed(held))) if request.is_same_as(&held.fingerprint) => {
                return Ok(Try::Claimed { until: held.until });
            }
            Err(CommitError::Conflict(Conflict::KeyClaimed(_))) => return Err(Refused::IdempotencyKeyReused),
            Err(error) => return Err(error.into()),
        }
        let (service, held) = (Arc::clone(&self), request.clone().holding(token.clone()));
        let having = async move {
            let _under_way = service.claims.enter()?;
            effect(Arc::clone(&service), Some(held)).await
        };
        let outcome = AssertUnwindSafe(having).catch_unwind().await;
        // Whoever has kept the response has ended the claim, and then this writes nothing.
        if let Err(error) = self.commit(Change::of(Write::KeyReleased(request.key().clone(), token))).await {
            tracing::warn!(%error, "a claim on an idempotency key stays until its lease ends");
        }
        self.claims.ended(request.key()).notify_waiters();
        match outcome {
            Ok(Ok(answer)) => Ok(Try::Answered(answer)),
            // It outlived its lease. Whoever has taken over will answer.
            Ok(Err(Refused::KeyUnderWay)) => Ok(Try::Claimed { until: now }),
            Ok(Err(refused)) => Err(refused),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use payments_core::{Environment, FeeRate, RawJson};
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::{
        ambient::{Ambient, OperatingSystem},
        delivery::{Bell, Sender, TargetPolicy},
        descriptors::Shares,
        domain::Scope,
        gateway::Gateways,
        service::Settings,
        store::{ServerId, memory::MemoryStore},
    };

    const BOUND: Duration = Duration::from_millis(10);

    fn service() -> Arc<Service> {
        let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
        let targets = TargetPolicy { allow_local: false };
        Arc::new(Service {
            store: Arc::new(MemoryStore::default()),
            sender: Arc::new(Sender::new(Arc::clone(&ambient), targets, "Service", Shares::default()).unwrap()),
            ambient,
            gateways: Gateways::none(),
            claims: Claims::new(Gauge::default()),
            fan_out: Bell::new(),
            server: ServerId::new([0; 16]),
            tasks: TaskTracker::new(),
            settings: Settings {
                base_url: String::new(),
                session_ttl_seconds: 0,
                delivery_body_days: None,
                fee_rate: FeeRate::from_basis_points(0).unwrap(),
                gateway_timeout: BOUND,
                targets,
                has_sandbox: false,
                max_webhook_endpoints: 100,
            },
        })
    }

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

    /// Keeps a response, as an effect does when it is through.
    async fn finish(service: &Service, request: Option<&IdempotentRequest>) -> Result<Answer, Refused> {
        let body = RawJson::new(r#"{"id":"wh_1"}"#).unwrap();
        let keep = request.map(|request| request.keep(body.clone(), service.ambient.now()));
        service.commit_once(Change { idempotency: keep, ..Change::default() }, body, request).await
    }

    #[tokio::test]
    async fn a_request_waits_for_the_holder_of_its_key_so_long_and_then_is_told_to_try_again() {
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
        let first = tokio::spawn(async move { holder.once(Some(&request("{}")), BOUND, held).await });
        begun.notified().await;
        let other = service.once(Some(&request(r#"{"a":1}"#)), BOUND, never).await;
        assert!(matches!(other, Err(Refused::IdempotencyKeyReused)));
        // However often it is woken for nothing.
        service.claims.ended(request("{}").key()).notify_waiters();
        assert!(matches!(service.once(Some(&request("{}")), BOUND, never).await, Err(Refused::KeyUnderWay)));
        let (waiting, third) = (Arc::clone(&service), request("{ }"));
        let third = tokio::spawn(async move { waiting.once(Some(&third), BOUND, never).await });
        go_on.notify_one();
        assert!(!first.await.unwrap().unwrap().replayed);
        assert!(third.await.unwrap().unwrap().replayed);
    }

    #[tokio::test]
    async fn an_effect_that_fails_or_panics_frees_its_key_and_there_is_a_limit_to_effects() {
        let service = service();
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let effect = move |service: Arc<Service>, request: Option<IdempotentRequest>| {
            let nth = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match nth {
                    0 => Err(Refused::RefundUnderWay),
                    1 => panic!("on purpose"),
                    _ => finish(&service, request.as_ref()).await,
                }
            }
        };
        let once = || {
            let (service, effect) = (Arc::clone(&service), effect.clone());
            tokio::spawn(async move { service.once(Some(&request("")), BOUND, effect).await })
        };
        assert!(matches!(once().await.unwrap(), Err(Refused::RefundUnderWay)));
        assert!(once().await.unwrap_err().is_panic());
        service.claims.under_way.set(AT_ONCE);
        assert!(matches!(once().await.unwrap(), Err(Refused::TooManyEffects)));
        let keyless = service.once(None, BOUND, effect.clone()).await;
        assert!(matches!(keyless, Err(Refused::TooManyEffects)));
        assert_eq!((service.claims.under_way.get(), tries.load(Ordering::Relaxed)), (AT_ONCE, 2));
        service.claims.under_way.set(0);
        assert!(!once().await.unwrap().unwrap().replayed);
        assert!(once().await.unwrap().unwrap().replayed);
        assert_eq!((service.claims.under_way.get(), tries.load(Ordering::Relaxed)), (0, 3));
    }
}
