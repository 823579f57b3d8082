//! What every request passes before its handler: whose key is it, is it one too many, and has this very request been
//! answered before?

use std::sync::Arc;

use payments_core::Invalid;
use warp::{
    Filter, Rejection,
    http::{HeaderMap, StatusCode, header},
    reply::Response,
};

use super::{
    Routes, Server, at,
    incoming::Incoming,
    limit::Verdict,
    reply::{self, Problem},
};
use crate::service::{Answer, Caller, IdempotentRequest, Refused, Service};

/// A route for callers with a key. Its handler gets a request only with a valid one, and so many times a minute.
pub(super) fn keyed<P, H, F>(server: &Arc<Server>, path: P, handler: H) -> Routes
where
    P: Filter<Extract = (), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(Arc<Service>, Caller, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let handler = move |service, caller, (), incoming| handler(service, caller, incoming);
    keyed_with(server, path.map(|| ()), handler)
}

/// The same for a path that holds an id, or something else that is read from it.
pub(super) fn keyed_with<T, P, H, F>(server: &Arc<Server>, path: P, handler: H) -> Routes
where
    T: Send + 'static,
    P: Filter<Extract = (T,), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(Arc<Service>, Caller, T, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let server = Arc::clone(server);
    let answer = move |part: T, incoming: Incoming| {
        let (server, handler) = (Arc::clone(&server), handler.clone());
        async move {
            let caller = match authenticate(&server.service, &incoming.headers).await {
                Ok(caller) => caller,
                // Counted for the address, by the listener.
                Err(problem) => return problem.into_response(),
            };
            let verdict = server.limits.take_key(&caller.key_id);
            limited(verdict, handler(Arc::clone(&server.service), caller, part, incoming), Problem::into_response).await
        }
    };
    at(path, answer)
}

/// A route that needs no key, so many times a minute from one address. Its path holds an id, or something else.
pub(super) fn keyless_with<T, P, H, F>(server: &Arc<Server>, path: P, handler: H) -> Routes
where
    T: Send + 'static,
    P: Filter<Extract = (T,), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(Arc<Service>, T, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let server = Arc::clone(server);
    let answer = move |part: T, incoming: Incoming| {
        let verdict = server.limits.take_address(incoming.peer, &incoming.headers);
        limited(verdict, handler(Arc::clone(&server.service), part, incoming), Problem::into_response)
    };
    at(path, answer)
}

/// The same for a page: what goes wrong is shown to a person.
pub(super) fn page_with<P, H, F>(
    server: &Arc<Server>,
    path: P,
    handler: H,
    show: fn(&HeaderMap, Problem) -> Response,
) -> Routes
where
    P: Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(Arc<Service>, String, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let server = Arc::clone(server);
    let answer = move |part: String, incoming: Incoming| {
        let verdict = server.limits.take_address(incoming.peer, &incoming.headers);
        let headers = incoming.headers.clone();
        let handled = handler(Arc::clone(&server.service), part, incoming);
        limited(verdict, handled, move |problem| show(&headers, problem))
    };
    at(path, answer)
}

/// The same for a path that holds nothing.
pub(super) fn keyless<P, H, F>(server: &Arc<Server>, path: P, handler: H) -> Routes
where
    P: Filter<Extract = (), Error = Rejection> + Clone + Send + Sync + 'static,
    H: Fn(Arc<Service>, Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    keyless_with(server, path.map(|| ()), move |service, (), incoming| handler(service, incoming))
}

async fn limited(
    verdict: Verdict,
    handled: impl Future<Output = Result<Response, Problem>>,
    show: impl FnOnce(Problem) -> Response,
) -> Response {
    let outcome = match verdict.retry_after() {
        Some(seconds) => Err(Problem::TooManyRequests(seconds)),
        None => handled.await,
    };
    let mut response = outcome.unwrap_or_else(show);
    verdict.write(&mut response);
    response
}

/// Runs a keyed POST: reads its body, and answers from what was kept if its idempotency key was used before.
pub(super) async fn idempotent<F>(
    service: &Service,
    caller: Caller,
    mut incoming: Incoming,
    success: StatusCode,
    handler: impl FnOnce(Caller, bytes::Bytes, Option<IdempotentRequest>) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Answer, Refused>>,
{
    let key = idempotency_key(&incoming.headers)?;
    let body = incoming.read_json().await?;
    let request =
        key.map(|key| IdempotentRequest::new(&caller.scope, incoming.method.as_str(), &incoming.path, &key, &body));
    if let Some(request) = &request
        && let Some(kept) = service.replay(request).await?
    {
        return Ok(reply::answer(success, kept));
    }
    match handler(caller, body, request.clone()).await {
        Ok(answer) => Ok(reply::answer(success, answer)),
        Err(refused) => Ok(reply::answer(success, answered_meanwhile(service, request, refused).await?)),
    }
}

/// What forbids a request may be the effect of this very request, which was sent twice at once: a refund of what the other
/// one has refunded. Then the other one's answer, which came with that effect, is the answer to both.
async fn answered_meanwhile(
    service: &Service,
    request: Option<IdempotentRequest>,
    refused: Refused,
) -> Result<Answer, Refused> {
    let Some(request) = request else { return Err(refused) };
    match service.replay(&request).await {
        Ok(Some(kept)) => Ok(kept),
        Err(reused @ Refused::IdempotencyKeyReused) => Err(reused),
        Ok(None) | Err(_) => Err(refused),
    }
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

/// 1 to 255 visible ASCII characters, once.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Invalid> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value
        .to_str()
        .ok()
        .filter(|text| (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()));
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text.to_owned())),
        _ => Err(Invalid::new("Idempotency-Key must be 1 to 255 visible ASCII characters, given once")),
    }
}
