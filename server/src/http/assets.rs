//! The styles and scripts of the pages, each under an address that changes with its content, so that a browser keeps it
//! for good and never has an old one.

use sha2::{Digest, Sha256};
use warp::{
    Filter,
    http::{HeaderValue, Method, header},
    reply::Response,
};

use super::{Routes, at, limit::Verdict, reply::Problem};

/// A file that comes with the server.
pub(super) struct Asset {
    content: &'static str,
    kind: &'static str,
    /// Its address, with the mark of its content.
    address: String,
    path: &'static str,
}

impl Asset {
    pub(super) fn new(path: &'static str, kind: &'static str, content: &'static str) -> Self {
        let digest = Sha256::digest(content);
        let mark = hex::encode(&digest[..6]);
        Self { content, kind, address: format!("/assets/{path}?{mark}"), path }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The route that it is served at.
    pub(super) fn route(&'static self) -> Routes {
        let path = self.path;
        let path = warp::path("assets").and(warp::path(path)).and(warp::path::end());
        at(path.map(|| ()), move |(), incoming| async move {
            let mut response = match incoming.method {
                Method::GET => self.response(),
                _ => Problem::MethodNotAllowed("GET, HEAD").into_response(),
            };
            Verdict::UNLIMITED.write(&mut response);
            response
        })
    }

    fn response(&self) -> Response {
        let mut response = Response::new(self.content.into());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
