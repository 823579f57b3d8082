//! Connects to endpoints: looks up the host name, connects by TCP, and adds TLS for https.

use std::{
    error::Error,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::{net::TcpStream, sync::Semaphore};
use tower_service::Service;

use super::{
    TargetPolicy,
    connection::Watched,
    lookups::Lookups,
    send_error::{SendError, causes},
    target::EndpointUrlError,
};

/// Connects to endpoints. If all permits for reusable connections are taken, a new connection serves a single request.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector<Resolver>>,
    reusable: Arc<Semaphore>,
}

impl Connector {
    pub(super) fn new(
        targets: TargetPolicy,
        lookups: Lookups,
        max_reusable: usize,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { targets, lookups });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        let https = HttpsConnectorBuilder::new().try_with_platform_verifier()?.https_or_http().enable_http1();
        Ok(Self { https: https.wrap_connector(tcp), reusable: Arc::new(Semaphore::new(max_reusable)) })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = SendError;
    type Future = BoxFuture<'static, Result<Self::Response, SendError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.https.poll_ready(cx).map_err(|error| send_error(&*error, false))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_ipv6_literal = uri.host().is_some_and(|host| host.starts_with('['));
        let (connecting, reusable) = (self.https.call(uri), Arc::clone(&self.reusable).try_acquire_owned().ok());
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| send_error(&*error, is_ipv6_literal))?;
            Ok(TokioIo::new(Watched::new(TokioIo::new(stream), reusable)))
        })
    }
}

/// Classifies a connection error. The TCP layer wraps its errors and the resolver's; the TLS layer does not wrap its own.
fn send_error(error: &(dyn Error + 'static), is_ipv6_literal: bool) -> SendError {
    let below_tls = causes(error).skip(1).find_map(|cause| {
        let of_tcp = || Some(SendError::of_tcp(cause.downcast_ref()?, is_ipv6_literal));
        cause.downcast_ref().cloned().or_else(of_tcp)
    });
    below_tls.filter(|_| !error.is::<io::Error>()).unwrap_or_else(|| SendError::of_tls(error))
}

/// Looks up names for the HTTP client. If any address of a name may not be called, returns none of them.
#[derive(Clone)]
struct Resolver {
    targets: TargetPolicy,
    lookups: Lookups,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = SendError;
    type Future = BoxFuture<'static, Result<Self::Response, SendError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (targets, found) = (self.targets.clone(), self.lookups.addresses(name.as_str().to_owned()));
        Box::pin(async move {
            let mut found = found.await?;
            if found.is_empty() || !found.iter().all(|address| targets.allows(address.ip())) {
                return Err(SendError::not_allowed(EndpointUrlError::NotPublic));
            }
            found.retain(|address| has_route(address.ip()));
            if found.is_empty() {
                return Err(SendError::not_reached("this machine has no route to any of its addresses"));
            }
            Ok(found.into_iter())
        })
    }
}

/// Whether this machine has a route to an address. Sends nothing. Without this check, a call to an IPv6 address from a
/// machine without IPv6 looks like a lack of local ports.
fn has_route(address: IpAddr) -> bool {
    let from: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Err(error) = UdpSocket::bind((from, 0)).and_then(|socket| socket.connect((address, 443))) else { return true };
    // Any other error, such as a lack of descriptors, says nothing about the route.
    !matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::Unsupported
    )
}

#[cfg(test)]
mod tests {
    use payments_core::DeliveryErrorCode;

    use super::*;

    async fn lookup(name: &str, allow_local: bool) -> Result<Vec<SocketAddr>, SendError> {
        let mut resolver = Resolver { targets: TargetPolicy::new(allow_local), lookups: Lookups::system() };
        resolver.call(name.parse().unwrap()).await.map(Iterator::collect)
    }

    #[tokio::test]
    async fn a_name_is_allowed_by_the_addresses_it_resolves_to() {
        assert!(lookup("localhost", true).await.unwrap().iter().all(|address| address.ip().is_loopback()));
        let refused = lookup("localhost", false).await.unwrap_err();
        assert!(matches!(refused, SendError::Delivery(error) if error.code == DeliveryErrorCode::AddressNotAllowed));
    }

    #[test]
    fn loopback_has_a_route() {
        assert!(has_route(Ipv4Addr::LOCALHOST.into()));
    }
}
