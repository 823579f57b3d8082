//! The checks before every handler, in this order: API key, rate limit, method.

use std::{future::ready, sync::Arc};

use payments_core::ErrorCode;
use tokio::time::Instant;
use warp::{
    http::{HeaderMap, header},
    reply::Response,
};

use super::{
    limit::Verdict,
    page,
    reply::Problem,
    request::Request,
    requests,
    route::{Access, Found},
};
use crate::service::{Caller, Service};

/// Checks a request that has a route and calls its handler.
pub(super) async fn answer(found: &Found, request: Request) -> Response {
    let (server, head) = (Arc::clone(&request.server), Arc::clone(&request.head));
    let client = head.addresses.client;
    let begun = Instant::now();
    let mut logged_for = None;
    let (verdict, handling) = match found.route.access {
        Access::Keyed(needed, handle) => match authenticate(&server.service, &head.parts.headers).await {
            Ok(caller) => {
                logged_for = Some(Arc::clone(&caller)).filter(|_| found.route.template != requests::PATH);
                let verdict = server.limits.take_key(&caller.id).await;
                let handling = match caller.may(needed) {
                    true => handle(caller, request),
                    false => {
                        let problem = Problem::permission_missing(caller.permissions.as_deref(), needed);
                        Box::pin(ready(Err(problem)))
                    }
                };
                (verdict, handling)
            }
            // The listener counts the request for its client address.
            Err(problem) => return problem.into_response(),
        },
        Access::Keyless(handle) | Access::Page(handle) => (server.limits.take_client(client).await, handle(request)),
        Access::Unlimited(handle) => (Verdict::UNLIMITED, handle(request)),
    };
    // The listener writes its headers.
    let _ = head.verdict.set(verdict);
    let outcome = match (verdict.retry_after(), found.allow) {
        (Some(seconds), _) => Err(Problem::too_many_requests(seconds)),
        (None, Some(methods)) => Err(Problem::method_not_allowed(methods)),
        (None, None) => handling.await,
    };
    if let Some(caller) = logged_for {
        requests::note(&server.service, &head, &caller, begun.elapsed(), &outcome);
    }
    outcome.unwrap_or_else(|problem| match found.route.access {
        Access::Page(_) => page::refusal(&head.parts.headers, problem),
        _ => problem.into_response(),
    })
}

/// Authenticates by the Bearer token, or by `x-api-key` (API specification, "Authentication"). Ignores `Authorization` of
/// other schemes, such as Basic for a proxy.
async fn authenticate(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let key = authorizations
        .find_map(bearer_token)
        .or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()));
    let unauthorized = |message| Problem::new(ErrorCode::Unauthorized, message);
    let missing = "API key missing: send Authorization: Bearer <key> or x-api-key: <key>";
    let caller = service.caller(key.ok_or_else(|| unauthorized(missing))?.trim()).await?;
    let invalid =
        "invalid API key: it is malformed, unknown or revoked, or it is the sandbox key and the sandbox is off";
    caller.ok_or_else(|| unauthorized(invalid))
}

/// Parses a Bearer token. The scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
