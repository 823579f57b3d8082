//! Connects to endpoints: TCP, TLS where the address says https, and words for what can go wrong.

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

/// Connects, and counts the connections that are open. One beyond those that may be kept serves a single request.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Tcp>,
    open: Arc<AtomicUsize>,
    kept: usize,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// This server lacks what a connection takes: descriptors, memory, local ports or lookups. The endpoint has nothing to do
    /// with it.
    #[error("this server has not enough {0}")]
    Exhausted(&'static str),
    #[error(transparent)]
    Lookup(LookupError),
    #[error("{0}")]
    Tcp(io::Error),
    #[error("{0}")]
    Tls(BoxError),
}

impl Connector {
    pub(super) fn new(targets: TargetPolicy, lookups: Lookups, kept: usize) -> Result<Self, BoxError> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { targets, lookups });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        let https = HttpsConnectorBuilder::new().try_with_platform_verifier()?.https_or_http().enable_http1();
        Ok(Self { https: https.wrap_connector(Tcp(tcp)), open: Arc::default(), kept })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = ConnectError;
    type Future = BoxFuture<Self::Response, ConnectError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.https.poll_ready(cx).map_err(of_connecting)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, counted) = (self.https.call(uri), Counted::new(&self.open));
        let may_stay = counted.nth() <= self.kept;
        Box::pin(async move {
            let stream = connecting.await.map_err(of_connecting)?;
            Ok(TokioIo::new(Watched::new(TokioIo::new(stream), counted, may_stay)))
        })
    }
}

/// What is not ours comes from TLS, which is all that is between.
fn of_connecting(error: BoxError) -> ConnectError {
    error.downcast::<ConnectError>().map_or_else(ConnectError::Tls, |error| *error)
}

/// The part below TLS.
#[derive(Clone)]
struct Tcp(HttpConnector<Resolver>);

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = BoxFuture<Self::Response, ConnectError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.0.poll_ready(cx).map_err(|error| of_tcp(error.into(), false))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_ipv6 = uri.host().is_some_and(|host| host.starts_with('['));
        let connecting = self.0.call(uri);
        Box::pin(async move { connecting.await.map_err(|error| of_tcp(error.into(), is_ipv6)) })
    }
}

/// Finds the error that the connector of the HTTP client wraps.
fn of_tcp(error: BoxError, is_ipv6_literal: bool) -> ConnectError {
    let mut cause: &(dyn Error + 'static) = &*error;
    loop {
        if let Some(lookup) = cause.downcast_ref::<LookupError>() {
            return match lookup {
                // The system's resolver does not always say that it could open no socket.
                LookupError::NotFound(found) => match exhausted(found, false).or_else(cannot_open) {
                    Some(what) => ConnectError::Exhausted(what),
                    None => ConnectError::Lookup(LookupError::NotFound(copy(found))),
                },
                LookupError::TooMany => ConnectError::Exhausted("free lookups of host names"),
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

/// What this server has run out of, if an error says so.
fn exhausted(error: &io::Error, is_ipv6_literal: bool) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some("file descriptors"),
        Errno::NOMEM | Errno::NOBUFS => Some("memory"),
        // Of a written-out IPv6 address it also says that this machine has none; names do not lead to such ones.
        Errno::ADDRNOTAVAIL if !is_ipv6_literal => Some("local ports"),
        _ => None,
    }
}

/// What a socket that is opened now would lack.
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

    fn of_number(number: Errno, is_ipv6_literal: bool) -> ConnectError {
        of_tcp(Box::new(io::Error::from(number)), is_ipv6_literal)
    }

    #[test]
    fn what_this_server_lacks_is_told_from_what_the_endpoint_does() {
        for ours in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL] {
            assert!(matches!(of_number(ours, false), ConnectError::Exhausted(_)), "{ours}");
        }
        for theirs in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert!(matches!(of_number(theirs, false), ConnectError::Tcp(_)), "{theirs}");
        }
        assert!(matches!(of_number(Errno::ADDRNOTAVAIL, true), ConnectError::Tcp(_)), "this machine has no IPv6");
    }

    #[test]
    fn a_lookup_that_found_no_descriptor_is_no_wrong_name() {
        let lookup = |number: Errno| of_tcp(Box::new(LookupError::NotFound(number.into())), false);
        assert!(matches!(lookup(Errno::MFILE), ConnectError::Exhausted(_)));
        assert!(matches!(lookup(Errno::NOENT), ConnectError::Lookup(LookupError::NotFound(_))));
        assert!(matches!(of_tcp(Box::new(LookupError::TooMany), false), ConnectError::Exhausted(_)));
    }
}
