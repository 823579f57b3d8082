//! A request's head: request line and header fields, and their limits.
//!
//! hyper accepts longer heads than these limits, so that the error has our body and a request id. hyper itself rejects even
//! longer heads, with the same status but no body.

use std::{net::IpAddr, sync::OnceLock};

use hyper::server::conn::http1;
use parking_lot::Mutex;
use payments_core::ErrorCode;
use serde::Serialize;
use warp::http::{HeaderValue, request::Parts};

use super::{limit::Verdict, lingering::Lingering, reply::ApiError};
use crate::gateway::Declaration;

/// Maximum length of path and query (414 beyond).
const MAX_URI_BYTES: usize = 8 * 1024;
/// Maximum number of header fields (431 beyond).
const MAX_FIELDS: usize = 64;
/// Maximum length of request line and header fields together (431 beyond).
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How many characters of a method, a path and an id are logged. Those that the API knows are shorter.
const LONGEST_METHOD: usize = 16;
const LONGEST_TEXT: usize = 160;

/// hyper's limits: more fields than we allow, and the longest URI that it supports.
const READ_FIELDS: usize = 256;
const READ_BYTES: usize = 64 * 1024;

pub(super) fn configure(http: &mut http1::Builder) {
    http.max_headers(READ_FIELDS).max_buf_size(READ_BYTES);
}

/// A request. The listener hands it to the routes as an extension of an empty request: warp's filters would copy the headers,
/// the path and the query, and box the body twice.
pub(super) struct Head {
    /// The value of `X-Request-Id`, which the log has too.
    pub(super) id: HeaderValue,
    pub(super) parts: Parts,
    pub(super) addresses: Addresses,
    pub(super) found: Option<Found>,
    /// The outcome of counting the request, set by the gate.
    pub(super) verdict: OnceLock<Verdict>,
    /// The body, until the handler takes it. Nothing else locks it, so nobody waits.
    pub(super) body: Mutex<Option<Lingering>>,
}

impl Head {
    pub(super) fn take_body(&self) -> Option<Lingering> {
        self.body.lock().take()
    }

    pub(super) fn described(&self) -> Described<'_> {
        Described {
            id: beginning(self.id.to_str().unwrap_or_default(), LONGEST_TEXT),
            method: beginning(self.parts.method.as_str(), LONGEST_METHOD),
            path: beginning(self.parts.uri.path(), LONGEST_TEXT),
        }
    }
}

/// What the route table says about a request's path.
pub(super) struct Found {
    /// The row of the path's route for the method. If the path does not allow the method, this is the path's first row, and
    /// its access applies to the 405.
    pub(super) row: usize,
    /// The route's path as the OpenAPI document writes it.
    pub(super) template: &'static str,
    /// The path's methods, if the request has another one.
    pub(super) allow: Option<&'static str>,
    /// The metrics label: the template, or `other` if the path ends with a slash.
    pub(super) label: &'static str,
    /// The path parameter `{id}`, not decoded; empty if the template has none.
    pub(super) id: String,
    /// What the gateway of the path parameter `{gateway}` declares.
    pub(super) gateway: Option<&'static Declaration>,
}

impl Found {
    /// The template with its parameter. It is the same for all spellings of the path.
    pub(super) fn path(&self) -> String {
        self.template.replace("{id}", &self.id)
    }
}

/// What the logs say about a request. A client may send a method or path of 16 KiB.
#[derive(Serialize)]
pub(super) struct Described<'h> {
    pub(super) id: &'h str,
    pub(super) method: &'h str,
    pub(super) path: &'h str,
}

/// The first `characters` characters of a text, or all of it.
pub(super) fn beginning(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    /// The peer: the client or its proxy.
    pub(super) peer: IpAddr,
    /// The client's address, or IPv6 network, that the request counts for.
    pub(super) client: IpAddr,
}

pub(super) fn check(head: &Parts) -> Result<(), ApiError> {
    let uri = &head.uri;
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let uri = uri.authority().map_or(0, |authority| authority.as_str().len()) + path;
    if uri > MAX_URI_BYTES {
        let message = format!("the path and query must be at most {MAX_URI_BYTES} bytes");
        return Err(ApiError::new(ErrorCode::UriTooLong, message));
    }
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + ": \r\n".len() + value.len());
    let bytes = head.method.as_str().len() + uri + "  HTTP/1.1\r\n\r\n".len() + fields.sum::<usize>();
    if head.headers.len() > MAX_FIELDS || bytes > MAX_HEAD_BYTES {
        let message = format!(
            "the request line and headers must be at most {MAX_HEAD_BYTES} bytes with at most {MAX_FIELDS} headers"
        );
        return Err(ApiError::new(ErrorCode::HeadersTooLarge, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_cuts_no_character() {
        for (text, characters, beginning_of) in
            [("abc", 3, "abc"), ("abc", 2, "ab"), ("éé", 1, "é"), ("টাকা", 2, "টা"), ("", 5, ""), ("a", 0, "")]
        {
            assert_eq!(beginning(text, characters), beginning_of, "{text}");
        }
    }
}
