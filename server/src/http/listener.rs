//! The listener: accepts connections within limits, answers each request, and sets the headers that all responses have.
//!
//! hyper serves the connections, because `warp::serve` limits neither connections nor the time of a head or a shutdown. warp
//! only calls the handlers: the routes are a warp filter, which gets the request as an extension.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Empty;
use hyper::{body, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_service::Service as _;
use warp::{
    http::{HeaderName, Method, Request, StatusCode, header},
    reply::Response,
};

use super::{
    by_address::ConnectionsByAddress,
    head::{self, Addresses, Head},
    hosts::Hosts,
    input,
    limit::RateLimits,
    lingering::Lingering,
    logged::REQUEST,
    pace,
    parts::Parts,
    reply::ApiError,
    request_id::RequestIds,
    route::OTHER,
    routes::{Routes, find, routes},
    server::Server,
    unsent,
    work::{Observed, Work, Working},
};
use crate::{metrics::Requests, process::budget::Budget, trace};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of open connections; the next one waits to be accepted.
    pub connections: usize,
    /// How long a connection may take to send a request's head, and how long it may idle between requests.
    pub head: Duration,
    /// Time in which a client must take 16 KiB of its response, or all of it.
    pub write: Duration,
    /// How long requests in flight may take to finish on shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, head: Duration::from_secs(20), write: pace::WINDOW, drain: Duration::from_secs(10) }
    }
}

/// Time after the start of a shutdown in which the rest of a request's head may arrive.
const LAST_HEAD: Duration = Duration::from_secs(1);

pub struct Listener {
    socket: TcpListener,
    limits: Limits,
}

