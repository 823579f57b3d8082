//! The client: where the API is, whose key is used, and one way to send a request.

use std::{sync::Arc, time::Duration};

use payments_core::Environment;
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde::de::DeserializeOwned;
use tracing::Instrument;
use url::Url;

use crate::{
    Response, Result, SecretKey,
    answer::{Answer, failed},
    budget::Budget,
    call::Call,
    clock::Clock,
    error::{Context, Error, Kind},
    jitter::Jitter,
    limiter::Limiter,
    response::rate_limit,
    retry::{Failure, Next, Policy},
};

/// A client of the payments API. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) base_url: Url,
    pub(crate) key: SecretKey,
    pub(crate) key_header: KeyHeader,
    pub(crate) attempt_timeout: Duration,
    pub(crate) total_timeout: Duration,
    pub(crate) policy: Policy,
    pub(crate) budget: Budget,
    pub(crate) jitter: Jitter,
    pub(crate) clock: Clock,
    /// Where the client is to stay within the rate limit.
    pub(crate) limiter: Option<Limiter>,
    #[cfg(feature = "testing")]
    pub(crate) script: Option<crate::testing::Script>,
}

/// Which header carries the API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyHeader {
    /// `Authorization: Bearer …`.
    #[default]
    Authorization,
    /// `x-api-key: …`, where something on the way takes the other one.
    XApiKey,
}

impl Client {
    /// Whether real money moves.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.inner.key.environment()
    }

    /// One try of a call, ready to be sent. Each segment of its path is encoded.
    pub(crate) fn request(&self, call: &Call, left: Duration) -> RequestBuilder {
        let mut url = self.inner.base_url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(&call.segments);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request =
            self.inner.http.request(call.method.clone(), url).timeout(self.inner.attempt_timeout.min(left));
        if call.is_keyed {
            request = match self.inner.key_header {
                KeyHeader::Authorization => request.header(header::AUTHORIZATION, self.inner.key.bearer()),
                KeyHeader::XApiKey => request.header("x-api-key", self.inner.key.plain()),
            };
        }
        if let Some(key) = &call.key {
            request = request.header("idempotency-key", key.as_str());
        }
        match &call.body {
            Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(body.clone()),
            None => request,
        }
    }

    /// Sends a call, again where that is safe, and reads the answer.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Call) -> Result<Response<T>> {
        let span = tracing::debug_span!(
            "payments_api",
            method = call.method.as_str(),
            path = call.template,
            status = tracing::field::Empty,
            tries = tracing::field::Empty,
        );
        let answer = self.answer(&call).instrument(span.clone()).await;
        let (status, tries) = match &answer {
            Ok(answer) => (Some(answer.status.as_u16()), answer.tries),
            Err(error) => (error.status(), error.tries()),
        };
        span.record("status", status).record("tries", tries);
        let answer = answer?;
        match serde_json::from_slice(&answer.body) {
            Ok(value) => Ok(Response {
                value,
                status: answer.status.as_u16(),
                headers: answer.headers,
                tries: answer.tries,
                idempotency_key: call.key,
            }),
            Err(source) => Err(answer.unreadable::<T>(source, call.key, &self.inner.clock)),
        }
    }

    /// The answer to a call that succeeded, after as many tries as it took.
    async fn answer(&self, call: &Call) -> Result<Answer> {
        let inner = &*self.inner;
        let begun = inner.clock.elapsed();
        let left = || inner.total_timeout.saturating_sub(inner.clock.elapsed().saturating_sub(begun));
        let mut was_lost = false;
        for tries in 1.. {
            self.wait_for_a_place(call, tries, left()).await?;
            let outcome = self.attempt(self.request(call, left()), tries).await;
            if let (Some(limiter), Ok(answer)) = (&inner.limiter, &outcome)
                && let Some(limit) = rate_limit(&answer.headers)
            {
                limiter.heard(limit, inner.clock.elapsed());
            }
            let (failure, kind, mut context) = match outcome {
                Ok(answer) if answer.status.is_success() => {
                    inner.budget.succeeded(tries);
                    return Ok(answer);
                }
                // The try before removed it, and its answer was lost.
                Ok(answer) if was_lost && call.method == Method::DELETE && answer.status == StatusCode::NOT_FOUND => {
                    return Ok(answer.removed());
                }
                Ok(answer) => answer.refusal(&inner.clock),
                Err((failure, kind)) => (failure, kind, Context { tries, ..Context::default() }),
            };
            was_lost |= failure != Failure::Connect && failure.may_pass();
            let next =
                inner.policy.decide(call.safety, failure, tries, inner.jitter.next(), context.retry_after, left());
            match next {
                Next::RetryAfter(pause) if inner.budget.take() => {
                    tracing::debug!(?failure, ?pause, "trying again");
                    inner.clock.sleep(pause).await;
                }
                _ => {
                    context.key.clone_from(&call.key);
                    return Err(Error::new(kind, context));
                }
            }
        }
        Err(Kind::Lost(None).into())
    }

    /// Waits while the rate limit is spent, if the client is to stay within it; not beyond the deadline.
    async fn wait_for_a_place(&self, call: &Call, tries: u32, left: Duration) -> Result<()> {
        let Some(limiter) = self.inner.limiter.as_ref().filter(|_| call.is_keyed) else { return Ok(()) };
        loop {
            let pause = limiter.take(self.inner.clock.elapsed());
            if pause.is_zero() {
                return Ok(());
            }
            if pause >= left {
                let context = Context { tries: tries - 1, retry_after: Some(pause), ..Context::default() };
                return Err(Error::new(Kind::Limited, context));
            }
            self.inner.clock.sleep(pause).await;
        }
    }

    /// Sends once and reads the whole answer.
    async fn attempt(&self, request: RequestBuilder, tries: u32) -> Result<Answer, (Failure, Kind)> {
        #[cfg(feature = "testing")]
        if let Some(script) = &self.inner.script {
            return scripted(script, request, tries);
        }
        let response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(failed)?;
        Ok(Answer { status, headers, body, tries })
    }
}

#[cfg(feature = "testing")]
fn scripted(script: &crate::testing::Script, request: RequestBuilder, tries: u32) -> Result<Answer, (Failure, Kind)> {
    use crate::testing::Outcome;
    match script.play(&request.build().map_err(failed)?) {
        Outcome::Answer { status, headers, body } => Ok(Answer { status, headers, body, tries }),
        Outcome::Lost => Err((Failure::Lost, Kind::Lost(None))),
        Outcome::TimedOut => Err((Failure::Lost, Kind::Timeout(None))),
        Outcome::NotConnected => Err((Failure::Connect, Kind::Connect(None))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_encoded_below_the_base() {
        for (base, url) in [
            ("https://pay.example", "https://pay.example/api/v1/payments/a%2Fb"),
            ("https://pay.example/sub/", "https://pay.example/sub/api/v1/payments/a%2Fb"),
        ] {
            let call = Call::new(Method::GET, "/payments/{}", &["a/b"]);
            let request = Client::builder("sk_test_1").base_url(base).build().unwrap().request(&call, Duration::MAX);
            assert_eq!(request.build().unwrap().url().as_str(), url);
        }
    }
}
