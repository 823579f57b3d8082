//! The HTTP client that calls endpoints.
//!
//! Idle connections stay open for a moment, because events come in bursts. The [`Connector`] limits how many. If a reused
//! connection ends before the first byte of a response, the endpoint probably closed it as idle before it received the
//! request. So the client sends the request once more, on a new connection. It does not repeat a request that fails on a new
//! connection.

use std::{error::Error, time::Duration};

use async_trait::async_trait;
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

use super::{
    TargetPolicy, connection::Traffic, connector::Connector, lookups::Lookups, send_error::SendError, width::Width,
};

/// How long an idle connection stays open. Node's servers close theirs after 5 seconds.
const IDLE: Duration = Duration::from_secs(4);

/// Maximum length of a response's head, and of one read.
const MAX_HEAD_BYTES: usize = 64 * 1024;

pub type Body = Full<Bytes>;

/// Sends requests to endpoints.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// Sends the request that `request` builds. Builds it again for a second try.
    async fn send(&self, request: &RequestBuilder<'_>) -> Result<Response<Incoming>, SendError>;
}

/// Builds a request, signed at that moment.
pub type RequestBuilder<'r> = dyn Fn() -> Result<Request<Body>, SendError> + Sync + 'r;

pub(super) struct HttpClient {
    pooled: Client<Connector, Body>,
    /// Opens a connection for each request and closes it afterwards.
    fresh: Client<Connector, Body>,
}

impl HttpClient {
    /// A client that keeps at most `max_reusable` connections open for reuse.
    pub(super) fn new(
        targets: TargetPolicy,
        lookups: Lookups,
        max_reusable: usize,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let connector = Connector::new(targets, lookups, max_reusable)?;
        let client = |idle| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle)
                .http1_max_buf_size(MAX_HEAD_BYTES)
                // Accept invalid heads that some receivers write: servers in front of them accept them too.
                .http1_allow_spaces_after_header_name_in_responses(true)
                .http1_allow_obsolete_multiline_headers_in_responses(true)
                .http1_ignore_invalid_headers_in_responses(true)
                .build(connector.clone())
        };
        Ok(Self { pooled: client(Width::MAX), fresh: client(0) })
    }
}

#[async_trait]
impl Endpoints for HttpClient {
    async fn send(&self, request: &RequestBuilder<'_>) -> Result<Response<Incoming>, SendError> {
        let response = match self.pooled.request(request()?).await {
            Err(error) if traffic_of(&error).is_some_and(|traffic| traffic.was_stale()) => {
                let mut again = request()?;
                again.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                self.fresh.request(again).await
            }
            outcome => outcome,
        };
        let response = response.map_err(|error| {
            let status = traffic_of(&error).and_then(|traffic| traffic.status());
            match (SendError::from(error), status) {
                // The endpoint has decided by its status line. What follows the line does not matter.
                (error, Some(status)) if error.is_invalid_response() => SendError::StatusOnly(status),
                (error, _) => error,
            }
        })?;
        if let Some(traffic) = response.extensions().get::<Traffic>() {
            traffic.answered();
        }
        Ok(response)
    }
}

/// The traffic of the connection on which a request failed.
fn traffic_of(error: &ClientError) -> Option<Traffic> {
    let mut known = Extensions::new();
    error.connect_info()?.get_extras(&mut known);
    known.remove()
}

#[cfg(test)]
mod tests {
    use std::{future::pending, io, sync::Mutex};

    use http_body_util::BodyExt as _;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::{
        super::lookups::{ATTEMPT, DeliveryAttempt},
        *,
    };

    #[tokio::test]
    async fn a_lookup_counts_for_the_developer_of_its_delivery_attempt() {
        let lookups = Lookups::with_resolver(|_| Err(io::ErrorKind::NotFound.into()));
        let client = HttpClient::new(TargetPolicy::new(true), lookups.clone(), 1).unwrap();
        for developer in ["dev_1", "dev_2"] {
            let developer: payments_core::DeveloperId = developer.parse().unwrap();
            let request =
                || Request::post("http://shop.example/hook").body(Body::default()).map_err(SendError::not_sent);
            let attempt = ATTEMPT.scope(DeliveryAttempt::new(developer.clone()), client.send(&request));
            assert!(attempt.await.is_err());
            assert_eq!(lookups.developers(), [Some(developer)]);
        }
    }

