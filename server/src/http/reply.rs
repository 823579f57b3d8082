//! Responses: JSON bodies, and the error body of the API specification's section "Errors".

use std::fmt::Display;

use bytes::Bytes;
use payments_core::{ErrorBody, Invalid, Message, Page, Refusal};
use serde::Serialize;
use warp::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    reply::Response,
};

use crate::{
    gateway::{EventFault, GatewayError},
    service::{Answer, Refused},
    store::PaymentJson,
};

/// A header whose value is known in advance.
pub(super) type StaticHeader = (HeaderName, &'static str);

/// Builds a response.
pub(super) fn response(
    status: StatusCode,
    body: impl Into<Bytes>,
    headers: impl IntoIterator<Item = StaticHeader>,
) -> Response {
    let mut response = Response::new(body.into().into());
    *response.status_mut() = status;
    response.headers_mut().extend(headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// A successful JSON response.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_string(body).map_err(Problem::internal)?;
    Ok(json_text(status, body, None))
}

/// A payment, copied from the store.
pub(super) fn payment(payment: PaymentJson) -> Response {
    json_text(StatusCode::OK, payment.0, None)
}

/// A page of payments, copied from the store: what a [`Page`] of them serializes to.
pub(super) fn payments(page: &Page<PaymentJson>) -> Response {
    json_text(StatusCode::OK, page_text(page), None)
}

fn page_text(Page { items, total, page, limit }: &Page<PaymentJson>) -> String {
    let end = format!(r#"],"total":{total},"page":{page},"limit":{limit}}}"#);
    let items: Vec<_> = items.iter().map(|payment| payment.0.as_str()).collect();
    [r#"{"items":["#, &items.join(","), &end].concat()
}

/// A successful response whose JSON is always the same.
pub(super) fn json_literal(body: &'static str) -> Response {
    json_text(StatusCode::OK, body, None)
}

/// The response to a request that may have an idempotency key.
pub(super) fn answer(status: StatusCode, answer: Answer) -> Response {
    let replayed = answer.replayed.then_some((HeaderName::from_static("idempotent-replayed"), "true"));
    json_text(status, answer.body.as_str().to_owned(), replayed)
}

fn json_text(status: StatusCode, body: impl Into<Bytes>, extra: Option<StaticHeader>) -> Response {
    // A response is about one caller's money at one moment.
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    response(status, body, headers.into_iter().chain(extra))
}

/// Redirects a browser, which then sends `GET`.
pub(super) fn see_other(target: &str) -> Response {
    let mut response = response(StatusCode::SEE_OTHER, "", None);
    response.headers_mut().extend(HeaderValue::from_str(target).ok().map(|target| (header::LOCATION, target)));
    response
}

/// An API error.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    message: Message,
    /// The header that the status requires.
    pub(super) header: Option<StaticHeader>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let header = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        Self { status, message: Message::One(message.into()), header }
    }

    /// 404 for a path without a route.
    pub(super) fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no such path; API paths start with /api/v1")
    }

    /// 405, with the path's methods.
    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path allows only {allowed}"));
        Self { header: Some((header::ALLOW, allowed)), ..problem }
    }

    /// 429, with the seconds to wait. [`Verdict`](super::limit::Verdict) writes the headers.
    pub(super) fn too_many_requests(seconds: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests; retry after {seconds} s"))
    }

    /// 500. The cause goes to the log, not to the caller.
    pub(super) fn internal(cause: impl Display) -> Self {
        tracing::error!(cause = cause.to_string(), "a request failed with an internal error");
        let message = "internal error; give the X-Request-Id to the server's operator, whose log has the cause";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Builds the response with its headers.
    pub(super) fn into_response(self) -> Response {
        let error = self.status.canonical_reason().unwrap_or_default().into();
        let body = ErrorBody { status_code: self.status.as_u16(), message: self.message, error };
        // Strings and a number always serialize.
        json_text(self.status, serde_json::to_string(&body).unwrap_or_default(), self.header)
    }
}

/// 400, with one sentence per invalid field.
impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: Message::Many(invalid.into_sentences()), header: None }
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let status = match refused {
            Refused::Invalid(invalid) => return invalid.into(),
            Refused::Event(EventFault::Signature(_)) => return Invalid::new(message).into(),
            Refused::Event(EventFault::NoProcessor | EventFault::NoSecret)
            | Refused::NotFound { .. }
            | Refused::NoSandbox(_) => StatusCode::NOT_FOUND,
            Refused::Payment(Refusal::LiveSimulation) => StatusCode::FORBIDDEN,
            Refused::Payment(_)
            | Refused::Conflict
            | Refused::RefundInProgress
            | Refused::TooManyEndpoints { .. }
            | Refused::NotResent(_) => StatusCode::CONFLICT,
            Refused::IdempotencyKeyReused | Refused::NoGateway(_) | Refused::Gateway(GatewayError::Refused { .. }) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Refused::Gateway(_) | Refused::KeyInProgress | Refused::TooManyEffects { .. } | Refused::OutcomeUnknown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Refused::Unavailable(cause) => {
                tracing::error!(%cause, "the store is unavailable");
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self::new(status, message)
    }
}

#[cfg(test)]
mod tests {
    use payments_core::RawJson;

    use super::*;

    #[test]
    fn a_page_of_payments_is_written_as_it_serializes() {
        for texts in [&[][..], &[r#"{"id":"pay_1"}"#], &[r#"{"id":"pay_1"}"#, r#"{"id":"pay_2","amount":1.10}"#]] {
            let items = texts.iter().map(|text| PaymentJson((*text).to_owned())).collect();
            let copied = Page { items, total: 7, page: 2, limit: 20 };
            let items: Vec<_> = texts.iter().map(|text| RawJson::new(*text).unwrap()).collect();
            let serialized = Page { items, total: 7, page: 2, limit: 20 };
            assert_eq!(page_text(&copied), serde_json::to_string(&serialized).unwrap());
        }
    }
}
