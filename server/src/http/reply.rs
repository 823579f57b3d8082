//! Responses: JSON bodies, and the error body of the API specification's section "Errors".

use std::fmt::Display;

use bytes::Bytes;
use payments_core::{ErrorBody, ErrorCode, FieldError, Invalid, Message, PaymentPage, RawJson};
use serde::Serialize;
use warp::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    reply::Response,
};

use super::language::Language;
use crate::{
    domain::{LimitReached, Permission, Role},
    gateway::NoticeError,
    service::{Answer, Caller, ServiceError},
    store::{PaymentJson, StoreError},
};

pub(super) type Outcome = Result<Response, ApiError>;
pub(super) type StaticHeader = (HeaderName, &'static str);

pub(super) const HTML: &str = "text/html; charset=utf-8";
/// The policy of a page that uses only this server's styles and scripts, and may call its API.
pub(super) const SCRIPTED: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; \
    frame-ancestors 'none'; base-uri 'none'";

/// How many headers most responses have at most: two of the body, two of the rate limit, and the request's id.
const USUAL_HEADERS: usize = 6;

pub(super) fn response(
    status: StatusCode,
    body: impl Into<Bytes>,
    headers: impl IntoIterator<Item = StaticHeader>,
) -> Response {
    let mut response = Response::new(body.into().into());
    *response.status_mut() = status;
    let all = response.headers_mut();
    all.reserve(USUAL_HEADERS);
    all.extend(headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// A page, style, script or picture. Browsers must not guess another type.
pub(super) fn file(
    kind: &'static str,
    cache: &'static str,
    policy: Option<&'static str>,
    body: impl Into<Bytes>,
) -> Response {
    let headers =
        [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    let policy = policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy));
    response(StatusCode::OK, body, headers.into_iter().chain(policy))
}

/// A page in the language that the visitor chose or the browser prefers.
pub(super) fn page(
    status: StatusCode,
    language: Language,
    cache: &'static str,
    policy: &'static str,
    html: String,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HTML),
        (header::CONTENT_LANGUAGE, language.code()),
        (header::VARY, "Accept-Language, Cookie"),
        (header::CACHE_CONTROL, cache),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    response(status, html, headers)
}

pub(super) fn ok(body: &impl Serialize) -> Outcome {
    json(StatusCode::OK, body)
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Outcome {
    let body = serde_json::to_string(body).map_err(ApiError::internal)?;
    Ok(json_text(status, body, None))
}

/// JSON that is already serialized.
pub(super) fn ok_text(json: impl Into<Bytes>) -> Outcome {
    Ok(json_text(StatusCode::OK, json, None))
}

/// A page of payments, copied from the store. The text equals what [`PaymentPage`] serializes to.
pub(super) fn page_text(page: &PaymentPage<PaymentJson>) -> String {
    let PaymentPage { items, total, page: number, limit, has_more, next, .. } = page;
    let begin = r#"{"items":["#;
    let end = match (total, has_more) {
        (Some(total), None) => format!(r#"],"total":{total},"page":{number},"limit":{limit}}}"#),
        (total, has_more) => {
            // Ids have no character that JSON escapes.
            let next = next.as_ref().map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
            let has_more = has_more.unwrap_or_default();
            let total = total.map_or_else(|| "null".to_owned(), |total| total.to_string());
            format!(r#"],"total":{total},"page":{number},"limit":{limit},"hasMore":{has_more},"next":{next}}}"#)
        }
    };
    let length = items.iter().map(|payment| payment.0.len() + 1).sum::<usize>();
    let mut text = String::with_capacity(begin.len() + length + end.len());
    text.push_str(begin);
    for (nth, payment) in items.iter().enumerate() {
        text.push_str(if nth == 0 { "" } else { "," });
        text.push_str(&payment.0);
    }
    text.push_str(&end);
    text
}

/// A body that the response shares with its source, without a copy.
struct Text(RawJson);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_str().as_bytes()
    }
}

pub(super) fn answer(status: StatusCode, answer: Answer) -> Response {
    let replayed = answer.replayed.then_some((HeaderName::from_static("idempotent-replayed"), "true"));
    json_text(status, Bytes::from_owner(Text(answer.body)), replayed)
}

fn json_text(status: StatusCode, body: impl Into<Bytes>, extra: Option<StaticHeader>) -> Response {
    // A response tells one caller about money at one moment.
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    response(status, body, headers.into_iter().chain(extra))
}

/// Redirects a browser, which then sends `GET`.
pub(super) fn see_other(target: &str) -> Response {
    // Where it leads depends on the payment's state.
    let mut response = response(StatusCode::SEE_OTHER, "", Some((header::CACHE_CONTROL, "no-store")));
    response.headers_mut().extend(HeaderValue::from_str(target).ok().map(|target| (header::LOCATION, target)));
    response
}

/// An API error. Its code decides its status.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    code: ErrorCode,
    message: Message,
    fields: Box<[FieldError]>,
    pub(super) header: Option<StaticHeader>,
}

impl ApiError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let header = match status_of(&code) {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        Self { code, message: Message::One(message.into()), fields: Box::default(), header }
    }

    pub(super) fn code(&self) -> &ErrorCode {
        &self.code
    }

    pub(super) fn status(&self) -> StatusCode {
        status_of(&self.code)
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(ErrorCode::RouteNotFound, "no such path; API paths start with /api/v1")
    }

    pub(super) fn host_unknown() -> Self {
        let message = "this server listens on loopback alone and does not know the host that the request names; call it by its \
            base URL or as localhost, or have its operator name the host with --allowed-host";
        Self::new(ErrorCode::HostUnknown, message)
    }

    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let error = Self::new(ErrorCode::MethodNotAllowed, format!("this path allows only {allowed}"));
        Self { header: Some((header::ALLOW, allowed)), ..error }
    }

    /// 403 for a person whose role lacks a permission.
    pub(super) fn role_lacks(role: Role, needed: Permission) -> Self {
        Self::new(ErrorCode::PermissionMissing, format!("the role {role} lacks the scope {needed}"))
    }

    /// 403 for a key that lacks a permission.
    pub(super) fn unless_permitted(caller: &Caller, needed: Permission) -> Result<(), Self> {
        if caller.may(needed) {
            return Ok(());
        }
        let granted: Vec<_> = caller.permissions.iter().flatten().map(|scope| scope.as_str()).collect();
        let granted = granted.join(", ");
        let message = format!("this API key is restricted to {granted} and lacks the scope {needed}");
        Err(Self::new(ErrorCode::PermissionMissing, message))
    }

    /// 429, with the seconds to wait. [`Verdict`](super::limit::Verdict) writes the headers.
    pub(super) fn too_many_requests(seconds: u64) -> Self {
        Self::new(ErrorCode::RateLimited, format!("too many requests; retry after {seconds} s"))
    }

    pub(super) fn webhook_loop() -> Self {
        let message = "this request is a webhook; set the endpoint's url to a program of yours instead of this server";
        Invalid::new(ErrorCode::WebhookLoop, message).into()
    }

    /// 503 for a request that would take memory that others need.
    pub(super) fn busy() -> Self {
        let message = "this server has no memory for more long requests and responses; read pending responses, ask for a \
                       smaller page, or try again in a moment";
        Self::new(ErrorCode::TooManyInProgress, message)
    }

    /// 500. The cause goes to the log, not to the caller.
    pub(super) fn internal(cause: impl Display) -> Self {
        tracing::error!(cause = cause.to_string(), "a request failed with an internal error");
        let message = "internal error; give the X-Request-Id to the server's operator, whose log has the cause";
        Self::new(ErrorCode::InternalError, message)
    }

    pub(super) fn into_response(self) -> Response {
        let (status, header) = (self.status(), self.header.clone());
        json_text(status, self.body(), header)
    }

    pub(super) fn body(self) -> String {
        let status = self.status();
        let error = status.canonical_reason().unwrap_or_default().into();
        let Self { code, message, fields, .. } = self;
        let body = ErrorBody { status_code: status.as_u16(), message, error, code: Some(code), fields: fields.into() };
        // Strings and a number always serialize.
        serde_json::to_string(&body).unwrap_or_default()
    }
}

