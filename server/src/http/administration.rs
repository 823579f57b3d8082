//! `/admin/v1` over TCP: authenticates a platform key. The administration's own listener serves it.

use payments_core::ErrorCode;
use warp::http::{HeaderValue, StatusCode, header};

use super::{
    gate,
    reply::{self, ApiError, Outcome},
    request::Request,
};
use crate::{
    administration::{Answered, Grant, MAX_BODY_BYTES, Who, answer},
    service::actor,
};

pub(super) async fn serve(mut request: Request) -> Outcome {
    let who = authenticate(&request).await?;
    let body = request.read_large_body(MAX_BODY_BYTES).await?;
    let target = request.head.parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let services = &request.server.services;
    let Answered { status, body, allow } = answer(services, who, request.method().as_str(), &target, &body.bytes).await;
    let status = StatusCode::from_u16(status).map_err(ApiError::internal)?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    let mut response = reply::response(status, body, headers);
    if let Some(allow) = allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    Ok(response)
}

/// Finds who sends the request. A request whose key fails counts for its client.
async fn authenticate(request: &Request) -> Result<Who, ApiError> {
    let client = request.head.addresses.client;
    let directory = &request.server.services.lasting.directory;
    let limits = &request.server.limits;
    if let Some(seconds) = limits.used_up(client).and_then(|verdict| verdict.retry_after()) {
        return Err(ApiError::too_many_requests(seconds));
    }
    let found = match gate::key_of(request.headers()) {
        Some(text) => directory.platform_key(text).await?,
        None => None,
    };
    let Some(key) = found else {
        return match limits.take_failed_key(client).await.retry_after() {
            Some(seconds) => Err(ApiError::too_many_requests(seconds)),
            None => Err(ApiError::new(
                ErrorCode::Unauthorized,
                "send Authorization: Bearer adm_… with a platform key that works",
            )),
        };
    };
    Ok(Who {
        actor: actor("platform_key", key.id.as_str(), Some(key.name)),
        address: Some(client),
        grants: key.scopes.into_iter().map(Grant::Scope).collect(),
    })
}
