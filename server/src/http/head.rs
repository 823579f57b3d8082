//! How long a request's head may be.
//!
//! hyper reads heads somewhat longer than these bounds, so that a refusal has our error body and a request id. What is
//! longer still, hyper refuses itself, with the same status and no body.

use hyper::server::conn::http1;
use warp::http::Request;

use super::reply::Problem;

/// The longest path with its query (414 beyond).
pub(super) const MAX_URI_BYTES: usize = 8 * 1024;
/// The most header fields (431 beyond).
pub(super) const MAX_FIELDS: usize = 64;
/// The longest head: request line and header fields together (431 beyond).
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// What hyper reads: more fields than a request may have, and a head as long as any URI that it can hold.
const READ_FIELDS: usize = 256;
const READ_BYTES: usize = 64 * 1024;

/// Has hyper read as much as is needed to refuse what is too much.
pub(super) fn bound(http: &mut http1::Builder) {
    http.max_headers(READ_FIELDS).max_buf_size(READ_BYTES);
}

/// Refuses a head that is too long.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), Problem> {
    let uri = request.uri();
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let uri = uri.authority().map_or(0, |authority| authority.as_str().len()) + path;
    if uri > MAX_URI_BYTES {
        return Err(Problem::UriTooLong);
    }
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + ": \r\n".len() + value.len());
    let head = request.method().as_str().len() + uri + "  HTTP/1.1\r\n\r\n".len() + fields.sum::<usize>();
    if request.headers().len() > MAX_FIELDS || head > MAX_HEAD_BYTES {
        return Err(Problem::HeadTooLarge);
    }
    Ok(())
}
