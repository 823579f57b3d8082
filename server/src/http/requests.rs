//! `/api/v1/requests`: the log of a developer's requests.

use std::time::Duration;

use payments_core::{LoggedRequest, RequestQuery, Timestamp, UnknownFields};
use warp::http::{Method, StatusCode};

use super::{
    head::Head,
    reply,
    request::Request,
    route::{OTHER, Outcome},
    routes::find,
};
use crate::{
    domain::Permission,
    service::{Caller, Service},
};

/// The log's own path. Reading the log is not logged.
pub(super) const PATH: &str = "/api/v1/requests";

/// How much of a method, a path and an id is logged. All that the API knows are shorter.
const LONGEST_METHOD: usize = 16;
const LONGEST_TEXT: usize = 160;

/// Notes a request that a key authenticated.
pub(super) fn note(service: &Service, head: &Head, caller: &Caller, took: Duration, outcome: &Outcome) {
    let (status, error) = match outcome {
        Ok(response) => (response.status(), None),
        Err(problem) => (problem.status(), Some(problem.code())),
    };
    service.request_log.note(&caller.scope, status.as_u16(), || {
        let ended_at = service.ambient.now();
        let took = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        LoggedRequest {
            id: beginning(head.id.to_str().unwrap_or_default(), LONGEST_TEXT),
            method: beginning(head.parts.method.as_str(), LONGEST_METHOD),
            path: beginning(head.parts.uri.path(), LONGEST_TEXT),
            status: status.as_u16(),
            error: error.cloned(),
            key_last4: caller.last4.clone(),
            duration_ms: took,
            created_at: Timestamp::from_millis(ended_at.as_millis() - i64::from(took)).unwrap_or(ended_at),
            unknown: UnknownFields::new(),
        }
    });
}

/// The beginning of a text, which is ASCII.
fn beginning(text: &str, bytes: usize) -> String {
    text.get(..bytes).unwrap_or(text).to_owned()
}

pub(super) async fn list(caller: Caller, request: Request) -> Outcome {
    let query = RequestQuery::from_query(|name| request.query(name))?;
    let mut page = request.service().requests(&caller, &query).await?;
    if !caller.may(Permission::PaymentsRead) {
        page.items.iter_mut().for_each(|request| request.path = without_id(request).to_owned());
    }
    reply::json(StatusCode::OK, &page)
}

/// The path of a logged request without the id in it: who has a payment's id opens its checkout without a key.
fn without_id(request: &LoggedRequest) -> &'static str {
    let method = request.method.parse().unwrap_or(Method::GET);
    find(&method, &request.path).map_or(OTHER, |found| found.route.template)
}
