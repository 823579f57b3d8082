//! `/api/v1/requests`: the log of a developer's requests.

use std::time::Duration;

use payments_core::{LoggedRequest, RequestQuery, Timestamp, UnknownFields};
use warp::http::{Method, StatusCode};

use super::{head::Head, reply, request::Request, route::OTHER, routes::find};
use crate::{
    domain::Permission,
    service::{Caller, Service},
};

/// The log's own path. Reading the log is not logged.
pub(super) const PATH: &str = "/api/v1/requests";

/// How many characters of a method, a path and an id are logged. All that the API knows are shorter.
pub(super) const LONGEST_METHOD: usize = 16;
pub(super) const LONGEST_TEXT: usize = 160;

/// Notes a request that a key authenticated.
pub(super) fn note(service: &Service, head: &Head, caller: &Caller, took: Duration, outcome: &reply::Outcome) {
    let (status, error) = match outcome {
        Ok(response) => (response.status(), None),
        Err(problem) => (problem.status(), Some(problem.code())),
    };
    let describe = || {
        let ended_at = service.ambient.now();
        let took = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        LoggedRequest {
            id: beginning(head.id.to_str().unwrap_or_default(), LONGEST_TEXT).to_owned(),
            method: beginning(head.parts.method.as_str(), LONGEST_METHOD).to_owned(),
            path: beginning(head.parts.uri.path(), LONGEST_TEXT).to_owned(),
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
        // No limit bounds these.
        StatusCode::TOO_MANY_REQUESTS => service.request_log.note_refusal(&caller.scope, describe()),
        _ => service.request_log.note(&caller.scope, status.as_u16(), describe),
    }
}

/// At most so many characters of a text's beginning.
pub(super) fn beginning(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

pub(super) async fn list(caller: Caller, request: Request) -> reply::Outcome {
    let query = RequestQuery::from_query(|name| request.query(name))?;
    let mut page = request.service().requests(&caller, &query).await?;
    if !caller.may(Permission::PaymentsRead) {
        page.items.iter_mut().for_each(|request| request.path = without_id(request).to_owned());
    }
    reply::ok(&page)
}

/// The path of a logged request without the id in it: who has a payment's id opens its checkout without a key.
fn without_id(request: &LoggedRequest) -> &'static str {
    let method = request.method.parse().unwrap_or(Method::GET);
    find(&method, &request.path).map_or(OTHER, |found| found.route.template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_has_whole_characters() {
        for (text, characters, beginning_of) in
            [("abc", 3, "abc"), ("abc", 2, "ab"), ("éé", 1, "é"), ("টাকা", 2, "টা"), ("", 5, ""), ("a", 0, "")]
        {
            assert_eq!(beginning(text, characters), beginning_of, "{text}");
        }
    }
}
