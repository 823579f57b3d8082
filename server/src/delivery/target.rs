//! Which addresses a webhook may be sent to.
//!
//! Merchants choose the addresses that this server calls from inside its operator's network. It calls only public addresses,
//! or else it would open a way into that network. It checks the addresses of a name when it connects, and connects to exactly
//! those, so the name cannot change in between.
//!
//! An address is public unless it is multicast or IANA's IPv4 and IPv6 Special-Purpose Address Registries (both of
//! 2025-10-09) list it as not globally reachable. An IPv6 address must also be in 2000::/3, the assigned global unicast
//! range. An address that embeds an IPv4 address (mapped, NAT64, 6to4) is public if that IPv4 address is. The registries list
//! two ranges as partly reachable, which are refused as a whole: 192.0.0.0/24 and 2001::/23.
//!
//! Some clouds serve their own machines at addresses outside those registries. These are refused too:
//!
//! | Cloud | Service | Address |
//! |---|---|---|
//! | Azure | platform services such as the wire server | 168.63.129.16 |
//! | IBM Cloud | infrastructure and private service endpoints | 161.26.0.0/16, 166.8.0.0/14 |
//! | Equinix Metal | metadata | 192.80.8.124 |
//!
//! Other clouds use special ranges: 169.254.0.0/16 (AWS, Google, Azure, DigitalOcean, OpenStack and most), 100.64.0.0/10
//! (100.100.100.200, Alibaba), 192.0.0.0/24 (192.0.0.192, Oracle), fc00::/7 (fd00:ec2::254, AWS; fd20:ce::254, Google;
//! fd00:c1::a9fe:a9fe, Oracle; fd00:42::42, Scaleway) and fe80::/10.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use payments_core::ErrorCode;
use url::{Host, Url};

use crate::process::reach::is_local_name;

/// Which addresses a webhook may be sent to: public ones by `https`. The operator may also allow loopback addresses and
/// `http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPolicy {
    /// Whether `http` and loopback addresses are allowed, for development.
    allow_local: bool,
    own: Option<Arc<Own>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Own {
    base_url: Option<Url>,
    listener: SocketAddr,
}

impl Own {
    /// Whether a URL leads to this server. Another name of this server is found only when its webhook arrives, by its header.
    fn is_at(&self, url: &Url) -> bool {
        let is_base =
            self.base_url.as_ref().is_some_and(|base| name_of(base) == name_of(url) && port_of(base) == port_of(url));
        is_base
            || (url.port_or_known_default() == Some(self.listener.port())
                && url.host().is_some_and(|host| self.listens_at(&host)))
    }

    fn listens_at(&self, host: &Host<&str>) -> bool {
        let own = self.listener.ip().to_canonical();
        let is = |address: IpAddr| own == address || (own.is_unspecified() && address.is_loopback());
        match host {
            Host::Ipv4(address) => is((*address).into()),
            Host::Ipv6(address) => is(IpAddr::from(*address).to_canonical()),
            Host::Domain(name) => is_local_name(name) && (own.is_loopback() || own.is_unspecified()),
        }
    }
}

fn name_of(url: &Url) -> Option<&str> {
    url.host_str().map(|name| name.trim_end_matches('.'))
}

/// The port. Ports 80 and 443 count as one, because a server on one usually answers on the other.
fn port_of(url: &Url) -> Option<u16> {
    url.port_or_known_default().map(|port| if port == 80 { 443 } else { port })
}

/// Why an endpoint's URL is refused. The text continues a sentence that begins with the field's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointUrlError {
    #[error("must be an absolute URL")]
    NotAUrl,
    #[error("must use https")]
    NotHttps,
    #[error("must not hold a user name or password")]
    Credentials,
    #[error("must lead to a public address")]
    NotPublic,
    #[error("must not lead to this server itself")]
    Own,
}

impl EndpointUrlError {
    pub fn code(self) -> ErrorCode {
        match self {
            Self::NotAUrl => ErrorCode::UrlInvalid,
            Self::NotHttps => ErrorCode::UrlNotHttps,
            Self::Credentials | Self::NotPublic | Self::Own => ErrorCode::UrlNotAllowed,
        }
    }
}

impl TargetPolicy {
    /// Allows public addresses, and with `allow_local` also `http` and loopback addresses.
    pub const fn new(allow_local: bool) -> Self {
        Self { allow_local, own: None }
    }

    /// Also refuses the addresses of the server itself.
    pub fn except(self, base_url: &str, listener: SocketAddr) -> Self {
        let own = Own { base_url: Url::parse(base_url).ok(), listener };
        Self { own: Some(Arc::new(own)), ..self }
    }

    /// Checks a URL, but not the addresses of its host name.
    pub fn check_url(&self, text: &str) -> Result<Url, EndpointUrlError> {
        let url = Url::parse(text).map_err(|_| EndpointUrlError::NotAUrl)?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_local => {}
            _ => return Err(EndpointUrlError::NotHttps),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointUrlError::Credentials);
        }
        let allowed = match url.host().ok_or(EndpointUrlError::NotAUrl)? {
            Host::Ipv4(address) => self.allows(address.into()),
            Host::Ipv6(address) => self.allows(address.into()),
            Host::Domain(name) => self.allow_local || !is_local_name(name),
        };
        if !allowed {
            return Err(EndpointUrlError::NotPublic);
        }
        if self.own.as_ref().is_some_and(|own| own.is_at(&url)) { Err(EndpointUrlError::Own) } else { Ok(url) }
    }

    pub(super) fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || (self.allow_local && address.is_loopback())
    }
}

