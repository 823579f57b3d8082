//! `/api/v1/openapi.json`, the OpenAPI document, and `/docs`, the API reference.

use warp::{
    http::{HeaderValue, header},
    reply::Response,
};

use super::{reference::DESCRIPTION, request::Request, route::Outcome};

pub(super) async fn description(_: Request) -> Outcome {
    let mut response = Response::new(DESCRIPTION.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Pages of other origins may read only this document. Everything else needs a secret key, which must not be in a
    // browser, or is for our own pages.
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Ok(response)
}

pub(super) async fn reference(request: Request) -> Outcome {
    let has_sandbox = request.service().offered_key().await.is_some();
    let mut response = Response::new(request.server.reference.page(has_sandbox).into());
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=300"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
        ),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
