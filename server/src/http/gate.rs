//! The checks before every handler, in this order: API key, rate limit, method, permission, names of query parameters.

use std::{future::ready, net::IpAddr, sync::Arc, time::Duration};

use payments_core::{AuditActor, ErrorCode, LoggedRequest, Timestamp, UnknownFields};
use tokio::time::Instant;
use warp::{
    http::{HeaderMap, Method, StatusCode, header},
    reply::Response,
};

use super::{
    head::{Described, Found, Head},
    limit::Verdict,
    page, parameters,
    people::{self, Person},
    reply::{ApiError, Outcome},
    request::Request,
    route::{Access, Handling, Route},
    server::Server,
};
use crate::service::{Acting, Caller, Service, ServiceError, actor};

/// The path of the request log. Requests that read the log are not logged.
pub(super) const REQUEST_LOG: &str = "/api/v1/requests";

pub(super) async fn answer(found: &Found, route: &Route, mut request: Request) -> Response {
    let (server, head) = (Arc::clone(&request.server), Arc::clone(&request.head));
    let client = head.addresses.client;
    let begun = Instant::now();
    let (mut logged_for, mut is_masked) = (None, false);
    let (verdict, handling) = match route.access {
        Access::Keyed(needed, handle) => match authenticate(&server, &head).await {
            Ok((caller, service, person)) => {
                // The log is about the merchant's own programs.
                let is_console_read = route.method == Method::GET && (person.is_some() || is_consoles(&head));
                if found.template != REQUEST_LOG && !is_console_read {
                    logged_for = Some((Arc::clone(&caller), Arc::clone(&service)));
                }
                is_masked = person.as_ref().is_some_and(|person| person.role.is_masked());
                let role = person.as_ref().map(|person| person.role);
                (request.service, request.person) = (service, person);
                let verdict = server.limits.take_key(&caller.id).await;
                let query = head.parts.uri.query().filter(|_| route.method == Method::GET);
                let permitted = match role {
                    Some(role) if !caller.may(needed) => Err(ApiError::role_lacks(role, needed)),
                    _ => ApiError::unless_permitted(&caller, needed),
                };
                let checked = permitted.and_then(|()| Ok(parameters::check(found.template, query)?));
                let handling = match checked {
                    Ok(()) => {
                        let actor = request.person.as_ref().map(|person| person.actor.clone());
                        audited(route, found, client, actor, &caller, handle(Arc::clone(&caller), request))
                    }
                    Err(error) => Box::pin(ready(Err(error))),
                };
                (verdict, handling)
            }
            Err(error) => return error.into_response(),
        },
        Access::Keyless(handle) | Access::Page(handle) => {
            let verdict = server.limits.take_client(client).await;
            if verdict.retry_after().is_none() {
                request.service = server.services.of_payment(request.id()).await;
            }
            (verdict, handle(request))
        }
        Access::Unlimited(handle) => (Verdict::UNLIMITED, handle(request)),
    };
    // The listener writes its headers.
    let _ = head.verdict.set(verdict);
    let outcome = match (verdict.retry_after(), found.allow) {
        (Some(seconds), _) => Err(ApiError::too_many_requests(seconds)),
        (None, Some(methods)) => Err(ApiError::method_not_allowed(methods)),
        // Otherwise an endpoint that points here would make webhooks out of webhooks.
        (None, None) if server.services.lasting.sender.is_delivery(&head.parts.headers) => {
            Err(ApiError::webhook_loop())
        }
        (None, None) => match handling.await {
            // Boxed, because few requests are of people, and all have this future's size.
            Ok(response) if is_masked => Box::pin(people::masked(response)).await,
            outcome => outcome,
        },
    };
    if let Some((caller, service)) = logged_for {
        note(&service, &head, &caller, begun.elapsed(), &outcome);
    }
    outcome.unwrap_or_else(|error| match route.access {
        Access::Page(_) => page::error_page(&head.parts.headers, error),
        _ => error.into_response(),
    })
}

/// Routes whose changes by keys are not in the audit log: there are many, and the payment itself is the record.
const NOT_AUDITED: [&str; 2] = ["/api/v1/payments", "/api/v1/payments/{id}/simulate"];

