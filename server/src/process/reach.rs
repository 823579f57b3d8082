//! Whether the server is reachable from other machines.
//!
//! A proxy on the same host may serve the internet from a loopback listener, so the listener alone does not decide. A server
//! is local only if its base URL is loopback too.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only programs of this machine can reach it: the base URL and the listener are both loopback.
    Local,
    /// Other machines can reach it, perhaps through a proxy.
    Public,
}

impl Reach {
    /// Decides by the URL that customers are given and the address that the server listens on.
    pub fn of(base_url: &str, listen: SocketAddr) -> Self {
        let is_local_url = Url::parse(base_url).is_ok_and(|url| match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => is_loopback(address.into()),
            Some(Host::Domain(name)) => is_local_name(name),
            None => false,
        });
        if is_local_url && is_loopback(listen.ip()) { Self::Local } else { Self::Public }
    }
}

/// Whether a name is `localhost` or one of its subdomains, which always mean this machine (RFC 6761, section 6.3).
pub fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').as_bytes();
    let Some((before, last)) = name.split_at_checked(name.len().wrapping_sub(LOCALHOST.len())) else { return false };
    last.eq_ignore_ascii_case(LOCALHOST) && before.last().is_none_or(|byte| *byte == b'.')
}

const LOCALHOST: &[u8] = b"localhost";

/// Whether a name, or an address without brackets, means this machine.
pub fn is_local_host(host: &str) -> bool {
    host.parse().map_or_else(|_| is_local_name(host), is_loopback)
}

/// Whether an address means this machine, also as an IPv4 address in IPv6.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_local_only_if_its_base_url_and_its_listener_are_loopback() {
        for (base_url, listen, reach) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", Reach::Local),
            ("http://localhost:8080", "[::1]:8080", Reach::Local),
            ("http://pay.localhost", "127.0.0.2:80", Reach::Local),
            ("http://[::1]:8080", "[::ffff:127.0.0.1]:8080", Reach::Local),
            ("https://pay.example", "127.0.0.1:8080", Reach::Public),
            ("http://127.0.0.1:8080", "0.0.0.0:8080", Reach::Public),
            ("http://localhost.example", "127.0.0.1:8080", Reach::Public),
            ("http://127.0.0.1.example", "127.0.0.1:8080", Reach::Public),
            ("http://192.168.0.2", "192.168.0.2:80", Reach::Public),
            ("", "127.0.0.1:8080", Reach::Public),
        ] {
            assert_eq!(Reach::of(base_url, listen.parse().unwrap()), reach, "{base_url} on {listen}");
        }
    }
}
