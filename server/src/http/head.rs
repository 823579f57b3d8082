//! Limits of a request's head: request line and header fields.
//!
//! hyper accepts longer heads than these limits, so that the error has our body and a request id. hyper itself rejects
//! even longer heads, with the same status and no body.

use hyper::server::conn::http1;
use warp::http::{StatusCode, request::Parts};

use super::reply::Problem;

/// Maximum length of path and query (414 beyond).
const MAX_URI_BYTES: usize = 8 * 1024;
/// Maximum number of header fields (431 beyond).
const MAX_FIELDS: usize = 64;
/// Maximum length of request line and header fields together (431 beyond).
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// hyper's limits: more fields than we allow, and the longest URI that it supports.
const READ_FIELDS: usize = 256;
const READ_BYTES: usize = 64 * 1024;

/// Sets hyper's limits above ours.
pub(super) fn configure(http: &mut http1::Builder) {
    http.max_headers(READ_FIELDS).max_buf_size(READ_BYTES);
}

/// Returns an error if the head is too long.
pub(super) fn check(head: &Parts) -> Result<(), Problem> {
    let uri = &head.uri;
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let uri = uri.authority().map_or(0, |authority| authority.as_str().len()) + path;
    if uri > MAX_URI_BYTES {
        let message = format!("the path and query must be at most {MAX_URI_BYTES} bytes");
        return Err(Problem::new(StatusCode::URI_TOO_LONG, message));
    }
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + ": \r\n".len() + value.len());
    let bytes = head.method.as_str().len() + uri + "  HTTP/1.1\r\n\r\n".len() + fields.sum::<usize>();
    if head.headers.len() > MAX_FIELDS || bytes > MAX_HEAD_BYTES {
        let message = format!(
            "the request line and headers must be at most {MAX_HEAD_BYTES} bytes with at most {MAX_FIELDS} headers"
        );
        return Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
    }
    Ok(())
}
