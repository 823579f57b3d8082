//! An answer with all that came with it.

use reqwest::header::{HeaderMap, HeaderName};

use crate::IdempotencyKey;

/// What a call gave, and the answer it came in. Ask for it with `send_for_response`; the plain call gives the value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response<T> {
    /// The value.
    pub value: T,
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// How many times it was sent.
    pub tries: u32,
    /// The idempotency key it was sent under, if it carried one.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl<T> Response<T> {
    /// The server's name for this request; tell it when you ask its operator for help.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    /// Whether this is the kept answer of an earlier request under the same idempotency key.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        is_replayed(&self.headers)
    }

    /// How many requests the key may still make in this minute, if the server said.
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        rate_limit(&self.headers)
    }
}

/// What the server said of its rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// Requests in a minute.
    pub limit: u32,
    /// Requests left in this one.
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
