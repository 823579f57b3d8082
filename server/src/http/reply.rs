//! Responses: JSON bodies, and the error body of the API specification's section "Errors".

use payments_core::{ErrorBody, Invalid, Message, RawJson, Refusal};
use serde::Serialize;
use warp::{
    http::{HeaderValue, StatusCode, header},
    reply::Response,
};

use super::head::{MAX_FIELDS, MAX_HEAD_BYTES, MAX_URI_BYTES};
use crate::{
    gateway::{EventFault, GatewayError},
    service::{Answer, Refused},
};

/// A successful JSON response.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_string(body).map_err(|error| Problem::Internal(error.to_string()))?;
    Ok(with_json(status, body))
}

/// The response to a request that may have an idempotency key.
pub(super) fn answer(status: StatusCode, answer: Answer) -> Response {
    let mut response = raw_json(status, &answer.body);
    if answer.replayed {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    response
}

fn raw_json(status: StatusCode, body: &RawJson) -> Response {
    with_json(status, body.as_str().to_owned())
}

fn with_json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // A response is about one caller's money at one moment.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An API error.
#[derive(Debug)]
pub(super) enum Problem {
    /// 400, with one sentence per invalid field.
    Invalid(Invalid),
    /// 401.
    Unauthorized(&'static str),
    /// 403.
    Forbidden(String),
    /// 404.
    NotFound(String),
    /// 405, with the path's methods.
    MethodNotAllowed(&'static str),
    /// 408: the body did not arrive in time.
    BodyTimeout,
    /// 409: the resource's state forbids it.
    Conflict(String),
    /// 413.
    BodyTooLarge,
    /// 414.
    UriTooLong,
    /// 422.
    Unprocessable(String),
    /// 429, with the seconds to wait. [`Verdict`](super::limit::Verdict) writes the headers.
    TooManyRequests(u64),
    /// 431.
    HeadTooLarge,
    /// 500. The cause goes to the log, not to the caller.
    Internal(String),
    /// 503; the caller may retry.
    Unavailable(String),
}

impl Problem {
    /// 404 for a path without a route.
    pub(super) fn no_such_path() -> Self {
        Self::NotFound("no such path; API paths start with /api/v1".into())
    }

    /// Builds the response with its headers.
    pub(super) fn into_response(self) -> Response {
        let mut extra = None;
        let (status, message) = match self {
            Self::Invalid(invalid) => (StatusCode::BAD_REQUEST, Message::Many(invalid.into_sentences())),
            Self::Unauthorized(message) => {
                extra = Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
                (StatusCode::UNAUTHORIZED, Message::One(message.into()))
            }
            Self::Forbidden(message) => (StatusCode::FORBIDDEN, Message::One(message)),
            Self::NotFound(message) => (StatusCode::NOT_FOUND, Message::One(message)),
            Self::MethodNotAllowed(allowed) => {
                extra = Some((header::ALLOW, HeaderValue::from_static(allowed)));
                (StatusCode::METHOD_NOT_ALLOWED, Message::One(format!("this path allows only {allowed}")))
            }
            Self::BodyTimeout => (
                StatusCode::REQUEST_TIMEOUT,
                Message::One("the body did not arrive in time; send the request again".into()),
            ),
            Self::Conflict(message) => (StatusCode::CONFLICT, Message::One(message)),
            Self::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, Message::One("the body must be at most 65536 bytes".into()))
            }
            Self::UriTooLong => {
                let message = format!("the path and query must be at most {MAX_URI_BYTES} bytes");
                (StatusCode::URI_TOO_LONG, Message::One(message))
            }
            Self::HeadTooLarge => {
                let message = format!(
                    "the request line and headers must be at most {MAX_HEAD_BYTES} bytes with at most {MAX_FIELDS} headers"
                );
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Message::One(message))
            }
            Self::Unprocessable(message) => (StatusCode::UNPROCESSABLE_ENTITY, Message::One(message)),
            Self::TooManyRequests(seconds) => {
                let message = format!("too many requests; retry after {seconds} s");
                (StatusCode::TOO_MANY_REQUESTS, Message::One(message))
            }
            Self::Internal(cause) => {
                tracing::error!(cause, "a request failed with an internal error");
                let message = "internal error; give the X-Request-Id to the server's operator, whose log has the cause";
                (StatusCode::INTERNAL_SERVER_ERROR, Message::One(message.into()))
            }
            Self::Unavailable(message) => {
                extra = Some((header::RETRY_AFTER, HeaderValue::from_static("1")));
                (StatusCode::SERVICE_UNAVAILABLE, Message::One(message))
            }
        };
        let reason = status.canonical_reason().unwrap_or_default();
        let body = ErrorBody { status_code: status.as_u16(), message, error: reason.into() };
        // Strings and a number always serialize.
        let mut response = with_json(status, serde_json::to_string(&body).unwrap_or_default());
        response.headers_mut().extend(extra);
        response
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Invalid(invalid) => Self::Invalid(invalid),
            Refused::Event(EventFault::Signature(_)) => Self::Invalid(Invalid::new(message)),
            Refused::Event(EventFault::NoProcessor | EventFault::NoSecret) => Self::NotFound(message),
            Refused::NotFound { .. } | Refused::NoSandbox(_) => Self::NotFound(message),
            Refused::Payment(Refusal::LiveSimulation) => Self::Forbidden(message),
            Refused::Payment(_) | Refused::Moved | Refused::RefundUnderWay | Refused::TooManyEndpoints { .. } => {
                Self::Conflict(message)
            }
            Refused::IdempotencyKeyReused | Refused::NoGateway(_) => Self::Unprocessable(message),
            Refused::Gateway(GatewayError::Refused { .. }) => Self::Unprocessable(message),
            Refused::Gateway(_) | Refused::KeyUnderWay | Refused::TooManyEffects => Self::Unavailable(message),
            Refused::Unavailable(cause) => {
                tracing::error!(%cause, "the store is unavailable");
                Self::Unavailable(message)
            }
        }
    }
}
