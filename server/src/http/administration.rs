//! `/admin/v1` over TCP. Its own listener takes platform keys, the main one the sessions of people.

use payments_core::{AuditActor, ErrorCode};
use warp::http::{HeaderValue, StatusCode, header};

use super::{
    gate,
    limit::Verdict,
    parts::Parts,
    people,
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

/// Finds who sends the request. A request without a working key or session counts for its client.
async fn authenticate(request: &Request) -> Result<Who, ApiError> {
    let (client, limits) = (request.head.addresses.client, &request.server.limits);
    if let Some(seconds) = limits.used_up(client).and_then(Verdict::retry_after) {
        return Err(ApiError::too_many_requests(seconds));
    }
    let (found, instead) = match request.parts {
        Parts::Administration => {
            (of_key(request).await?, "send Authorization: Bearer adm_… with a platform key that works")
        }
        _ => (of_session(request).await?, "sign in to the console first"),
    };
    let refused = match found {
        Some(who) => return Ok(who),
        None => limits.take_failed_key(client).await.retry_after(),
    };
    Err(refused.map_or_else(|| ApiError::new(ErrorCode::Unauthorized, instead), ApiError::too_many_requests))
}

/// The person whose session sends the request.
async fn of_session(request: &Request) -> Result<Option<Who>, ApiError> {
    if request.server.people.is_none() {
        return Err(ApiError::no_such_path());
    }
    let Some(session) = people::of_console(request).await? else { return Ok(None) };
    if let Some(seconds) = request.server.limits.take_key(&session.id).await.retry_after() {
        return Err(ApiError::too_many_requests(seconds));
    }
    let grants = session.grants.iter().map(|it| Grant::Role { role: it.role, workspace: it.workspace.clone() });
    Ok(Some(who(request, people::actor_of(&session), grants)))
}

/// The platform key that sends the request.
async fn of_key(request: &Request) -> Result<Option<Who>, ApiError> {
    let Some(text) = gate::key_of(request.headers()) else { return Ok(None) };
    let found = request.server.services.lasting.directory.platform_key(text).await?;
    Ok(found.map(|key| {
        let actor = actor("platform_key", key.id.as_str(), Some(key.name));
        who(request, actor, key.scopes.into_iter().map(Grant::Scope))
    }))
}

fn who(request: &Request, actor: AuditActor, grants: impl Iterator<Item = Grant>) -> Who {
    Who { actor, address: Some(request.head.addresses.client), grants: grants.collect() }
}
