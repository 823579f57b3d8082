//! Responses with their values.

use std::ops::Deref;

use crate::RawResponse;

/// A value and the response that contained it. `send_for_response` returns it; awaiting a request returns only the value. It
/// dereferences to the [`RawResponse`], so `response.status` and `response.request_id()` work.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response<T> {
    /// The value.
    pub value: T,
    /// The response: status, headers, request id and body.
    pub raw: RawResponse,
}

impl<T> Deref for Response<T> {
    type Target = RawResponse;

    fn deref(&self) -> &RawResponse {
        &self.raw
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
