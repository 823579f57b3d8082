//! For a merchant's tests: a [real server](TestServer) with a webhook receiver, also [for live payments](LiveServer);
//! ready-made [payments and events](simulated); [histories of payments](Worlds), decided by seeds; and scripted
//! responses with a fixed clock, which need no sockets and take no real time.
//!
//! ```
//! use payments_client::{Client, testing::{FixedClock, Script}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), payments_client::Error> {
//! let script = Script::new().lost().answer(503, "{}").answer(200, r#"{"bdt_balance": 5, "usd_balance": 0}"#);
//! let clock = FixedClock::default();
//! let client = Client::builder("sk_test_demo").script(script.clone()).clock(clock.clone()).jitter_seed(7).build()?;
//!
//! let balance = client.account().balance().await?;
//! assert_eq!(balance.bdt_balance.as_minor(), 500);
//! assert_eq!(script.requests().len(), 3);
//! assert_eq!(clock.pauses().len(), 2);
//! # Ok(())
//! # }
//! ```

pub(crate) mod fixed_clock;
mod live;
mod receiver;
mod server;
mod simulated;
mod worlds;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use crate::{error::Kind, retry::Failure};

pub use fixed_clock::FixedClock;
pub use live::{LiveError, LiveServer};
pub use receiver::{ReceiveError, Receiver};
pub use server::{StartError, TestServer};
pub use simulated::simulated;
pub use worlds::{Input, Order, PlacedOrder, Return, Truth, Webhook, World, WorldFailure, Worlds};

/// What answers a client's requests in place of a server.
#[derive(Debug, Clone)]
pub(crate) enum Double {
    Script(Script),
    World(Arc<worlds::Api>),
}

impl Double {
    /// The status, headers and body of the next response, or how the request fails.
    pub(crate) async fn respond(&self, request: &reqwest::Request) -> Result<(u16, HeaderMap, Bytes), (Failure, Kind)> {
        match self {
            Self::Script(script) => script.respond(request),
            Self::World(api) => api.respond(request).await,
        }
    }
}

/// The responses that a client gets, in order. Clones share the script, so a test can keep one.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    outcomes: VecDeque<Outcome>,
    requests: Vec<SentRequest>,
}

/// The outcome of one request.
#[derive(Debug, Clone)]
enum Outcome {
    Response { status: StatusCode, headers: HeaderMap, body: Bytes },
    Lost,
    TimedOut,
    NotConnected,
}

/// A request that the client sent, without the API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentRequest {
    /// The HTTP method.
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The idempotency key, if any.
    pub idempotency_key: Option<String>,
    /// The body; may be empty.
    pub body: String,
}

impl Script {
    /// Creates an empty script. Requests after its end cannot connect.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Responds to the next request with this status and body. An invalid status becomes 500.
    #[must_use]
    pub fn answer(self, status: u16, body: impl Into<String>) -> Self {
        self.answer_with(status, &[], body)
    }

    /// Does the same as [`answer`](Self::answer) with headers such as `("retry-after", "7")`. Ignores invalid headers.
    #[must_use]
    pub fn answer_with(self, status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let pair = |(name, value): &(&str, &str)| {
            Some((HeaderName::try_from(*name).ok()?, HeaderValue::from_str(value).ok()?))
        };
        let headers = headers.iter().filter_map(pair).collect();
        self.then(Outcome::Response { status, headers, body: Bytes::from(body.into()) })
    }

    /// Loses the response to the next request. The server may have processed the request.
    #[must_use]
    pub fn lost(self) -> Self {
        self.then(Outcome::Lost)
    }

    /// Makes the next request time out.
    #[must_use]
    pub fn timed_out(self) -> Self {
        self.then(Outcome::TimedOut)
    }

    /// Makes the next request fail to connect. The server has not seen the request.
    #[must_use]
    pub fn not_connected(self) -> Self {
        self.then(Outcome::NotConnected)
    }

    /// The requests that the client has sent.
    #[must_use]
    pub fn requests(&self) -> Vec<SentRequest> {
        self.state().requests.clone()
    }