impl Listener {
    /// Binds the socket; connections wait until [`serve`](Self::serve).
    pub async fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, limits })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop`, then lets requests in flight finish.
    pub async fn serve(self, edge: Edge, stop: CancellationToken) {
        let edge = Arc::new(edge);
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let connections = GracefulShutdown::new();
        let (abort, too_late) = (CancellationToken::new(), CancellationToken::new());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.head).keep_alive(true);
        head::configure(&mut http);
        let accept = async || {
            // The semaphore is never closed. Accept nothing without a permit.
            let permit = Arc::clone(&permits).acquire_owned().await;
            (self.socket.accept().await, permit)
        };
        while let Some((accepted, permit)) = stop.run_until_cancelled(accept()).await {
            let (stream, peer) = match accepted {
                Ok((stream, address)) => (stream, address.ip()),
                Err(error) => {
                    // Usually the process has no free file descriptor; retry shortly.
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(admitted) = edge.addresses.admit(peer) else {
                edge.metrics.connections_closed.inc();
                continue;
            };
            // Responses are written whole, so Nagle's algorithm would only delay them.
            let _ = stream.set_nodelay(true);
            let (shared, work) = (Arc::clone(&edge), Work::new(Arc::clone(&edge.input), peer));
            let too_slow = edge.metrics.slow_readers_closed.clone();
            let stream = TokioIo::new(Observed::new(stream, work.clone(), self.limits.write, too_slow));
            let begun = work.clone();
            let service = service_fn(move |request| Arc::clone(&shared).respond(peer, request, begun.begin()));
            let connection = connections.watch(http.serve_connection(stream, service));
            let (metrics, abort, too_late) = (edge.metrics.clone(), abort.clone(), too_late.clone());
            metrics.connections.inc();
            edge.tasks.spawn(async move {
                // Ignore broken connections; count unparsable requests.
                let ended = tokio::select! {
                    biased;
                    ended = connection => Some(ended),
                    () = cut_off(&too_late, &abort, &work) => None,
                };
                if ended.is_some_and(|ended| ended.is_err_and(|error| error.is_parse())) {
                    metrics.unreadable.inc();
                }
                metrics.connections.dec();
                drop((permit, admitted));
            });
        }
        drop(self.socket);
        let drained = timeout(self.limits.drain, async {
            let mut drained = pin!(connections.shutdown());
            if timeout(LAST_HEAD, &mut drained).await.is_err() {
                too_late.cancel();
                drained.await;
            }
        });
        if drained.await.is_err() {
            tracing::warn!("drain timeout reached; closing connections with requests in flight");
            too_late.cancel();
            abort.cancel();
        }
    }
}

/// Waits until the shutdown ends a connection. A connection without work ends when it is too late for a new request. A
/// connection with work ends when that takes too long.
async fn cut_off(too_late: &CancellationToken, abort: &CancellationToken, work: &Work) {
    too_late.cancelled().await;
    if work.is_at_hand() {
        abort.cancelled().await;
    }
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The shared state that serves every connection's requests.
pub struct Edge {
    routes: Routes,
    ids: RequestIds,
    limits: Arc<RateLimits>,
    addresses: ConnectionsByAddress,
    hosts: Hosts,
    /// Counts the bytes of responses that clients have not taken yet. `input` counts the bytes of requests.
    unsent: Arc<Budget<IpAddr>>,
    input: Arc<Budget<IpAddr>>,
    metrics: Requests,
    tasks: TaskTracker,
}

impl Edge {
    pub fn new(server: &Arc<Server>, parts: Parts, addresses: ConnectionsByAddress, hosts: Hosts) -> Self {
        let (service, metrics) = (&server.services.lasting, server.metrics.requests.clone());
        Self {
            routes: routes(server, parts),
            ids: RequestIds::new(&*service.ambient),
            limits: Arc::clone(&server.limits),
            addresses,
            hosts,
            unsent: Budget::new(unsent::BUDGET, metrics.unsent.clone()),
            input: Budget::new(input::BUDGET, metrics.input.clone()),
            metrics,
            tasks: service.tasks.clone(),
        }
    }

    /// Responds to one request. Lines logged meanwhile name the request.
    async fn respond(
        self: Arc<Self>,
        peer: IpAddr,
        request: Request<body::Incoming>,
        working: Working,
    ) -> Result<Response, Infallible> {
        let (parts, body) = request.into_parts();
        let found = find(&parts.method, parts.uri.path());
        let client = self.limits.client(peer, &parts.headers);
        let body = Lingering::new(body, parts.headers.contains_key(header::EXPECT), &working);
        let head = Arc::new(Head {
            id: self.ids.next(),
            parts,
            addresses: Addresses { peer, client },
            found,
            verdict: OnceLock::new(),
            body: Mutex::new(Some(body)),
        });
        let (parts, route) = (&head.parts, head.found.as_ref().map_or(OTHER, |found| found.label));
        let answer = REQUEST.scope(Arc::clone(&head), self.answer(&head));
        Ok(trace::request(&parts.headers, &parts.method, route, &head.id, answer).await)
    }

    #[cfg(feature = "simulation")]
    pub async fn serve_stream(self: Arc<Self>, peer: IpAddr, stream: tokio::io::DuplexStream) {
        let work = Work::new(Arc::clone(&self.input), peer);
        let service = service_fn(move |request| Arc::clone(&self).respond(peer, request, work.begin()));
        let mut http = http1::Builder::new();
        head::configure(&mut http);
        // With an injected fault, this ends with an error.
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    }

    /// Answers a request, even if its handler panics. Adds the request's id and the rate-limit headers.
    async fn answer(&self, head: &Arc<Head>) -> Response {
        let (begun, client) = (Instant::now(), head.addresses.client);
        let handled = AssertUnwindSafe(self.handle(head)).catch_unwind();
        let mut response = handled.await.unwrap_or_else(|_| {
            self.metrics.panics.inc();
            ApiError::internal("the handler panicked").into_response()
        });
        let verdict = match head.verdict.get() {
            Some(verdict) => *verdict,
            None => {
                // The gate has not counted it, because the path or the key is unknown.
                let verdict = self.limits.take_client(client).await;
                if let Some(seconds) = verdict.retry_after().filter(|_| response.status() != StatusCode::UNAUTHORIZED) {
                    response = ApiError::too_many_requests(seconds).into_response();
                }
                verdict
            }
        };
        let had_effect = !matches!(head.parts.method, Method::GET | Method::HEAD);
        let mut response = unsent::counted(&self.unsent, client, response, had_effect).await;
        verdict.write(&mut response);
        let (status, took) = (response.status().as_u16(), begun.elapsed());
        let route = head.found.as_ref().map_or(OTHER, |found| found.label);
        self.metrics.answered(route, head.parts.method.as_str(), status, took);
        tracing::debug!(route, status, micros = took.as_micros(), "answered");
        response.headers_mut().insert(X_REQUEST_ID, head.id.clone());
        response
    }

    /// Checks the head's length and host, then calls the routes.
    async fn handle(&self, head: &Arc<Head>) -> Response {
        if let Err(error) = head::check(&head.parts) {
            return error.into_response();
        }
        if !self.hosts.know(&head.parts) {
            return ApiError::host_unknown().into_response();
        }
        let mut request = Request::new(Empty::<Bytes>::new());
        request.extensions_mut().insert(Arc::clone(head));
        let Ok(response) = warp::service(self.routes.clone()).call(request).await;
        response
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };
    use warp::Filter;

    use super::*;
    use crate::{ambient::OperatingSystem, http::TrustedProxies, metrics::BudgetMetrics};

    async fn listening_with(limits: Limits) -> SocketAddr {
        let routes = warp::ext::get::<Arc<Head>>().then(async |head: Arc<Head>| match head.parts.uri.path() {
            "/panic" => panic!("on purpose"),
            _ => Response::new("yes".into()),
        });
        let routes = routes.boxed();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), limits).await.unwrap();
        let address = listener.address().unwrap();
        let metrics = crate::metrics::Metrics::new().requests;
        let limits = Arc::new(RateLimits::new(0, 0, TrustedProxies::default(), &metrics.rate_windows_evicted));
        let addresses = ConnectionsByAddress::new(usize::MAX, TrustedProxies::default());
        let (ids, tasks) = (RequestIds::new(&OperatingSystem), TaskTracker::new());
        let budget = |metrics: &BudgetMetrics| Budget::new(1 << 20, metrics.clone());
        let (unsent, input, hosts) = (budget(&metrics.unsent), budget(&metrics.input), Hosts::default());
        let edge = Edge { routes, ids, limits, addresses, hosts, unsent, input, metrics, tasks };
        tokio::spawn(listener.serve(edge, CancellationToken::new()));
        address
    }

    async fn ask(stream: &mut TcpStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    #[tokio::test]
    async fn a_panicking_handler_returns_500_and_keeps_the_connection() {
        let mut stream = TcpStream::connect(listening_with(Limits::default()).await).await.unwrap();
        let answer = ask(&mut stream, "GET /panic HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 500 Internal Server Error"), "{answer}");
        assert!(answer.contains("x-request-id: req_") && answer.contains(r#""statusCode":500"#), "{answer}");
        assert!(answer.contains(r#""code":"internal_error"}"#), "{answer}");
        assert!(!answer.contains("on purpose"), "{answer}");
        let answer = ask(&mut stream, "GET /works HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn the_listener_closes_a_connection_without_a_request() {
        let limits = Limits { head: Duration::from_millis(100), ..Limits::default() };
        let address = listening_with(limits).await;
        for beginning in ["", "GET /works HTTP/1.1\r\nhost"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(beginning.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.expect("still open").unwrap();
        }
    }

    #[tokio::test]
    async fn beyond_the_connection_limit_the_next_connection_waits() {
        let address = listening_with(Limits { connections: 1, ..Limits::default() }).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut first, "GET /works HTTP/1.1\r\nhost: x\r\n\r\n").await.contains("yes"));
        let mut second = TcpStream::connect(address).await.unwrap();
        let waiting = tokio::spawn(async move { ask(&mut second, "GET /works HTTP/1.1\r\nhost: x\r\n\r\n").await });
        sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap().contains("yes"));
    }
}
