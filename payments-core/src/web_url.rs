//! Addresses on the web.

use url::{Host, Url};

/// An absolute http or https address with a host, written without control characters or white space.
pub(crate) fn web_url(text: &str) -> Option<Url> {
    let clean = !text.chars().any(|char| char.is_control() || char.is_whitespace());
    let url = Url::parse(text).ok().filter(|_| clean)?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// What a text must be that is no [`web_url`].
pub(crate) fn web_url_fault(text: &str) -> &'static str {
    match Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
        _ => "must be an absolute URL",
    }
}

/// Whether an address is of this machine.
pub(crate) fn is_localhost(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
