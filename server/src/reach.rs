//! Whether only this machine reaches the server, or the world does.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

/// Who reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only this machine: the base URL and the listener are both local.
    Local,
    /// Others too, directly or through a proxy.
    Public,
}

impl Reach {
    /// Judges by where customers find the server and where it listens. A proxy on the same machine makes every peer
    /// local, so the base URL must be local too.
    pub(crate) fn of(base_url: &str, listen: SocketAddr) -> Self {
        if is_local(listen.ip()) && names_this_machine(base_url) { Self::Local } else { Self::Public }
    }
}

fn names_this_machine(base_url: &str) -> bool {
    let Ok(url) = Url::parse(base_url) else { return false };
    match url.host() {
        Some(Host::Ipv4(address)) => is_local(address.into()),
        Some(Host::Ipv6(address)) => is_local(address.into()),
        // RFC 6761, section 6.3: localhost and every name below it are this machine.
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_local_only_if_its_base_url_and_its_listener_both_are() {
        for (base_url, listen, reach) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", Reach::Local),
            ("http://localhost:8080", "127.0.0.1:8080", Reach::Local),
            ("http://LOCALHOST./pay", "127.9.9.9:1", Reach::Local),
            ("http://shop.localhost", "[::1]:8080", Reach::Local),
            ("http://[::1]:8080", "[::ffff:127.0.0.1]:8080", Reach::Local),
            ("https://pay.example", "127.0.0.1:8080", Reach::Public),
            ("http://localhost.example", "127.0.0.1:8080", Reach::Public),
            ("http://notlocalhost", "127.0.0.1:8080", Reach::Public),
            ("http://10.0.0.5:8080", "10.0.0.5:8080", Reach::Public),
            ("http://127.0.0.1:8080", "0.0.0.0:8080", Reach::Public),
            ("http://localhost:8080", "[::]:8080", Reach::Public),
            ("http://0.0.0.0:8080", "0.0.0.0:8080", Reach::Public),
            ("", "127.0.0.1:8080", Reach::Public),
        ] {
            assert_eq!(Reach::of(base_url, listen.parse().unwrap()), reach, "{base_url} {listen}");
        }
    }
}