    /// The number of outcomes that are not used yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.state().outcomes.len()
    }

    fn then(self, outcome: Outcome) -> Self {
        self.state().outcomes.push_back(outcome);
        self
    }

    fn respond(&self, request: &reqwest::Request) -> Result<(u16, HeaderMap, Bytes), (Failure, Kind)> {
        match self.play(request) {
            Outcome::Response { status, headers, body } => Ok((status.as_u16(), headers, body)),
            Outcome::Lost => Err((Failure::Lost, Kind::Lost(None))),
            Outcome::TimedOut => Err((Failure::Lost, Kind::Timeout(None))),
            Outcome::NotConnected => Err((Failure::Connect, Kind::Connect(None))),
        }
    }

    fn play(&self, request: &reqwest::Request) -> Outcome {
        let url = request.url();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let key = request.headers().get("idempotency-key").and_then(|value| value.to_str().ok());
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let mut state = self.state();
        state.requests.push(SentRequest {
            method: request.method().to_string(),
            path: format!("{}{query}", url.path()),
            idempotency_key: key.map(str::to_owned),
            body: String::from_utf8_lossy(body).into_owned(),
        });
        state.outcomes.pop_front().unwrap_or(Outcome::NotConnected)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use payments_core::{CreatePayment, Money, PaymentId};

    use super::*;
    use crate::{Client, ClientBuilder};

    fn set_up(script: &Script, clock: &FixedClock) -> ClientBuilder {
        Client::builder("sk_test_demo").script(script.clone()).clock(clock.clone()).jitter_seed(7)
    }

    fn cup() -> CreatePayment {
        CreatePayment::of(Money::taka(750))
            .success_url("https://shop.example/paid")
            .cancel_url("https://shop.example/cart")
    }

    #[tokio::test]
    async fn a_create_without_a_response_is_retried_with_the_same_key() {
        let (script, clock) = (Script::new().lost().timed_out().not_connected(), FixedClock::default());
        let client = set_up(&script, &clock).build().unwrap();
        let error = client.payments().create(cup()).await.unwrap_err();
        assert!(error.is_connect() && error.tries() == 3, "{error:?}");
        let sent = script.requests();
        assert_eq!((sent.len(), sent[0].path.as_str(), script.left()), (3, "/api/v1/payments", 0));
        assert!(sent.iter().all(|request| request == &sent[0]));
        assert_eq!(sent[0].idempotency_key.as_deref(), error.idempotency_key().map(|key| key.as_str()));
    }

    #[tokio::test]
    async fn a_request_with_an_invalid_key_fails_before_it_is_sent() {
        let script = Script::new().answer(201, "{}");
        let client = set_up(&script, &FixedClock::default()).build().unwrap();
        let error = client.payments().create(cup()).idempotency_key("two words").await.unwrap_err();
        assert!(!error.is_retryable() && error.tries() == 0, "{error:?}");
        assert!(error.to_string().ends_with("must be 1 to 255 visible ASCII characters"), "{error}");
        assert_eq!(script.requests(), []);
    }

    #[tokio::test]
    async fn a_retry_waits_for_a_retry_after_date() {
        let later = [("retry-after", "Tue, 14 Nov 2023 22:13:27 GMT")];
        let script = Script::new().answer_with(429, &later, "{}").answer(200, r#"{"bdt_balance":0,"usd_balance":0}"#);
        let clock = FixedClock::at(1_700_000_000);
        set_up(&script, &clock).build().unwrap().account().balance().await.unwrap();
        assert_eq!(clock.pauses(), [Duration::from_secs(7)]);
        let script = Script::new().answer_with(429, &[("retry-after", "3600")], "{}");
        let error = set_up(&script, &clock).build().unwrap().account().balance().await.unwrap_err();
        assert_eq!((error.retry_after(), error.tries()), (Some(Duration::from_secs(3600)), 1), "not past the deadline");
    }

    #[tokio::test]
    async fn the_same_seed_gives_the_same_backoff() {
        let mut runs = Vec::new();
        for _ in 0..2 {
            let (script, clock) =
                (Script::new().answer(500, "").answer(500, "").answer(500, ""), FixedClock::default());
            let client = set_up(&script, &clock).build().unwrap();
            client.account().balance().await.unwrap_err();
            runs.push(clock.pauses());
        }
        assert_eq!(runs[0], runs[1]);
        assert_eq!(runs[0].len(), 2);
    }

    #[tokio::test]
    async fn a_client_within_its_rate_limit_waits_for_the_next_minute() {
        let clock = FixedClock::default();
        let mut script = Script::new();
        for remaining in ["1", "0", "1", "0"] {
            let headers = [("x-ratelimit-limit", "2"), ("x-ratelimit-remaining", remaining)];
            script = script.answer_with(404, &headers, r#"{"statusCode":404,"message":"no","error":"Not Found"}"#);
        }
        let client = set_up(&script, &clock).stay_within_rate_limit().build().unwrap();
        let id: PaymentId = "pay_1".parse().unwrap();
        for _ in 0..4 {
            assert!(client.payments().retrieve(&id).await.unwrap_err().is_not_found());
        }
        assert_eq!(clock.pauses(), [Duration::from_secs(60)]);
        let client =
            set_up(&script, &clock).stay_within_rate_limit().total_timeout(Duration::from_secs(5)).build().unwrap();
        let full = [("x-ratelimit-limit", "1"), ("x-ratelimit-remaining", "0")];
        drop(script.answer_with(404, &full, "{}"));
        client.payments().retrieve(&id).await.unwrap_err();
        let error = client.payments().retrieve(&id).await.unwrap_err();
        assert!(error.is_rate_limited() && error.status().is_none(), "{error:?}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    }
}
