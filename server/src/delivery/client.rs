//! The HTTP client that calls endpoints.
//!
//! Connections are kept open for a moment, since most events come in bursts; not more than their share of the process's
//! descriptors, which the [`Connector`] sees to. Where one that was used before ends before any
//! byte of an answer, the endpoint closed it for being idle, most likely before the request arrived: the request goes out
//! once more, on a new connection. What fails on a new connection is not sent again.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    http::Extensions,
};
use hyper_util::{
    client::legacy::{Client, Error as ClientError},
    rt::{TokioExecutor, TokioTimer},
};

use super::{TargetPolicy, connection::Traffic, connector::Connector, lookups::Lookups, width::Width};

/// How long an idle connection is kept. Node's servers close theirs after 5 seconds.
const IDLE: Duration = Duration::from_secs(4);

/// The body of a request.
pub(super) type Body = Full<Bytes>;

/// Sends requests to endpoints.
pub(super) struct HttpClient {
    pooled: Client<Connector, Body>,
    /// Opens a connection for each request and keeps none.
    fresh: Client<Connector, Body>,
}

impl HttpClient {
    /// A client that keeps at most so many connections open beside those that requests in flight use.
    pub(super) fn new(
        targets: TargetPolicy,
        lookups: Lookups,
        kept: usize,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let connector = Connector::new(targets, lookups, kept)?;
        let client = |idle| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle)
                .build(connector.clone())
        };
        Ok(Self { pooled: client(Width::MOST), fresh: client(0) })
    }

    /// Sends a request; `request` makes it, and makes it again where it is sent again.
    pub(super) async fn send(
        &self,
        request: impl Fn() -> Result<Request<Body>, hyper::http::Error>,
    ) -> Result<Response<Incoming>, SendError> {
        let answer = match self.pooled.request(request()?).await {
            Err(error) if was_stale(&error) => {
                let mut again = request()?;
                again.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                self.fresh.request(again).await?
            }
            outcome => outcome?,
        };
        if let Some(traffic) = answer.extensions().get::<Traffic>() {
            traffic.answered();
        }
        Ok(answer)
    }
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
}

/// Whether a request failed because its connection had ended while nothing was under way on it.
fn was_stale(error: &ClientError) -> bool {
    let mut known = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut known);
    }
    known.get::<Traffic>().is_some_and(Traffic::was_stale)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{
        super::lookups::{ATTEMPT_OF, AttemptOf},
        *,
    };

    #[tokio::test]
    async fn a_lookup_counts_as_one_of_the_developer_whose_attempt_it_is() {
        let lookups = Lookups::by(|_| Err(io::ErrorKind::NotFound.into()));
        let client = HttpClient::new(TargetPolicy { allow_local: true }, lookups.clone(), 1).unwrap();
        for developer in ["dev_1", "dev_2"] {
            let developer: payments_core::DeveloperId = developer.parse().unwrap();
            let request = || Request::post("http://shop.example/hook").body(Body::default());
            let attempt = ATTEMPT_OF.scope(AttemptOf::new(developer.clone()), client.send(request));
            assert!(attempt.await.is_err());
            assert_eq!(lookups.of(), [Some(developer)]);
        }
    }
}