/// A wait of at most a minute, as a header.
fn rounded_up(seconds: u64) -> &'static str {
    match seconds {
        0..=1 => "1",
        2..=5 => "5",
        6..=15 => "15",
        16..=30 => "30",
        _ => "60",
    }
}

fn status_of(code: &ErrorCode) -> StatusCode {
    // Every code that this version knows has an error status.
    let status = code.status().and_then(|status| StatusCode::from_u16(status).ok());
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// 400, with one sentence per error.
impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let (code, fields) = (invalid.code(), invalid.fields().into());
        Self { code, message: Message::Many(invalid.into_sentences()), fields, header: None }
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        match error {
            ServiceError::Invalid(invalid) => invalid.into(),
            ServiceError::Notice(NoticeError::Signature(_) | NoticeError::Unsigned(_)) => {
                Invalid::new(code, message).into()
            }
            ServiceError::LimitReached(LimitReached::Minute { seconds, .. }) => {
                Self { header: Some((header::RETRY_AFTER, rounded_up(seconds))), ..Self::new(code, message) }
            }
            ServiceError::Unavailable(cause) => {
                match cause {
                    StoreError::Denied(_) => {
                        tracing::error!(%cause, "a request failed, and others will until this is granted")
                    }
                    _ => tracing::error!(%cause, "the store is unavailable"),
                }
                Self::new(code, message)
            }
            _ => Self::new(code, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_payments_has_the_text_that_serde_would_write() {
        for texts in [&[][..], &[r#"{"id":"pay_1"}"#], &[r#"{"id":"pay_1"}"#, r#"{"id":"pay_2","amount":1.10}"#]] {
            let items = texts.iter().map(|text| PaymentJson((*text).to_owned())).collect();
            let parsed: Vec<_> = texts.iter().map(|text| RawJson::new(*text).unwrap()).collect();
            let copied = PaymentPage::numbered(items, 7, 2, 20);
            let serialized = PaymentPage::numbered(parsed.clone(), 7, 2, 20);
            assert_eq!(page_text(&copied), serde_json::to_string(&serialized).unwrap());
            let items = copied.items;
            for next in [None, Some("pay_1".parse().unwrap())] {
                let serialized = PaymentPage::part(parsed.clone(), 20, next.is_some(), next.clone());
                let copied = PaymentPage::part(items.clone(), 20, next.is_some(), next);
                assert_eq!(page_text(&copied), serde_json::to_string(&serialized).unwrap());
                // A page that ends early.
                let (mut copied, mut serialized) = (copied, serialized);
                (copied.total, serialized.total) = (Some(9), Some(9));
                assert_eq!(page_text(&copied), serde_json::to_string(&serialized).unwrap());
            }
        }
    }
}
