//! `/api/v1/openapi.json`, the OpenAPI document, and `/docs`, the API reference with its guides.

use bytes::Bytes;
use warp::{
    http::{StatusCode, header},
    reply::Response,
};

use super::{page::no_such_path, reference::DESCRIPTION, reply, request::Request, route::Outcome};

/// Styles of this server, and nothing else.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/// Also the scripts of this server, which may call its API.
const SCRIPTED: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; \
    frame-ancestors 'none'; base-uri 'none'";

pub(super) async fn description(_: Request) -> Outcome {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        // Pages of other origins may read only this document. Everything else needs a secret key, which must not be in a
        // browser, or is for our own pages.
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    Ok(reply::response(StatusCode::OK, DESCRIPTION, headers))
}

pub(super) async fn reference(request: Request) -> Outcome {
    let has_sandbox = request.service().offered_key().await.is_some();
    Ok(page(request.server.reference.page(has_sandbox)))
}

/// `/docs/{name}`, a guide.
pub(super) async fn guide(request: Request) -> Outcome {
    let has_sandbox = request.service().offered_key().await.is_some();
    let guide = request.server.reference.guide(request.id(), has_sandbox);
    Ok(guide.map_or_else(|| no_such_path(&request.head.parts), page))
}

fn page(content: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, SCRIPTED),
    ];
    reply::response(StatusCode::OK, content, headers)
}
