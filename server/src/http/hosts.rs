//! The hosts by which a server on loopback can be called.
//!
//! A web page can give its own name the address 127.0.0.1 (DNS rebinding). Then the browser believes that this server belongs
//! to the page, and lets the page read its answers. The request still names the page's host, so a listener on loopback
//! answers only requests for hosts that it knows.

use std::net::SocketAddr;

use url::Url;
use warp::http::{header, request::Parts};

use crate::process::reach::{is_local_host, is_loopback};

/// The hosts that a listener knows, besides loopback. `None` if other machines reach it: then it answers for any host.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Option<Vec<String>>);

impl Hosts {
    pub fn of(listen: SocketAddr, base_url: &str, named: &[String]) -> Self {
        if !is_loopback(listen.ip()) {
            return Self(None);
        }
        let base_url = Url::parse(base_url).ok();
        let own = base_url.as_ref().and_then(Url::host_str);
        Self(Some(named.iter().map(String::as_str).chain(own).map(|host| name_of(host).to_owned()).collect()))
    }

    /// Whether all hosts that a request names are known. Every browser names one.
    pub(super) fn know(&self, head: &Parts) -> bool {
        let Some(known) = &self.0 else { return true };
        let is_known = |host: &str| {
            let name = name_of(host);
            // Most requests name the host of the base URL, so check it first.
            known.iter().any(|known| known.eq_ignore_ascii_case(name)) || is_local_host(name)
        };
        let mut named = head.headers.get_all(header::HOST).iter();
        named.all(|host| host.to_str().is_ok_and(is_known))
            && head.uri.authority().is_none_or(|authority| is_known(authority.as_str()))
    }
}

/// The name or address in `host[:port]`, without brackets and without a dot at its end.
fn name_of(host: &str) -> &str {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use warp::http::Request;

    use super::*;

    fn know(hosts: &Hosts, uri: &str, named: &[&str]) -> bool {
        let request = named.iter().fold(Request::get(uri), |request, host| request.header("host", *host));
        hosts.know(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_listener_on_loopback_knows_loopback_its_base_url_and_what_the_operator_named() {
        let named = ["till.lan".to_owned(), "[2001:db8::1]".to_owned()];
        let hosts = Hosts::of(([127, 0, 0, 1], 8080).into(), "https://Pay.example:8443", &named);
        for host in [
            "127.0.0.1:8080",
            "127.0.0.9",
            "localhost",
            "LOCALHOST:1",
            "shop.localhost:8080",
            "localhost.",
            "[::1]:8080",
            "[::1]",
            "[::ffff:127.0.0.1]:80",
            "pay.example",
            "PAY.example:443",
            "pay.example.:1",
            "till.lan:8080",
            "[2001:db8::1]:80",
        ] {
            assert!(know(&hosts, "/", &[host]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "[::1].evil.example",
            "[::1",
            "127.0.0.1:80:evil",
            "evil.example:127.0.0.1",
            "0.0.0.0:8080",
            "192.168.0.2",
            "me@localhost",
            "a.pay.example",
        ] {
            assert!(!know(&hosts, "/", &[host]), "{host}");
        }
        assert!(!know(&hosts, "/", &["localhost", "evil.example"]) && know(&hosts, "/", &[]));
        assert!(
            !know(&hosts, "http://evil.example/", &["localhost"]) && know(&hosts, "http://localhost/", &["localhost"])
        );
    }

    #[test]
    fn a_listener_that_other_machines_reach_answers_any_host() {
        for (listen, answers) in
            [("0.0.0.0:80", true), ("192.168.0.2:80", true), ("[::]:80", true), ("[::1]:80", false)]
        {
            assert_eq!(know(&Hosts::of(listen.parse().unwrap(), "", &[]), "/", &["evil.example"]), answers, "{listen}");
        }
    }
}
