//! The client: where the API is, whose key is used, and one way to send a request.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use payments_core::{Environment, ErrorBody};
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{self, HeaderMap},
    redirect,
};
use serde::de::DeserializeOwned;
use tracing::Instrument;
use url::{Host, Url};

use crate::{
    AccountResource, Checkout, IdempotencyKey, Payments, Response, Result, SecretKey, Webhooks,
    budget::Budget,
    clock::Clock,
    error::{BodyStart, Context, Error, Kind},
    jitter::Jitter,
    limiter::Limiter,
    request::Call,
    response::{is_replayed, rate_limit, request_id},
    retry::{Failure, Next, Policy},
    retry_after::retry_after,
};

/// Where the reference server listens unless told otherwise.
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";

/// A client of the payments API. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    base_url: Url,
    key: SecretKey,
    key_header: KeyHeader,
    attempt_timeout: Duration,
    total_timeout: Duration,
    policy: Policy,
    budget: Budget,
    jitter: Jitter,
    clock: Clock,
    /// Where the client is to stay within the rate limit.
    limiter: Option<Limiter>,
    #[cfg(feature = "testing")]
    script: Option<crate::testing::Script>,
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
    /// A client with this key, of a server on this machine. For another server see [`builder`](Self::builder).
    ///
    /// # Errors
    /// A key that cannot be one.
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        Self::builder(key).build()
    }

    /// A client to be set up.
    ///
    /// ```
    /// use payments_client::{Client, Environment};
    ///
    /// let client = Client::builder("sk_test_demo").base_url("https://pay.example").build()?;
    /// assert_eq!(client.environment(), Environment::Test);
    /// # Ok::<(), payments_client::Error>(())
    /// ```
    pub fn builder(key: impl AsRef<str>) -> ClientBuilder {
        ClientBuilder::new(key.as_ref())
    }

    /// Whether real money moves.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.inner.key.environment()
    }

    /// Payments.
    #[must_use]
    pub fn payments(&self) -> Payments<'_> {
        Payments::new(self)
    }

    /// Webhook endpoints.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks::new(self)
    }

    /// The account: workspace, balances, volume and apps.
    #[must_use]
    pub fn account(&self) -> AccountResource<'_> {
        AccountResource::new(self)
    }

    /// Checkout sessions: the keyless routes behind the checkout page.
    #[must_use]
    pub fn checkout(&self) -> Checkout<'_> {
        Checkout::new(self)
    }

    /// One try of a call, ready to be sent. Each segment of its path is encoded.
    fn request(&self, call: &Call, left: Duration) -> RequestBuilder {
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

/// A whole answer, of whatever status.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    tries: u32,
}

impl Answer {
    fn context(&self, clock: &Clock) -> Context {
        Context {
            tries: self.tries,
            request_id: request_id(&self.headers).map(Into::into),
            retry_after: retry_after(&self.headers, clock.now()),
            key: None,
            body_start: Some(BodyStart::of(&self.body)),
        }
    }

    fn refusal(self, clock: &Clock) -> (Failure, Kind, Context) {
        let failure = Failure::Status { status: self.status.as_u16(), replayed: is_replayed(&self.headers) };
        let context = self.context(clock);
        let kind = match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(body) => Kind::Api { status: self.status, body },
            Err(_) => Kind::Status { status: self.status },
        };
        (failure, kind, context)
    }

    /// Reads it once more, to tell where it cannot be read.
    fn unreadable<T: DeserializeOwned>(
        &self,
        source: serde_json::Error,
        key: Option<IdempotencyKey>,
        clock: &Clock,
    ) -> Error {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        let path = match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Ok(_) => ".".into(),
            Err(error) => error.path().to_string(),
        };
        Error::new(Kind::Decode { status: self.status, path, source }, Context { key, ..self.context(clock) })
    }

    /// What the API says of a removal.
    fn removed(self) -> Self {
        let body = Bytes::from_static(br#"{"success":true,"message":"It was removed before"}"#);
        Self { status: StatusCode::OK, body, ..self }
    }
}

fn failed(error: reqwest::Error) -> (Failure, Kind) {
    // Its address holds ids and what a list was asked for.
    let error = error.without_url();
    if error.is_connect() {
        (Failure::Connect, Kind::Connect(Some(error)))
    } else if error.is_timeout() {
        (Failure::Lost, Kind::Timeout(Some(error)))
    } else {
        (Failure::Lost, Kind::Lost(Some(error)))
    }
}

/// Sets a [`Client`] up.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder {
    key: Result<SecretKey>,
    base_url: String,
    key_header: KeyHeader,
    attempt_timeout: Duration,
    total_timeout: Duration,
    connect_timeout: Duration,
    policy: Policy,
    budget: u32,
    user_agent: Option<String>,
    http: Option<reqwest::Client>,
    jitter_seed: Option<u64>,
    stays_within_rate_limit: bool,
    clock: Option<Clock>,
    #[cfg(feature = "testing")]
    script: Option<crate::testing::Script>,
}

impl ClientBuilder {
    fn new(key: &str) -> Self {
        Self {
            key: SecretKey::new(key).map_err(Error::from),
            base_url: DEFAULT_BASE_URL.into(),
            key_header: KeyHeader::default(),
            attempt_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(90),
            connect_timeout: Duration::from_secs(10),
            policy: Policy {
                retries: 2,
                first_pause: Duration::from_millis(500),
                longest_pause: Duration::from_secs(8),
            },
            budget: 100,
            user_agent: None,
            http: None,
            jitter_seed: None,
            stays_within_rate_limit: false,
            clock: None,
            #[cfg(feature = "testing")]
            script: None,
        }
    }

