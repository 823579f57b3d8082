//! Connects to endpoints by TCP, and by TLS for https, and classifies connection errors.

use std::{
    error::Error,
    future::Future,
    io,
    net::UdpSocket,
    pin::Pin,
    sync::{Arc, atomic::AtomicUsize},
    task::{Context, Poll},
    time::Duration,
};

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use rustix::io::Errno;
use tokio::net::TcpStream;
use tower_service::Service;

use super::{
    TargetPolicy,
    connection::{Counted, Watched},
    lookups::LookupError,
    lookups::Lookups,
    resolver::Resolver,
};

type BoxError = Box<dyn Error + Send + Sync>;
type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Connects, and counts open connections. Beyond `max_reusable` open ones, a new connection serves a single request.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Tcp>,
    open: Arc<AtomicUsize>,
    max_reusable: usize,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// This server is out of a resource: descriptors, memory, local ports or lookups. The endpoint is not at fault.
    #[error("this server is out of {0}")]
    Exhausted(&'static str),
    #[error(transparent)]
    Lookup(LookupError),
    #[error("{0}")]
    Tcp(io::Error),
    #[error("{0}")]
    Tls(BoxError),
}

impl Connector {
    pub(super) fn new(targets: TargetPolicy, lookups: Lookups, max_reusable: usize) -> Result<Self, BoxError> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { targets, lookups });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        let https = HttpsConnectorBuilder::new().try_with_platform_verifier()?.https_or_http().enable_http1();
        Ok(Self { https: https.wrap_connector(Tcp(tcp)), open: Arc::default(), max_reusable })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = ConnectError;
    type Future = BoxFuture<Self::Response, ConnectError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.https.poll_ready(cx).map_err(connect_error)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, counted) = (self.https.call(uri), Counted::new(&self.open));
        let is_reusable = counted.nth() <= self.max_reusable;
        Box::pin(async move {
            let stream = connecting.await.map_err(connect_error)?;
            Ok(TokioIo::new(Watched::new(TokioIo::new(stream), counted, is_reusable)))
        })
    }
}

/// Any other error comes from TLS, the only layer in between.
fn connect_error(error: BoxError) -> ConnectError {
    error.downcast::<ConnectError>().map_or_else(ConnectError::Tls, |error| *error)
}

/// The TCP layer, below TLS.
#[derive(Clone)]
struct Tcp(HttpConnector<Resolver>);

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = BoxFuture<Self::Response, ConnectError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.0.poll_ready(cx).map_err(|error| tcp_error(error.into(), false))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_ipv6 = uri.host().is_some_and(|host| host.starts_with('['));
        let connecting = self.0.call(uri);
        Box::pin(async move { connecting.await.map_err(|error| tcp_error(error.into(), is_ipv6)) })
    }
}

/// Finds the error that the HTTP client's connector wraps.
fn tcp_error(error: BoxError, is_ipv6_literal: bool) -> ConnectError {
    let mut cause: &(dyn Error + 'static) = &*error;
    loop {
        if let Some(lookup) = cause.downcast_ref::<LookupError>() {
            return match lookup {
                // The system's resolver may hide that it could not open a socket.
                LookupError::NotFound(found) => match exhausted(found, false).or_else(cannot_open) {
                    Some(what) => ConnectError::Exhausted(what),
                    None => ConnectError::Lookup(LookupError::NotFound(copy(found))),
                },
                LookupError::TooMany => ConnectError::Exhausted("DNS lookup capacity"),
                LookupError::NotAllowed(fault) => ConnectError::Lookup(LookupError::NotAllowed(*fault)),
                LookupError::NoRoute => ConnectError::Lookup(LookupError::NoRoute),
            };
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return match exhausted(io, is_ipv6_literal) {
                Some(what) => ConnectError::Exhausted(what),
                None => ConnectError::Tcp(copy(io)),
            };
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return ConnectError::Tcp(io::Error::other(cause.to_string())),
        }
    }
}

/// The resource that this server is out of, if the error says so.
fn exhausted(error: &io::Error, is_ipv6_literal: bool) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some("file descriptors"),
        Errno::NOMEM | Errno::NOBUFS => Some("memory"),
        // For a literal IPv6 address it may mean that this machine has no IPv6; the resolver drops such addresses of names.
        Errno::ADDRNOTAVAIL if !is_ipv6_literal => Some("local ports"),
        _ => None,
    }
}

/// The resource that a new socket would lack.
fn cannot_open() -> Option<&'static str> {
    exhausted(&UdpSocket::bind(("127.0.0.1", 0)).err()?, false)
}

fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_error_of(number: Errno, is_ipv6_literal: bool) -> ConnectError {
        tcp_error(Box::new(io::Error::from(number)), is_ipv6_literal)
    }

    #[test]
    fn errors_of_this_server_are_distinguished_from_errors_of_the_endpoint() {
        for ours in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL] {
            assert!(matches!(tcp_error_of(ours, false), ConnectError::Exhausted(_)), "{ours}");
        }
        for theirs in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert!(matches!(tcp_error_of(theirs, false), ConnectError::Tcp(_)), "{theirs}");
        }
        assert!(matches!(tcp_error_of(Errno::ADDRNOTAVAIL, true), ConnectError::Tcp(_)), "this machine has no IPv6");
    }

    #[test]
    fn a_lookup_without_a_free_descriptor_is_not_an_unknown_name() {
        let lookup = |number: Errno| tcp_error(Box::new(LookupError::NotFound(number.into())), false);
        assert!(matches!(lookup(Errno::MFILE), ConnectError::Exhausted(_)));
        assert!(matches!(lookup(Errno::NOENT), ConnectError::Lookup(LookupError::NotFound(_))));
        assert!(matches!(tcp_error(Box::new(LookupError::TooMany), false), ConnectError::Exhausted(_)));
    }
}
