//! The checks before every handler, in order: the caller's key, the rate limit, the method.

use std::sync::Arc;

use warp::{
    http::{HeaderMap, header},
    reply::Response,
};

use super::{
    limit::Verdict,
    reply::Problem,
    request::Request,
    route::{Access, Found},
};
use crate::service::{Caller, Service};

/// Answers a request whose path is in the table.
pub(super) async fn answer(found: Found, mut request: Request) -> Response {
    request.params = found.params;
    let mut show: Box<dyn FnOnce(Problem) -> Response + Send> = Box::new(Problem::into_response);
    let server = Arc::clone(&request.server);
    let by_address = |request: &Request| server.limits.take_address(request.peer, &request.headers);
    let (verdict, handling) = match found.route.access {
        Access::Keyed(handle) => match authenticate(&server.service, &request.headers).await {
            Ok(caller) => (server.limits.take_key(&caller.key_id), handle(caller, request)),
            // The listener counts it for its address.
            Err(problem) => return problem.into_response(),
        },
        Access::Keyless(handle) => (by_address(&request), handle(request)),
        Access::Page { handle, show: as_page } => {
            let headers = request.headers.clone();
            show = Box::new(move |problem| as_page(&headers, problem));
            (by_address(&request), handle(request))
        }
        Access::Unlimited(handle) => (Verdict::UNLIMITED, handle(request)),
    };
    let outcome = match (verdict.retry_after(), found.allow) {
        (Some(seconds), _) => Err(Problem::TooManyRequests(seconds)),
        (None, Some(methods)) => Err(Problem::MethodNotAllowed(methods)),
        (None, None) => handling.await,
    };
    let mut response = outcome.unwrap_or_else(show);
    verdict.write(&mut response);
    response
}

/// The key is a Bearer token, or the value of `x-api-key` (API specification, "Authentication"). An `Authorization` of
/// another scheme is for somebody else, such as a proxy's Basic.
async fn authenticate(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let key = authorizations
        .find_map(bearer_token)
        .or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()));
    let key = key.ok_or(Problem::Unauthorized(
        "an API key is needed: send it as Authorization: Bearer <key>, or as x-api-key: <key>",
    ))?;
    let caller = service.caller(key.trim()).await?;
    caller.ok_or(Problem::Unauthorized(
        "this API key is not valid: it is unknown, malformed or revoked, or the sandbox's where that is off",
    ))
}

/// The scheme's name is not case-sensitive (RFC 9110, section 11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
