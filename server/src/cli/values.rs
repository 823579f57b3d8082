//! Parses the values of flags. An error continues a sentence that begins with the flag's name.

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr},
};

use clap::{
    Arg, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ContextKind,
};
use payments_core::{RotateSecret, Timestamp};
use serde::de::DeserializeOwned;
use url::{Host, Url};

use crate::process::reach::{is_local_name, is_loopback};

/// Parses an address to listen on. A port alone means this machine's loopback address, and so does `localhost`.
pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let on_loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = || text.strip_prefix("localhost:").unwrap_or(text).parse().map(on_loopback);
    text.parse().or_else(|_| port()).map_err(|_| "must be IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080, or a port")
}

/// Parses a value by its JSON name.
pub(super) fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    Names(names.into_iter().collect()).try_map(|name| serde_json::from_value(name.into()))
}

/// Parses one of these names. An error lists them but suggests none: to clap, `payment.failed` is similar to
/// `payment.completed`.
#[derive(Clone)]
struct Names(Vec<&'static str>);

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        PossibleValuesParser::new(&self.0).parse_ref(command, arg, value).map_err(|mut error| {
            error.remove(ContextKind::SuggestedValue);
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|name| PossibleValue::new(*name))))
    }
}

/// Parses a time, or a date, which means its first moment in UTC.
pub(super) fn time(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::from_input(text).map_err(
        |_| "must be a date, such as 2026-03-01, which begins at 00:00 UTC, or a time, such as 2026-03-01T12:00:00Z",
    )
}

/// Parses how long a replaced key or secret still works: a whole number of seconds, minutes, hours or days. Returns seconds.
pub(super) fn overlap(text: &str) -> Result<u32, &'static str> {
    let seconds = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _ => return None,
        };
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u32>().ok()?.checked_mul(unit))?
    };
    seconds()
        .filter(|seconds| *seconds <= RotateSecret::MAX_OVERLAP_SECONDS)
        .ok_or("must be a time such as 24h, at most 7d; the units are s, m, h, d")
}

/// Parses a URL to which a program can send requests.
pub(super) fn http_url(text: &str) -> Result<Url, &'static str> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        _ => Err("must be an absolute URL that begins with https:// or http://"),
    }
}

/// Does the same as [`http_url`] for a server that gets a secret.
pub(super) fn safe_url(text: &str) -> Result<Url, &'static str> {
    let url = http_url(text)?;
    match url.scheme() == "https" || is_this_machine(&url) {
        true => Ok(url),
        false => Err("must begin with https://, because a key goes there; http:// is only for this machine"),
    }
}

/// Parses a host, without a port.
pub(super) fn host(text: &str) -> Result<String, &'static str> {
    let host = Host::parse(text).map_err(|_| "must be a host, such as till.lan, without scheme and port")?;
    Ok(host.to_string())
}

/// Does the same as [`http_url`] for a program that may be on this machine: `localhost:3000`, `127.0.0.1:3000/hook` and a
/// port alone mean `http`.
pub(super) fn local_url(text: &str) -> Result<Url, &'static str> {
    let is_port = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let address = if is_port { format!("http://localhost:{text}") } else { format!("http://{text}") };
    let on_this_machine = || http_url(&address).ok().filter(|url| !text.contains("://") && is_this_machine(url));
    http_url(text).or_else(|error| {
        on_this_machine().ok_or(match text.contains("://") || text.is_empty() {
            true => error,
            false => {
                "must be an absolute URL that begins with https:// or http://, or be on this machine, such as \
                 localhost:3000"
            }
        })
    })
}

pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_local_name(name),
        Some(Host::Ipv4(address)) => is_loopback(address.into()) || address.is_unspecified(),
        Some(Host::Ipv6(address)) => is_loopback(address.into()) || address.is_unspecified(),
        None => false,
    }
}