    /// Where the API is, without `/api/v1`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Which header carries the key; `Authorization` unless said otherwise.
    pub fn key_header(mut self, header: KeyHeader) -> Self {
        self.key_header = header;
        self
    }

    /// How long one try may take, its answer's body included; 30 seconds unless said otherwise.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// How long a call may take with all its tries and pauses; 90 seconds unless said otherwise.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// How long connecting may take; 10 seconds unless said otherwise. Not for a client of your own.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How often a call is tried again; 2 times unless said otherwise.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// The bounds of the pause before a retry: 500 ms before the first, doubled each time, up to 8 s. The pause is
    /// anything from nothing to the bound.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.policy.first_pause, self.policy.longest_pause) = (first, longest);
        self
    }

    /// How many retries the client and its clones may make before successes have to pay for more; 100 unless said
    /// otherwise. A fleet does not hammer a dead server so.
    pub fn retry_budget(mut self, retries: u32) -> Self {
        self.budget = retries;
        self
    }

    /// Added to the `User-Agent`, such as `shop/1.4`. Not for a client of your own.
    pub fn user_agent(mut self, suffix: impl Into<String>) -> Self {
        self.user_agent = Some(suffix.into());
        self
    }

    /// Sends through your own client, with its proxies and certificates. Make it without redirects: it would carry
    /// `x-api-key` to another host.
    pub fn http(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// Waits, once the server has said that the key's minute is spent, for the next one, instead of being refused. For
    /// work in the background, such as a reconciliation: a customer does not wait for a minute.
    pub fn stay_within_rate_limit(mut self) -> Self {
        self.stays_within_rate_limit = true;
        self
    }

    /// Answers from a script instead of a server.
    #[cfg(feature = "testing")]
    pub fn script(mut self, script: crate::testing::Script) -> Self {
        self.script = Some(script);
        self
    }

    /// Makes the client's pauses on this clock, at once.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: crate::testing::FixedClock) -> Self {
        self.clock = Some(Clock::Fixed(clock));
        self
    }

    /// Makes the pauses between tries the same in each run of a test.
    #[cfg(feature = "testing")]
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// The client.
    ///
    /// # Errors
    /// A key that cannot be one, or an address that is not `http` or `https`; plain `http` with a live key to anything
    /// but this machine, since whoever listens on the way could then act as the merchant.
    pub fn build(self) -> Result<Client> {
        let key = self.key?;
        let base_url = Url::parse(&self.base_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base_url = base_url.ok_or_else(|| Kind::Build("the base URL must be an http or https address".into()))?;
        if key.environment() == Environment::Live && base_url.scheme() == "http" && !is_loopback(&base_url) {
            return Err(Kind::Build("a live key is not sent over plain http; use https".into()).into());
        }
        let http = match self.http {
            Some(http) => http,
            None => {
                let mut agent = concat!("payments-client/", env!("CARGO_PKG_VERSION")).to_owned();
                if let Some(suffix) = &self.user_agent {
                    agent.push(' ');
                    agent.push_str(suffix);
                }
                reqwest::Client::builder()
                    .user_agent(agent)
                    .redirect(redirect::Policy::none())
                    .connect_timeout(self.connect_timeout)
                    .build()
                    .map_err(|error| Kind::Build(error.to_string()))?
            }
        };
        let seed = match self.jitter_seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(|error| Kind::Build(error.to_string()))?,
        };
        let inner = Inner {
            http,
            base_url,
            key,
            key_header: self.key_header,
            attempt_timeout: self.attempt_timeout,
            total_timeout: self.total_timeout,
            policy: self.policy,
            budget: Budget::new(self.budget),
            jitter: Jitter::seeded(seed),
            clock: self.clock.unwrap_or_else(Clock::machine),
            limiter: self.stays_within_rate_limit.then(Limiter::default),
            #[cfg(feature = "testing")]
            script: self.script,
        };
        Ok(Client { inner: Arc::new(inner) })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(key: &str, url: &str) -> Result<Client> {
        Client::builder(key).base_url(url).build()
    }

    #[test]
    fn a_live_key_goes_over_plain_http_to_this_machine_only() {
        for (key, url, fits) in [
            ("sk_live_1", "https://pay.example", true),
            ("sk_live_1", "http://127.0.0.1:8080", true),
            ("sk_live_1", "http://[::1]:8080", true),
            ("sk_live_1", "http://localhost:8080", true),
            ("sk_live_1", "http://pay.example", false),
            ("sk_live_1", "http://localhost.example", false),
            ("sk_test_1", "http://pay.example", true),
            ("sk_test_1", "ftp://pay.example", false),
            ("sk_test_1", "pay.example", false),
            ("sk_test_", "https://pay.example", false),
            ("pk_test_1", "https://pay.example", false),
            ("sk_test_a b", "https://pay.example", false),
        ] {
            assert_eq!(built(key, url).is_ok(), fits, "{key} {url}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let client = built("sk_test_verysecret", "https://pay.example").unwrap();
        let builder = Client::builder("sk_test_verysecret");
        let request = client.request(&Call::new(Method::GET, "/payments", &[]), Duration::MAX);
        for text in [format!("{client:?}"), format!("{builder:?}"), format!("{request:?}")] {
            assert!(!text.contains("verysecret"), "{text}");
        }
    }

    #[test]
    fn a_path_is_encoded_below_the_base() {
        for (base, url) in [
            ("https://pay.example", "https://pay.example/api/v1/payments/a%2Fb"),
            ("https://pay.example/sub/", "https://pay.example/sub/api/v1/payments/a%2Fb"),
        ] {
            let call = Call::new(Method::GET, "/payments/{}", &["a/b"]);
            let request = built("sk_test_1", base).unwrap().request(&call, Duration::MAX);
            assert_eq!(request.build().unwrap().url().as_str(), url);
        }
    }
}
