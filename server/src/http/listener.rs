//! The socket: accepts connections within bounds, and gives every answer what all answers have.
//!
//! `warp::serve` has no header timeout, no limit of connections and no end to its shutdown, so the connections are
//! served here by hyper's HTTP/1 builder, with a timer. warp does the routing, as a service.

use std::{
    convert::Infallible, future::Future, io, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use futures_util::FutureExt;
use hyper::{body, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tower_service::Service as _;
use tracing::Instrument;
use warp::{
    http::{HeaderValue, Request},
    reply::Response,
};

use super::{Routes, reply::Problem};
use crate::ambient::Ambient;

/// The listener's bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How many connections may be open at once; who comes after waits to be accepted.
    pub(crate) connections: usize,
    /// How long a connection may take to send a request's head, and how long it may idle between two.
    pub(crate) head: Duration,
    /// How many header fields a request may have.
    pub(crate) header_fields: usize,
    /// How long requests under way may take to end when the server shuts down.
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, head: Duration::from_secs(20), header_fields: 64, drain: Duration::from_secs(10) }
    }
}

/// A socket that is listened on.
pub(crate) struct Listener {
    socket: TcpListener,
    limits: Limits,
}

impl Listener {
    /// Begins to listen; connections wait until [`serve`](Self::serve).
    pub(crate) async fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, limits })
    }

    /// Where it listens, with the port that was picked.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop`, then lets the requests under way end.
    pub(crate) async fn serve(self, routes: Routes, ambient: Arc<dyn Ambient>, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let connections = GracefulShutdown::new();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_headers(self.limits.header_fields)
            .keep_alive(true);
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = async {
                // The semaphore is never closed; without a place nothing is accepted.
                let place = Arc::clone(&places).acquire_owned().await;
                (self.socket.accept().await, place)
            };
            let (stream, place) = tokio::select! {
                () = &mut stop => break,
                (Ok((stream, _)), place) = accepted => (stream, place),
                else => {
                    // Most often the process has no file descriptor left; one will be free in a moment.
                    sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let connection = connection(&http, stream, routes.clone(), Arc::clone(&ambient));
            let connection = connections.watch(connection);
            tokio::spawn(async move {
                // A connection that breaks is the peer's affair; what it asked for was answered or was not.
                let _ = connection.await;
                drop(place);
            });
        }
        drop(self.socket);
        if timeout(self.limits.drain, connections.shutdown()).await.is_err() {
            tracing::warn!("requests were still under way when the time to drain was over");
        }
    }
}

fn connection(
    http: &http1::Builder,
    stream: TcpStream,
    routes: Routes,
    ambient: Arc<dyn Ambient>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    // Answers are written whole; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let service =
        service_fn(move |request: Request<body::Incoming>| respond(routes.clone(), Arc::clone(&ambient), request));
    http.serve_connection(TokioIo::new(stream), service)
}

/// Answers one request: with an id that the answer and the log share, and even if its handler panics.
async fn respond(
    routes: Routes,
    ambient: Arc<dyn Ambient>,
    request: Request<body::Incoming>,
) -> Result<Response, Infallible> {
    let id = format!("req_{}", uuid::Builder::from_random_bytes(ambient.random()).into_uuid().simple());
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let handled = AssertUnwindSafe(warp::service(routes).call(request)).catch_unwind().instrument(span.clone());
    let mut response = match handled.await {
        Ok(Ok(response)) => response,
        Err(_) => span.in_scope(|| Problem::Internal("the handler panicked".into()).into_response()),
    };
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    Ok(response)
}
