//! Web URLs.

use url::{Host, Url};

/// Parses an absolute http or https URL with a host and without control characters or white space.
pub(crate) fn web_url(text: &str) -> Option<Url> {
    let clean = !text.chars().any(|char| char.is_control() || char.is_whitespace());
    let url = Url::parse(text).ok().filter(|_| clean)?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// The error for a text that [`web_url`] rejects.
pub(crate) fn web_url_error(text: &str) -> &'static str {
    match Url::parse(text) {
        _ if text.trim() != text && !text.trim().is_empty() => "must not begin or end with white space",
        _ if text.contains(char::is_whitespace) => "must not contain white space; write a space as %20",
        Ok(url) if !matches!(url.scheme(), "http" | "https") => "must begin with http:// or https://",
        _ => "must be an absolute URL",
    }
}

/// Whether a URL has a loopback host.
pub(crate) fn is_localhost(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