/// Names the person or the caller's key in the audit log, if the request may change records.
fn audited(
    route: &Route,
    found: &Found,
    client: IpAddr,
    person: Option<AuditActor>,
    caller: &Caller,
    handling: Handling,
) -> Handling {
    if route.method == Method::GET || (person.is_none() && NOT_AUDITED.contains(&route.template)) {
        return handling;
    }
    let acting = Acting {
        actor: person.unwrap_or_else(|| actor("api_key", caller.id.as_str(), caller.name.clone())),
        address: Some(client),
        action: format!("{} {}", route.method, route.template),
        subject: Some(found.id.clone()).filter(|id| !id.is_empty()),
    };
    Box::pin(acting.scope(handling))
}

fn note(service: &Service, head: &Head, caller: &Caller, took: Duration, outcome: &Outcome) {
    let (status, error) = match outcome {
        Ok(response) => (response.status(), None),
        Err(error) => (error.status(), Some(error.code())),
    };
    let describe = || {
        let ended_at = service.ambient.now();
        let Described { id, method, path } = head.described();
        let took = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        LoggedRequest {
            id: id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            status: status.as_u16(),
            error: error.cloned(),
            key_last4: caller.last4.clone(),
            duration_ms: took,
            created_at: Timestamp::from_millis(ended_at.as_millis() - i64::from(took)).unwrap_or(ended_at),
            count: None,
            unknown: UnknownFields::new(),
        }
    };
    match status {
        // The rate limit does not bound the number of throttled requests.
        StatusCode::TOO_MANY_REQUESTS => service.request_log.note_throttled(&caller.scope, describe()),
        _ => service.request_log.note(&caller.scope, status.as_u16(), describe),
    }
}

/// Whether the console says that it makes a request for its pages.
fn is_consoles(head: &Head) -> bool {
    head.parts.headers.contains_key("x-console")
}

/// Authenticates by the Bearer token, or by `x-api-key` (API specification, "Authentication"), or by a person's session. Ignores
/// `Authorization` of other schemes, such as Basic for a proxy. A request whose key fails counts for its client. Once a client's
/// limit is used up, its requests get 429 and the store is asked only about keys that worked lately. Returns the service that has
/// the key's records.
async fn authenticate(server: &Server, head: &Head) -> Result<(Caller, Arc<Service>, Option<Person>), ApiError> {
    let unauthorized = |message| ApiError::new(ErrorCode::Unauthorized, message);
    // The listener counts the request for its client.
    let missing = "API key missing: send Authorization: Bearer <key> or x-api-key: <key>";
    let client = head.addresses.client;
    let lasting = &server.services.lasting;
    let Some(key) = key_of(&head.parts.headers) else {
        let (people, parts) = (server.people.as_ref(), &head.parts);
        let asked = people::authenticate(people, &lasting.directory, &parts.method, &parts.headers);
        return match Box::pin(asked).await {
            Ok(Some((key, person))) => {
                let service = server.services.of(&key.scope)?;
                Ok((Arc::new(key), service, Some(person)))
            }
            Ok(None) => Err(unauthorized(missing)),
            Err(error) if error.status() == StatusCode::UNAUTHORIZED => {
                Err(throttled(head, server.limits.take_failed_key(client).await).unwrap_or(error))
            }
            Err(error) => Err(error),
        };
    };
    if let Some(verdict) = server.limits.used_up(client).filter(|_| !lasting.has_worked_lately(key)) {
        return Err(throttled(head, verdict).unwrap_or_else(|| unauthorized(INVALID)));
    }
    let failure = match lasting.caller(key).await {
        Ok(Some(caller)) => {
            let service = server.services.of(&caller.scope)?;
            return Ok((caller, service, None));
        }
        Ok(None) => unauthorized(INVALID),
        Err(error @ ServiceError::KeyExpired) => error.into(),
        // The store has failed, so the key may be valid.
        Err(error) => return Err(error.into()),
    };
    Err(throttled(head, server.limits.take_failed_key(client).await).unwrap_or(failure))
}

/// Notes the verdict about a request. Returns a 429 if the request is beyond the limit.
fn throttled(head: &Head, verdict: Verdict) -> Option<ApiError> {
    let _ = head.verdict.set(verdict);
    verdict.retry_after().map(ApiError::too_many_requests)
}

const INVALID: &str =
    "invalid API key: it is malformed, unknown or revoked, or it is the sandbox key and the sandbox is off";

pub(super) fn key_of(headers: &HeaderMap) -> Option<&str> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let key = authorizations.find_map(bearer_token);
    key.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok())).map(str::trim)
}

/// Parses a Bearer token. The scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
