//! `/api/v1/openapi.json`, the OpenAPI document, and `/docs`, the API reference.

use warp::http::{StatusCode, header};

use super::{reference::DESCRIPTION, reply, request::Request, route::Outcome};

/// Styles of this server, and nothing else.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

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
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    Ok(reply::response(StatusCode::OK, request.server.reference.page(has_sandbox), headers))
}
