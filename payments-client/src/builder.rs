//! Setting a client up.

use std::{sync::Arc, time::Duration};

use payments_core::Environment;
use reqwest::redirect;
use url::{Host, Url};

use crate::{
    Result, SecretKey,
    budget::Budget,
    client::{Client, Inner, KeyHeader},
    clock::Clock,
    error::{Error, Kind},
    jitter::Jitter,
    limiter::Limiter,
    retry::Policy,
};

/// Where the reference server listens unless told otherwise.
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";

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
    use reqwest::Method;

    use super::*;
    use crate::call::Call;

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
}