    /// What an endpoint does with one request of a connection.
    #[derive(Clone, Copy)]
    enum Then {
        Answer,
        Close,
    }

    /// Serves connections, one after another, and notes the heads of all requests.
    async fn serve(listener: TcpListener, connections: &[&[Then]], heads: &Mutex<Vec<String>>) {
        for requests in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            for then in *requests {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                if let Then::Answer = then {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                }
            }
        }
        pending().await
    }

    /// Sends requests one after another to an endpoint that acts by `connections`. Returns whether each succeeded, and the
    /// heads.
    async fn exchanged(requests: usize, connections: &[&[Then]]) -> (Vec<bool>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let client = HttpClient::new(TargetPolicy::new(true), Lookups::system(), 9).unwrap();
        let send = async {
            let mut outcomes = Vec::new();
            for _ in 0..requests {
                let request = || Request::post(&url).body(Body::default()).map_err(SendError::not_sent);
                let response = client.send(&request).await;
                outcomes.push(response.is_ok());
                if let Ok(response) = response {
                    response.into_body().collect().await.unwrap();
                }
            }
            outcomes
        };
        let heads = Mutex::default();
        tokio::select! {
            outcomes = send => (outcomes, heads.lock().unwrap().clone()),
            () = serve(listener, connections, &heads) => unreachable!(),
        }
    }

    #[tokio::test]
    async fn a_request_on_a_connection_closed_as_idle_is_sent_again_on_a_new_one() {
        let (outcomes, heads) = exchanged(2, &[&[Then::Answer, Then::Close], &[Then::Answer]]).await;
        assert_eq!((outcomes, heads.len()), (vec![true, true], 3));
        assert!(!heads[1].contains("connection: close") && heads[2].contains("connection: close"), "{heads:?}");
    }

    #[tokio::test]
    async fn a_status_counts_even_if_the_rest_of_the_head_is_invalid() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nX-Powered-By : PHP\r\nContent-Length: 0\r\n\r\n", Ok(200)),
            ("HTTP/1.1 201 Created\r\nX-Folded: a\r\n b\r\nContent-Length: 0\r\n\r\n", Ok(201)),
            ("HTTP/1.1 204\r\nWarning: line 3\r\nPHP Notice\r\n\r\n", Ok(204)),
            ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", Ok(200)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Err(Some(200))),
            ("HTTP/1.1 500 Oops\r\nContent-Length: nonsense\r\n\r\n", Err(Some(500))),
            ("HTTP/1.1 103 Early\r\nContent-Length: x\r\n\r\n", Err(None)),
            ("SSH-2.0-OpenSSH_9.2\r\n", Err(None)),
            ("HTTP/1.1 20", Err(None)),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/hook", listener.local_addr().unwrap());
            let serve = async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await.unwrap();
                stream.write_all(head.as_bytes()).await.unwrap();
            };
            let client = HttpClient::new(TargetPolicy::new(true), Lookups::system(), 9).unwrap();
            let request = || Request::post(&url).body(Body::default()).map_err(SendError::not_sent);
            let (answer, ()) = tokio::join!(client.send(&request), serve);
            let found = answer.map(|answer| answer.status().as_u16()).map_err(|error| match error {
                SendError::StatusOnly(status) => Some(status.as_u16()),
                _ => None,
            });
            assert_eq!(found, expected, "{head}");
        }
    }

    #[tokio::test]
    async fn an_endless_head_is_read_only_up_to_a_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let serve = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
            let mut sent = 0;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {
                sent += 4096;
            }
            sent
        };
        let client = HttpClient::new(TargetPolicy::new(true), Lookups::system(), 9).unwrap();
        let request = || Request::post(&url).body(Body::default()).map_err(SendError::not_sent);
        let (answer, sent) = tokio::join!(client.send(&request), serve);
        assert!(matches!(answer, Err(SendError::StatusOnly(status)) if status == 200));
        // The sockets' buffers hold some more.
        assert!(sent < 16 * 1024 * 1024, "{sent}");
    }

    #[tokio::test]
    async fn a_request_that_fails_on_a_new_connection_is_not_sent_again() {
        let (outcomes, heads) = exchanged(1, &[&[Then::Close], &[Then::Answer]]).await;
        assert_eq!((outcomes, heads.len()), (vec![false], 1));
    }
}
