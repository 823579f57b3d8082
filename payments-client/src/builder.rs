//! The client builder.

use std::{sync::Arc, time::Duration};

use payments_core::Environment;
use url::{Host, Url};

use crate::{
    Result, SecretKey,
    budget::Budget,
    client::{Client, Inner, KeyHeader},
    clock::Clock,
    error::{Error, Kind},
    jitter::Jitter,
    limiter::Limiter,
    platform::{self, EarlyTimer},
    retry::Policy,
};

/// The reference server's default address.
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";

impl Client {
    /// Creates a client of a server on this machine. For another server use [`builder`](Self::builder).
    ///
    /// # Errors
    /// If the key is invalid.
    pub fn new(key: impl AsRef<str>) -> Result<Self> {
        Self::builder(key).build()
    }

    /// Creates a client from the environment: the key in `PAYMENTS_API_KEY`, and in `PAYMENTS_API_URL` the server's URL, without
    /// `/api/v1`. Without that the server is on this machine.
    ///
    /// # Errors
    /// If `PAYMENTS_API_KEY` is not set, and those of [`build`](ClientBuilder::build).
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let missing = || Kind::Build("set PAYMENTS_API_KEY to an API key, such as sk_test_demo".into());
        let builder = Self::builder(variable("PAYMENTS_API_KEY").ok_or_else(missing)?);
        match variable("PAYMENTS_API_URL") {
            Some(url) => builder.base_url(url).build(),
            None => builder.build(),
        }
    }

    /// Creates a client builder.
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
}

/// Configures a [`Client`].
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
    pub(crate) double: Option<crate::testing::Double>,
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
                first_backoff: Duration::from_millis(500),
                max_backoff: Duration::from_secs(8),
            },
            budget: 100,
            user_agent: None,
            http: None,
            jitter_seed: None,
            stays_within_rate_limit: false,
            clock: None,
            #[cfg(feature = "testing")]
            double: None,
        }
    }

    /// Sets the server's URL, without `/api/v1`. Default: `http://127.0.0.1:8080`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the header for the key. Default: `Authorization`.
    pub fn key_header(mut self, header: KeyHeader) -> Self {
        self.key_header = header;
        self
    }

    /// Sets the timeout of one try, including the response body. Default: 30 seconds.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Sets the deadline of a call, including all tries and backoff. Default: 90 seconds.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Sets the connect timeout. Default: 10 seconds. Ignored with your own [`http`](Self::http) client.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the maximum number of retries per call. Default: 2.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Sets the backoff interval before the first retry and the maximum interval. The interval doubles with each retry;
    /// the client waits a random time between 0 and the interval (full jitter). Default: 500 ms and 8 s.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.policy.first_backoff, self.policy.max_backoff) = (first, longest);
        self
    }

    /// Sets the retry budget that the client and its clones share. Retries use it up and successes refill it. Without budget
    /// there are no retries, so that they do not overload a failing server. Default: 100 retries.
    pub fn retry_budget(mut self, retries: u32) -> Self {
        self.budget = retries;
        self
    }

    /// Appends a suffix to the `User-Agent`, such as `shop/1.4`. Ignored with your own [`http`](Self::http) client.
    pub fn user_agent(mut self, suffix: impl Into<String>) -> Self {
        self.user_agent = Some(suffix.into());
        self
    }

    /// Sets your own HTTP client, for example with proxies or certificates. Turn its redirects off: a redirect would
    /// send `x-api-key` to another host.
    pub fn http(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// Waits for the next minute when the key's rate limit is used up, instead of getting a 429. Use it for background
    /// work such as reconciliation, not while a customer waits.
    pub fn stay_within_rate_limit(mut self) -> Self {
        self.stays_within_rate_limit = true;
        self
    }

    /// Takes responses from a script instead of a server.
    #[cfg(feature = "testing")]
    pub fn script(mut self, script: crate::testing::Script) -> Self {
        self.double = Some(crate::testing::Double::Script(script));
        self
    }

    /// Uses a fixed clock, on which backoff takes no real time.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: crate::testing::FixedClock) -> Self {
        self.clock = Some(Clock::Fixed(clock));
        self
    }

    /// Seeds the jitter, so that each test run has the same backoff.
    #[cfg(feature = "testing")]
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// If the key is invalid, or the base URL is not `http` or `https`. A live key needs `https`, except for localhost.
    pub fn build(self) -> Result<Client> {
        let key = self.key?;
        let base_url = Url::parse(&self.base_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base_url = base_url.ok_or_else(|| Kind::Build("the base URL must be an http or https URL".into()))?;
        if key.environment() == Environment::Live && base_url.scheme() == "http" && !is_loopback(&base_url) {
            return Err(Kind::Build("a live key must not be sent over plain http; use https".into()).into());
        }
        let http = match self.http {
            Some(http) => http,
            None => {
                let mut agent = concat!("payments-client/", env!("CARGO_PKG_VERSION")).to_owned();
                if let Some(suffix) = &self.user_agent {
                    agent.push(' ');
                    agent.push_str(suffix);
                }
                platform::http(agent, self.connect_timeout, is_loopback(&base_url))
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
            clock: self.clock.unwrap_or_else(Clock::system),
            early_timer: EarlyTimer::default(),
            limiter: self.stays_within_rate_limit.then(Limiter::default),
            #[cfg(feature = "testing")]
            double: self.double,
        };
        Ok(Client { inner: Arc::new(inner) })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;
    use crate::call::Call;

    fn built(key: &str, url: &str) -> Result<Client> {
        Client::builder(key).base_url(url).build()
    }

    #[test]
    fn a_live_key_requires_https_except_for_localhost() {
        for (key, url, is_valid) in [
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
            assert_eq!(built(key, url).is_ok(), is_valid, "{key} {url}");
        }
    }

    #[test]
    fn the_environment_has_the_key_and_the_url() {
        let from = |key: Option<&str>, url: Option<&str>| {
            let variable = |name: &str| if name == "PAYMENTS_API_KEY" { key } else { url }.map(str::to_owned);
            Client::from_variables(variable).map(|client| client.inner.base_url.to_string())
        };
        assert_eq!(from(Some("sk_test_1"), None).unwrap(), "http://127.0.0.1:8080/");
        assert_eq!(from(Some("sk_live_1"), Some("https://pay.example")).unwrap(), "https://pay.example/");
        assert!(from(None, None).unwrap_err().to_string().contains("PAYMENTS_API_KEY"));
        assert!(from(Some("sk_live_1"), Some("http://pay.example")).is_err());
    }

    #[test]
    fn debug_omits_the_key() {
        let client = built("sk_test_verysecret", "https://pay.example").unwrap();
        let builder = Client::builder("sk_test_verysecret");
        let request = client.prepare(&Call::new(Method::GET, "/payments", None), Duration::MAX);
        for text in [format!("{client:?}"), format!("{builder:?}"), format!("{request:?}")] {
            assert!(!text.contains("verysecret"), "{text}");
        }
    }
}
