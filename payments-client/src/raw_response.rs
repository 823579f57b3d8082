//! Complete responses and failed requests.

use std::fmt;

use bytes::Bytes;
use payments_core::ErrorBody;
use reqwest::header::{HeaderMap, HeaderName};
use serde::de::DeserializeOwned;

use crate::{
    IdempotencyKey, RateLimit, Result,
    clock::Clock,
    error::{Context, Error, Kind},
    platform::is_connect,
    retry::Failure,
    retry_after::retry_after,
};

/// A response as the server sent it. [`Client::request`](crate::Client::request) and `send_raw` return it, and a
/// [`Response`](crate::Response) and an [`Error`] have it.
///
/// `Debug` omits the headers and the body, because they may contain customer data.
#[derive(Clone)]
#[non_exhaustive]
pub struct RawResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: Bytes,
    /// How many times the request was sent.
    pub tries: u32,
    /// The idempotency key of the request, if any.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl RawResponse {
    /// Deserializes the body: into a type of yours, a type of this crate, or `serde_json::Value`.
    ///
    /// # Errors
    /// If the body has another form; see [`Error::is_decode`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|source| self.unreadable::<T>(source))
    }

    /// The server's request id. Include it when you contact the operator.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.headers.get(&REQUEST_ID)?.to_str().ok()
    }

    /// Whether this is the stored response of an earlier request with the same idempotency key.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.headers.get(&REPLAYED).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
    }

    /// The rate limit of the key, if the server sent it.
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        let number = |name: &str| self.headers.get(name)?.to_str().ok()?.trim().parse().ok();
        Some(RateLimit { limit: number("x-ratelimit-limit")?, remaining: number("x-ratelimit-remaining")? })
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn refusal(self, clock: &Clock) -> (Failure, Kind, Context) {
        let failure = Failure::Status { status: self.status, replayed: self.is_replayed() };
        let kind = match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(body) => Kind::Api { status: self.status, body: Box::new(body) },
            Err(_) => Kind::Status { status: self.status },
        };
        let retry_after = retry_after(&self.headers, clock.now());
        (failure, kind, Context { retry_after, ..Context::of(self) })
    }

    /// Deserializes the body again, to find the path of the error.
    fn unreadable<T: DeserializeOwned>(&self, source: serde_json::Error) -> Error {
        let mut json = serde_json::Deserializer::from_slice(&self.body);
        let path = match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Ok(_) => ".".into(),
            Err(error) => error.path().to_string(),
        };
        Error::new(Kind::Decode { status: self.status, path, source }, Context::of(self.clone()))
    }

    /// The API's response to a successful delete.
    pub(crate) fn removed(self) -> Self {
        let body = Bytes::from_static(br#"{"success":true,"message":"The webhook endpoint was removed before"}"#);
        Self { status: 200, body, ..self }
    }
}

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl fmt::Debug for RawResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawResponse")
            .field("status", &self.status)
            .field("request_id", &self.request_id())
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("tries", &self.tries)
            .field("idempotency_key", &self.idempotency_key)
            .finish_non_exhaustive()
    }
}

/// Classifies a request that failed without a response.
pub(crate) fn failed(error: reqwest::Error) -> (Failure, Kind) {
    // The URL contains ids and queries.
    let error = error.without_url();
    if is_connect(&error) {
        (Failure::Connect, Kind::Connect(Some(error)))
    } else if error.is_timeout() {
        (Failure::Lost, Kind::Timeout(Some(error)))
    } else {
        (Failure::Lost, Kind::Lost(Some(error)))
    }
}
