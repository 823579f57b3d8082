//! `/admin/v1` over TCP. Its own listener takes platform keys, the main one the sessions of people.

use payments_core::ErrorCode;
use warp::http::{HeaderValue, StatusCode, header};

use super::{
    gate, people,
    reply::{self, ApiError, Outcome},
    request::Request,
    routes::Parts,
};
use crate::{
    administration::{Answered, Grant, MAX_BODY_BYTES, Who, answer},
    service::actor,
};

pub(super) async fn serve(mut request: Request) -> Outcome {
    let who = match request.parts {
        Parts::Administration => of_key(&request).await?,
        _ => of_session(&request).await?,
    };
    let body = request.read_large_body(MAX_BODY_BYTES).await?;
    let target = request.head.parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let services = &request.server.services;
    let Answered { status, body, allow, is_masked } =
        answer(services, who, request.method().as_str(), &target, &body.bytes).await;
    let status = StatusCode::from_u16(status).map_err(ApiError::internal)?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    let mut response = reply::response(status, body, headers);
    if let Some(allow) = allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    if is_masked { people::masked(response).await } else { Ok(response) }
}

/// The person whose session sends the request.
async fn of_session(request: &Request) -> Result<Who, ApiError> {
    if request.server.people.is_none() {
        return Err(ApiError::no_such_path());
    }
    let session = people::of_console(request).await?;
    let session = session.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, "sign in to the console first"))?;
    let grants = session.grants.iter().map(|it| Grant::Role { role: it.role, workspace: it.workspace.clone() });
    Ok(Who {
        actor: people::actor_of(&session),
        address: Some(request.head.addresses.client),
        grants: grants.collect(),
    })
}

/// The platform key that sends the request. A request whose key fails counts for its client.
async fn of_key(request: &Request) -> Result<Who, ApiError> {
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
