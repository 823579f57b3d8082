//! Finds the client's address behind trusted proxies.
//!
//! Clients can forge `X-Forwarded-For`, so only the entries that trusted proxies appended count. Reading from the right, the
//! client is the first address that is not a trusted proxy.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use warp::http::HeaderMap;

#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub(super) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let lines = headers.get_all("x-forwarded-for").iter();
        let listed: Vec<&[u8]> = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).collect();
        let mut client = peer;
        for entry in listed.into_iter().rev() {
            // Stop at an invalid entry instead of skipping it: the client may have written everything before it.
            let Some(address) = std::str::from_utf8(entry).ok().and_then(address) else { break };
            client = address;
            if !self.trusts(address) {
                break;
            }
        }
        client
    }
}

/// Parses an address as proxies write it: optionally with a port, in brackets (IPv6), or in quotes.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let bare = || text.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    bare().or_else(with_port).or_else(in_brackets)
}

/// Reduces an IPv6 address to its /64, because a provider gives each customer at least a /64.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_of_trusted_proxies_count() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (peer, forwarded, client) in [
            ("203.0.113.9", "1.1.1.1", "203.0.113.9"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "1.1.1.1", "1.1.1.1"),
            ("::ffff:10.0.0.1", "1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "1.1.1.1:5678", "1.1.1.1"),
            ("10.0.0.1", "6.6.6.6, 1.1.1.1:5678, 10.0.0.2:80", "1.1.1.1"),
            ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
            ("10.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("10.0.0.1", "\"[2001:db8::1]\"", "2001:db8::1"),
            ("10.0.0.1", "\"[2001:db8::1]:443\",10.0.0.2", "2001:db8::1"),
            ("10.0.0.1", "\"1.1.1.1:80\"", "1.1.1.1"),
            ("10.0.0.1", "[1.1.1.1]", "10.0.0.1"),
            ("10.0.0.1", "1.1.1.1:99999", "10.0.0.1"),
            ("10.0.0.1", "\"", "10.0.0.1"),
            ("10.0.0.1", "unknown", "10.0.0.1"),
            ("10.0.0.1", "1.1.1.1, nonsense", "10.0.0.1"),
            ("10.0.0.1", "1.1.1.1, nonsense, 10.0.0.2", "10.0.0.2"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            let got = proxies.client(peer.parse().unwrap(), &headers);
            assert_eq!(got, client.parse::<IpAddr>().unwrap(), "{peer} {forwarded}");
        }
    }

    #[test]
    fn a_header_that_is_not_text_is_not_skipped() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for (last, client) in [
            (&b"\xff"[..], "10.0.0.1"),
            ("নাম".as_bytes(), "10.0.0.1"),
            (b"\xff, 1.1.1.1", "1.1.1.1"),
            (b"\xff, 10.0.0.2", "10.0.0.2"),
        ] {
            let mut headers = HeaderMap::new();
            headers.append("x-forwarded-for", "6.6.6.6".parse().unwrap());
            headers.append("x-forwarded-for", warp::http::HeaderValue::from_bytes(last).unwrap());
            let got = proxies.client("10.0.0.1".parse().unwrap(), &headers);
            assert_eq!(got, client.parse::<IpAddr>().unwrap(), "{last:?}");
        }
    }
}
