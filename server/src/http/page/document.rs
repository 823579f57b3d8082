//! HTML documents with their security headers, and errors as pages.

use askama::Template;
use payments_core::ErrorCode;
use warp::{
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    reply::Response,
};

use super::words;
use crate::{
    domain::LogoUrl,
    http::{
        assets,
        language::{Language, Text},
        reply::{self, ApiError},
    },
};

#[derive(Template)]
#[template(path = "checkout_notice.html")]
struct NoticePage {
    title: Text,
    text: Text,
    language: Language,
}

/// Renders an error as a page, in the language that the headers prefer.
pub(in crate::http) fn error_page(headers: &HeaderMap, error: ApiError) -> Response {
    notice(Language::of(None, headers), error)
}

/// The 404 of a path that leads nowhere: a page for a browser that asks for one outside the API.
pub(in crate::http) fn no_such_path(head: &Parts) -> Response {
    let accepts = head.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    match accepts.contains("text/html") && !head.uri.path().starts_with("/api/") {
        true => error_page(&head.headers, ApiError::no_such_path()),
        false => ApiError::no_such_path().into_response(),
    }
}

/// Renders an error as a page. Its status and headers are the same as in the API's error.
pub(super) fn notice(language: Language, error: ApiError) -> Response {
    let (title, text) = match error.status() {
        _ if *error.code() == ErrorCode::RouteNotFound => (words::NO_PAGE, words::NO_PAGE_NOTE),
        StatusCode::NOT_FOUND => (words::UNKNOWN, words::UNKNOWN_NOTE),
        StatusCode::TOO_MANY_REQUESTS => (words::TROUBLE, words::TOO_MANY),
        _ => (words::TROUBLE, words::TROUBLE_NOTE),
    };
    match (NoticePage { title, text, language }).render() {
        Ok(html) => {
            let mut response = document(error.status(), language, html, None);
            let header = error.header.map(|(name, value)| (name, HeaderValue::from_static(value)));
            response.headers_mut().extend(header);
            response
        }
        Err(cause) => {
            tracing::error!(error = %cause, "cannot render a page");
            error.into_response()
        }
    }
}

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// A page whose policy allows images only from the logo's origin.
pub(super) fn document(status: StatusCode, language: Language, html: String, logo: Option<&LogoUrl>) -> Response {
    let mut response = reply::page(status, language, "no-store", POLICY, html);
    // An origin is always a valid header value. If it were not, the browser would only hide the logo.
    if let Some(policy) =
        logo.and_then(|logo| HeaderValue::try_from(format!("{POLICY}; img-src {}", logo.origin())).ok())
    {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