/// Parses the URL of this server, and removes spaces around it and slashes at its end. The server appends paths to it.
pub(super) fn base_url(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return Err("must have no space in it");
    }
    let url = http_url(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must have no query and no fragment; leave out what begins with ? or #");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must have no user name and no password, because customers see it");
    }
    // A path is refused: pages, forms and redirects use paths from the root.
    if url.path().contains(|char| char != '/') {
        return Err(
            "must have no path, because the server needs a host of its own; use a name such as https://pay.example",
        );
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_listen_on_may_be_only_a_port_or_name_localhost() {
        for (text, parsed) in [
            ("8081", Some("127.0.0.1:8081")),
            ("localhost:8081", Some("127.0.0.1:8081")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("127.0.0.1", None),
            ("pay.example:80", None),
            ("65536", None),
            ("", None),
        ] {
            assert_eq!(address(text).ok(), parsed.map(|address| address.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_date_means_its_first_moment_in_utc() {
        for (text, parsed) in [
            ("2026-03-01", Some("2026-03-01T00:00:00.000Z")),
            ("2026-03-01T12:00:00+06:00", Some("2026-03-01T06:00:00.000Z")),
            ("2026-03-01T12:00:00", None),
            ("2026-02-29", None),
            ("9999-12-31", Some("9999-12-30T22:00:00.999Z")),
            ("01.03.2026", None),
            ("", None),
        ] {
            assert_eq!(time(text).ok().map(|time| time.to_string()).as_deref(), parsed, "{text}");
        }
    }

    #[test]
    fn a_url_on_this_machine_may_be_written_as_host_and_port() {
        for (text, parsed) in [
            ("localhost:3000", Some("http://localhost:3000/")),
            ("localhost", Some("http://localhost/")),
            ("localhost:3000/hook?x=1", Some("http://localhost:3000/hook?x=1")),
            ("shop.localhost:3000", Some("http://shop.localhost:3000/")),
            ("127.0.0.1:3000/hook", Some("http://127.0.0.1:3000/hook")),
            ("[::1]:3000", Some("http://[::1]:3000/")),
            ("3000", Some("http://localhost:3000/")),
            ("http://localhost:3000/hook", Some("http://localhost:3000/hook")),
            ("https://shop.example/hook", Some("https://shop.example/hook")),
            ("shop.example:3000", None),
            ("shop.example", None),
            ("localhost.shop.example:80", None),
            ("ftp://localhost:3000", None),
            ("localhost:70000", None),
            ("70000", None),
            ("user@shop.example:80", None),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(local_url(text).ok().as_ref().map(Url::as_str), parsed, "{text}");
        }
    }

    #[test]
    fn an_overlap_is_a_number_with_a_unit_up_to_a_week() {
        for (text, seconds) in [
            ("0s", Some(0)),
            ("90m", Some(5_400)),
            ("24h", Some(86_400)),
            ("7d", Some(604_800)),
            ("604801s", None),
            ("99999999999d", None),
            ("4294967295d", None),
            ("24", None),
            ("h", None),
            ("+1h", None),
            ("1é", None),
            ("", None),
        ] {
            assert_eq!(overlap(text).ok(), seconds, "{text}");
        }
    }

    #[test]
    fn a_base_url_is_accepted_if_paths_can_be_appended_to_it() {
        for (text, parsed) in [
            ("https://pay.example/", Ok("https://pay.example")),
            (" http://127.0.0.1:8080 \n", Ok("http://127.0.0.1:8080")),
            ("https://pay.example//", Ok("https://pay.example")),
            ("http://127.0.0.1:8080/shop", Err("must have no path")),
            ("https://pay.example/shop/", Err("must have no path")),
            ("https://pay.example/ /", Err("must have no space")),
            ("https://pay .example", Err("must have no space")),
            ("https://pay.\texample", Err("must have no space")),
            ("https://pay.example?x=1", Err("must have no query")),
            ("https://pay.example/#x", Err("must have no query")),
            ("https://me:secret@pay.example", Err("must have no user name")),
            ("ftp://pay.example", Err("must be an absolute URL that begins with https://")),
            ("pay.example:80", Err("must be an absolute URL")),
            ("pay.example", Err("must be an absolute URL")),
        ] {
            match (base_url(text), parsed) {
                (Ok(url), Ok(expected)) => assert_eq!(url, expected),
                (Err(error), Err(says)) => assert!(error.starts_with(says), "{text}: {error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
