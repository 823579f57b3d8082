//! The client, and how it sends a call.

use std::{sync::Arc, time::Duration};

use payments_core::Environment;
use reqwest::{RequestBuilder, header};
use serde::de::DeserializeOwned;
use tracing::Instrument;
use url::Url;

use crate::{
    Response, Result, SecretKey,
    budget::Budget,
    call::Call,
    clock::Clock,
    error::{Context, Error, Kind},
    jitter::Jitter,
    limiter::Limiter,
    platform::{self, EarlyTimer},
    raw_response::{RawResponse, failed},
    retry::{Failure, Next, Policy},
};

/// A client of the payments API. Clones share connections and the retry budget.
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
    pub(crate) early_timer: EarlyTimer,
    /// Set if the client stays within the rate limit.
    pub(crate) limiter: Option<Limiter>,
    #[cfg(feature = "testing")]
    pub(crate) double: Option<crate::testing::Double>,
}

/// The header that has the API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeyHeader {
    /// `Authorization: Bearer …`.
    #[default]
    Authorization,
    /// `x-api-key: …`, for example if a proxy uses `Authorization`.
    XApiKey,
}

impl Client {
    /// The environment of the key.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.inner.key.environment()
    }

    /// Builds the request of one try.
    pub(crate) fn prepare(&self, call: &Call, left: Duration) -> RequestBuilder {
        let mut url = self.inner.base_url.clone();
        call.route.extend(&mut url);
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

    /// Sends a call with retries, and deserializes the response.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Box<Call>) -> Result<Response<T>> {
        let raw = self.send_raw(call).await?;
        Ok(Response { value: raw.json()?, raw })
    }

    /// Sends a call with retries.
    pub(crate) async fn send_raw(&self, call: Box<Call>) -> Result<RawResponse> {
        let span = tracing::debug_span!(
            "payments_api",
            method = call.method.as_str(),
            path = call.route.template(),
            status = tracing::field::Empty,
            tries = tracing::field::Empty,
        );
        let response = self.send_with_retries(&call).instrument(span.clone()).await;
        let (status, tries) = match &response {
            Ok(response) => (Some(response.status), response.tries),
            Err(error) => (error.status(), error.tries()),
        };
        span.record("status", status).record("tries", tries);
        response
    }

    /// Sends a call with retries until it succeeds.
    async fn send_with_retries(&self, call: &Call) -> Result<RawResponse> {
        let inner = &*self.inner;
        let begun = inner.clock.elapsed();
        let left = || inner.total_timeout.saturating_sub(inner.clock.elapsed().saturating_sub(begun));
        let mut was_lost = false;
        for tries in 1.. {
            self.wait_for_rate_limit(call, tries, left()).await?;
            let outcome = self.send_once(call, left(), tries).await;
            if let (Some(limiter), Ok(response)) = (&inner.limiter, &outcome)
                && let Some(limit) = response.rate_limit()
            {
                limiter.update(limit, inner.clock.elapsed());
            }
            let (failure, kind, mut context) = match outcome {
                Ok(response) if response.is_success() => {
                    inner.budget.succeeded(tries);
                    return Ok(response);
                }
                // An earlier try removed the resource, and its response was lost.
                Ok(response) if was_lost && call.is_removal && response.status == 404 => {
                    return Ok(response.removed());
                }
                Ok(response) => response.refusal(&inner.clock),
                Err((failure, kind)) => (failure, kind, Context { tries, ..Context::default() }),
            };
            was_lost |= failure != Failure::Connect && failure.is_transient();
            let next =
                inner.policy.decide(call.safety, failure, tries, inner.jitter.next(), context.retry_after, left());
            match next {
                Next::RetryAfter(backoff) if inner.budget.take() => {
                    tracing::debug!(?failure, ?backoff, "retrying");
                    inner.clock.sleep(backoff).await;
                }
                _ => {
                    context.key.clone_from(&call.key);
                    return Err(Error::new(kind, context));
                }
            }
        }
        Err(Kind::Lost(None).into())
    }

    /// Waits until the rate limit allows a request, if the client stays within it. Fails if the wait would exceed the
    /// deadline.
    async fn wait_for_rate_limit(&self, call: &Call, tries: u32, left: Duration) -> Result<()> {
        let Some(limiter) = self.inner.limiter.as_ref().filter(|_| call.is_keyed) else { return Ok(()) };
        loop {
            let wait = limiter.take(self.inner.clock.elapsed());
            if wait.is_zero() {
                return Ok(());
            }
            if wait >= left {
                let context = Context { tries: tries - 1, retry_after: Some(wait), ..Context::default() };
                return Err(Error::new(Kind::Limited, context));
            }
            self.inner.clock.sleep(wait).await;
        }
    }

    /// Makes one try and reads the whole response.
    async fn send_once(&self, call: &Call, left: Duration, tries: u32) -> Result<RawResponse, (Failure, Kind)> {
        let request = self.prepare(call, left);
        let idempotency_key = call.key.clone();
        #[cfg(feature = "testing")]
        if let Some(double) = &self.inner.double {
            let (status, headers, body) = double.respond(&request.build().map_err(failed)?).await?;
            return Ok(RawResponse { status, headers, body, tries, idempotency_key });
        }
        self.inner.early_timer.keep(self.inner.attempt_timeout.min(self.inner.total_timeout));
        let mut response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
        let body = platform::read(response).await.map_err(failed)?;
        Ok(RawResponse { status, headers, body, tries, idempotency_key })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;

    #[test]
    fn path_segments_are_encoded_and_appended_to_the_base_url() {
        for (base, url) in [
            ("https://pay.example", "https://pay.example/api/v1/payments/a%2Fb"),
            ("https://pay.example/sub/", "https://pay.example/sub/api/v1/payments/a%2Fb"),
        ] {
            let call = Call::new(Method::GET, "/payments/{}", Some("a/b"));
            let request = Client::builder("sk_test_1").base_url(base).build().unwrap().prepare(&call, Duration::MAX);
            assert_eq!(request.build().unwrap().url().as_str(), url);
        }
    }
}
