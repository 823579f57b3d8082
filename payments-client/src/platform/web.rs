//! WebAssembly in a browser or a worker: requests go through `fetch`, and futures stay on their thread.

use std::time::Duration;

use bytes::Bytes;

pub(crate) use futures_util::stream::LocalBoxStream as BoxStream;
pub(crate) use gloo_timers::future::sleep;
pub(crate) use web_time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) type BoxFuture<T> = futures_util::future::LocalBoxFuture<'static, T>;

/// `fetch` has no timer to wake, so this does nothing.
#[derive(Debug, Default)]
pub(crate) struct EarlyTimer;

impl EarlyTimer {
    pub(crate) fn keep(&self, _: Duration) {}
}

/// The default HTTP client. `fetch` has no connect timeout, and follows redirects.
pub(crate) fn http(user_agent: String, _: Duration, _: bool) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder().user_agent(user_agent).build()
}

/// `fetch` does not tell whether it sent the request, so assume that it did.
pub(crate) fn is_connect(_: &reqwest::Error) -> bool {
    false
}

/// Reads a response's body.
pub(crate) async fn read(response: reqwest::Response) -> reqwest::Result<Bytes> {
    response.bytes().await
}
