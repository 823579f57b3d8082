//! Responses with their metadata.

use reqwest::header::{HeaderMap, HeaderName};

use crate::IdempotencyKey;

/// A value with the details of its response. `send_for_response` returns it; awaiting a request returns only the value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response<T> {
    /// The value.
    pub value: T,
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// How many times the request was sent.
    pub tries: u32,
    /// The idempotency key of the request, if any.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl<T> Response<T> {
    /// The server's request id. Include it when you contact the operator.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    /// Whether this is the stored response of an earlier request with the same idempotency key.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        is_replayed(&self.headers)
    }

    /// The rate limit of the key, if the server sent it.
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        rate_limit(&self.headers)
    }
}

/// The server's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// The number of requests per minute.
    pub limit: u32,
    /// The number of requests left in this minute.
    pub remaining: u32,
}

pub(crate) fn rate_limit(headers: &HeaderMap) -> Option<RateLimit> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse().ok();
    Some(RateLimit { limit: number("x-ratelimit-limit")?, remaining: number("x-ratelimit-remaining")? })
}

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(&REQUEST_ID)?.to_str().ok()
}

pub(crate) fn is_replayed(headers: &HeaderMap) -> bool {
    headers.get(&REPLAYED).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}
