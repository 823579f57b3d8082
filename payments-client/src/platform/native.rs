//! A program with threads and sockets.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::redirect;

pub(crate) use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) use futures_util::stream::BoxStream;
pub(crate) use tokio::time::sleep;

pub(crate) use super::early_timer::EarlyTimer;

pub(crate) type BoxFuture<T> = futures_util::future::BoxFuture<'static, T>;

/// The default HTTP client. It connects directly to a server on this machine: a proxy from the environment would get the key,
/// and its loopback is another machine.
pub(crate) fn http(
    user_agent: String,
    connect_timeout: Duration,
    is_loopback: bool,
) -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder().user_agent(user_agent).connect_timeout(connect_timeout);
    let client = if is_loopback { client.no_proxy() } else { client };
    client.redirect(redirect::Policy::none()).build()
}

/// Whether the request failed before anything was sent.
pub(crate) fn is_connect(error: &reqwest::Error) -> bool {
    error.is_connect()
}

/// Reads a response's body. A body of one chunk is not copied.
pub(crate) async fn read(mut response: reqwest::Response) -> reqwest::Result<Bytes> {
    let first = response.chunk().await?.unwrap_or_default();
    let Some(second) = response.chunk().await? else { return Ok(first) };
    let mut body = BytesMut::from(first);
    body.extend_from_slice(&second);
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
