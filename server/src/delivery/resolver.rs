//! Looks up an endpoint's host name, for each new connection.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    task::{Context, Poll},
    vec,
};

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::{TargetPolicy, fault::Fault, lookups::Lookups, target::TargetFault};

/// Looks up names for the HTTP client. If any address of a name may not be called, returns none of them.
#[derive(Clone)]
pub(super) struct Resolver {
    pub(super) targets: TargetPolicy,
    pub(super) lookups: Lookups,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Fault;
    type Future = BoxFuture<'static, Result<Self::Response, Fault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (targets, found) = (self.targets, self.lookups.addresses(name.as_str().to_owned()));
        Box::pin(async move {
            let mut found = found.await?;
            if found.is_empty() || !found.iter().all(|address| targets.allows(address.ip())) {
                return Err(Fault::not_allowed(TargetFault::NotPublic));
            }
            found.retain(|address| has_route(address.ip()));
            if found.is_empty() {
                return Err(Fault::not_reached("this machine has no route to any of its addresses"));
            }
            Ok(found.into_iter())
        })
    }
}

/// Whether this machine has a route to an address. Sends nothing. Without this check, calling an IPv6 address from a machine
/// without IPv6 looks like a lack of local ports.
fn has_route(address: IpAddr) -> bool {
    let from: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Err(error) = UdpSocket::bind((from, 0)).and_then(|socket| socket.connect((address, 443))) else { return true };
    // Any other error says nothing about the route: there may be no free descriptor.
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

    async fn lookup(name: &str, allow_local: bool) -> Result<Vec<SocketAddr>, Fault> {
        let mut resolver = Resolver { targets: TargetPolicy { allow_local }, lookups: Lookups::system() };
        resolver.call(name.parse().unwrap()).await.map(Iterator::collect)
    }

    #[tokio::test]
    async fn a_name_is_allowed_by_the_addresses_it_resolves_to() {
        assert!(lookup("localhost", true).await.unwrap().iter().all(|address| address.ip().is_loopback()));
        let refused = lookup("localhost", false).await.unwrap_err();
        assert!(matches!(refused, Fault::Delivery(error) if error.code == DeliveryErrorCode::AddressNotAllowed));
    }

    #[test]
    fn loopback_has_a_route() {
        assert!(has_route(Ipv4Addr::LOCALHOST.into()));
    }
}