/// Whether an address is public, and no cloud's service for its own machines.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    if matches!((a, b, c, d), (161, 26, _, _) | (166, 8..=11, _, _) | (168, 63, 129, 16) | (192, 80, 8, 124)) {
        return false; // clouds' services for their own machines
    }
    if address.is_private() || address.is_loopback() || address.is_link_local() || address.is_documentation() {
        return false;
    }
    !matches!(
        (a, b, c),
        (0, _, _)                       // this network
            | (100, 64..=127, _)        // carrier-grade NAT
            | (192, 0, 0)               // protocol assignments
            | (192, 88, 99)             // 6to4 relays, deprecated
            | (198, 18..=19, _)         // benchmarking
            | (224..=255, _, _) // multicast, reserved, broadcast
    )
}

/// Only part of 2000::/3 is public. An address that embeds an IPv4 address is public if that one is.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [a, b, c, d, e, f, ..] = address.segments();
    let [.., w, x, y, z] = address.octets();
    if (a, b, c, d, e, f) == (0x64, 0xff9b, 0, 0, 0, 0) {
        return is_public_v4(Ipv4Addr::new(w, x, y, z)); // NAT64; its local-use prefix 64:ff9b:1::/48 is not public
    }
    match (a, b, c) {
        (0x2002, high, low) => {
            let [[w, x], [y, z]] = [high.to_be_bytes(), low.to_be_bytes()]; // 6to4
            is_public_v4(Ipv4Addr::new(w, x, y, z))
        }
        (0x2001, 0..=0x1ff, _) => false,  // protocol assignments, with Teredo
        (0x2001, 0xdb8, _) => false,      // documentation
        (0x3fff, 0..=0x0fff, _) => false, // documentation
        (0x2000..=0x3fff, _, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: TargetPolicy = TargetPolicy::new(false);
    const LOCAL: TargetPolicy = TargetPolicy::new(true);

    #[test]
    fn only_https_to_a_public_address_is_called() {
        for url in [
            "https://shop.example/hook",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "https://shop.example:8443/",
        ] {
            assert!(PUBLIC.check_url(url).is_ok(), "{url}");
        }
        for (url, error) in [
            ("http://shop.example/hook", EndpointUrlError::NotHttps),
            ("ftp://shop.example/hook", EndpointUrlError::NotHttps),
            ("shop.example/hook", EndpointUrlError::NotAUrl),
            ("https://user:secret@shop.example/", EndpointUrlError::Credentials),
            ("https://user@shop.example/", EndpointUrlError::Credentials),
            ("https://:secret@shop.example/", EndpointUrlError::Credentials),
            ("https://localhost/", EndpointUrlError::NotPublic),
            ("https://LOCALHOST./", EndpointUrlError::NotPublic),
            ("https://a.localhost/", EndpointUrlError::NotPublic),
            ("https://127.0.0.1/", EndpointUrlError::NotPublic),
            ("https://2130706433/", EndpointUrlError::NotPublic),
            ("https://0x7f.1/", EndpointUrlError::NotPublic),
            ("https://[::ffff:127.0.0.1]/", EndpointUrlError::NotPublic),
            ("https://169.254.169.254/latest/meta-data", EndpointUrlError::NotPublic),
        ] {
            assert_eq!(PUBLIC.check_url(url), Err(error), "{url}");
        }
    }

    #[test]
    fn the_server_itself_is_not_called_under_its_base_url_or_its_listener() {
        let public = PUBLIC.except("https://pay.example", "0.0.0.0:8080".parse().unwrap());
        for url in [
            "https://pay.example/hook",
            "https://PAY.example.:443/",
            "https://pay.example/api/v1/checkout/demo-session",
        ] {
            assert_eq!(public.check_url(url), Err(EndpointUrlError::Own), "{url}");
        }
        for url in ["https://pay.example:8443/", "https://shop.pay.example/", "https://shop.example:8080/"] {
            assert!(public.check_url(url).is_ok(), "{url}");
        }
        let local = LOCAL.except("http://pay.localhost:3000", "127.0.0.1:8080".parse().unwrap());
        for url in ["http://127.0.0.1:8080/", "http://localhost:8080/", "http://pay.localhost:3000/"] {
            assert_eq!(local.check_url(url), Err(EndpointUrlError::Own), "{url}");
        }
        for url in ["http://127.0.0.1:9000/", "http://localhost:3000/", "http://127.0.0.2:8080/"] {
            assert!(local.check_url(url).is_ok(), "{url}");
        }
        let everywhere = LOCAL.except("http://localhost", "[::]:8080".parse().unwrap());
        for url in ["http://127.0.0.9:8080/", "http://[::1]:8080/", "http://localhost/", "https://localhost/"] {
            assert_eq!(everywhere.check_url(url), Err(EndpointUrlError::Own), "{url}");
        }
    }

    #[test]
    fn a_development_server_may_call_loopback_but_no_other_private_address() {
        for url in ["http://127.0.0.1:9000/hook", "http://localhost:9000/", "http://[::1]/", "https://shop.example/"] {
            assert!(LOCAL.check_url(url).is_ok(), "{url}");
        }
        for url in ["http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/"] {
            assert_eq!(LOCAL.check_url(url), Err(EndpointUrlError::NotPublic), "{url}");
        }
    }

    #[test]
    fn no_address_of_a_special_range_is_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "161.26.0.10",
            "166.11.255.255",
            "168.63.129.16",
            "169.254.170.2",
            "192.0.0.192",
            "192.80.8.124",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "64:ff9b:1::808:808",
            "64:ff9b::a83f:8110",
            "64:ff9b:0:1::808:808",
            "2002:a83f:8110::1",
            "::ffff:168.63.129.16",
            "100:0:0:1::1",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "161.27.0.1",
            "166.12.0.1",
            "168.63.129.17",
            "172.15.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
