//! The client: where the API is, whose key is used, and one way to send a request.

use std::{sync::Arc, time::Duration};

use payments_core::{Environment, ErrorBody};
use reqwest::{Method, RequestBuilder, header, redirect};
use serde::de::DeserializeOwned;
use url::{Host, Url};

use crate::{
    Payments, Result, SecretKey, Webhooks,
    error::{Error, Kind},
};

/// Where the reference server listens unless told otherwise.
const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";
const TIMEOUT: Duration = Duration::from_secs(30);

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
        ClientBuilder { key: SecretKey::new(key.as_ref()).map_err(Error::from), base_url: DEFAULT_BASE_URL.into() }
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

    /// A request to a path below `/api/v1`, given in segments, each of which is encoded.
    pub(crate) fn request(&self, method: Method, segments: &[&str]) -> RequestBuilder {
        let mut url = self.inner.base_url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(segments);
        }
        self.inner.http.request(method, url).header(header::AUTHORIZATION, self.inner.key.header())
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let response = request.send().await.map_err(|error| Kind::Transport(error.without_url()))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| Kind::Transport(error.without_url()))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| Kind::Decode(error).into());
        }
        Err(match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Kind::Api { status, body },
            Err(_) => Kind::Status { status },
        }
        .into())
    }
}

/// Sets a [`Client`] up.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder {
    key: Result<SecretKey>,
    base_url: String,
}

impl ClientBuilder {
    /// Where the API is, without `/api/v1`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
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
        let http = reqwest::Client::builder()
            .user_agent(concat!("payments-client/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| Kind::Build(error.to_string()))?;
        Ok(Client { inner: Arc::new(Inner { http, base_url, key }) })
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
        let request = client.request(Method::GET, &["payments"]);
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
            let request = built("sk_test_1", base).unwrap().request(Method::GET, &["payments", "a/b"]);
            assert_eq!(request.build().unwrap().url().as_str(), url);
        }
    }
}
