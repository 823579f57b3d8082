//! Looks up an endpoint's host name, for each new connection.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::{
    TargetPolicy,
    lookups::{LookupError, Lookups},
    target::TargetFault,
};

/// Looks up names for the HTTP client. If any address of a name may not be called, returns none of them.
#[derive(Clone)]
pub(super) struct Resolver {
    pub(super) targets: TargetPolicy,
    pub(super) lookups: Lookups,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (targets, found) = (self.targets, self.lookups.addresses(name.as_str().to_owned()));
        Box::pin(async move {
            let mut found = found.await?;
            if found.is_empty() || !found.iter().all(|address| targets.allows(address.ip())) {
                return Err(LookupError::NotAllowed(TargetFault::NotPublic));
            }
            found.retain(|address| has_route(address.ip()));
            if found.is_empty() { Err(LookupError::NoRoute) } else { Ok(found.into_iter()) }
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
    use super::*;

    async fn lookup(name: &str, allow_local: bool) -> Result<Vec<SocketAddr>, LookupError> {
        let mut resolver = Resolver { targets: TargetPolicy { allow_local }, lookups: Lookups::system() };
        resolver.call(name.parse().unwrap()).await.map(Iterator::collect)
    }

    #[tokio::test]
    async fn a_name_is_allowed_by_the_addresses_it_resolves_to() {
        assert!(lookup("localhost", true).await.unwrap().iter().all(|address| address.ip().is_loopback()));
        assert!(matches!(lookup("localhost", false).await, Err(LookupError::NotAllowed(TargetFault::NotPublic))));
    }

    #[test]
    fn loopback_has_a_route() {
        assert!(has_route(Ipv4Addr::LOCALHOST.into()));
    }
}
