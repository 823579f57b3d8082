//! `/api/v1/openapi.json`, the OpenAPI document, and `/docs`, the API reference with its guides.

use warp::http::{StatusCode, header};

use super::{page::no_such_path, reference::DESCRIPTION, reply, request::Request};

pub(super) async fn description(_: Request) -> reply::Outcome {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        // Pages of other origins may read only this document. All other responses need a secret key, which must not be in a
        // browser, or are for our own pages.
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    Ok(reply::response(StatusCode::OK, DESCRIPTION, headers))
}

/// `/docs`, the reference, and `/docs/{name}`, a guide.
pub(super) async fn page(request: Request) -> reply::Outcome {
    let has_sandbox = request.service().offered_key().await.is_some();
    Ok(match request.server.reference.page(request.id(), has_sandbox) {
        Some(html) => reply::file(reply::HTML, "public, max-age=300", Some(reply::SCRIPTED), html),
        None => no_such_path(&request.head.parts),
    })
}
