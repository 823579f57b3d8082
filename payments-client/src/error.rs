//! Errors, and how to handle them.

use std::{convert::Infallible, fmt, time::Duration};

use payments_core::{ErrorBody, ErrorCode, FieldError};

use crate::{IdempotencyKey, IdempotencyKeyError, RawResponse, SecretKeyError};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. It never contains the API key, and is as small as a pointer.
///
/// The client has already made its retries. Your program decides what to do next, by the error's kind as in this example, or
/// by its [`code`](Self::code):
///
/// ```no_run
/// use payments_client::{Client, CreatePayment, Error, IdempotencyKey, Payment};
///
/// async fn pay(client: &Client, order: &str, params: CreatePayment) -> Result<Option<Payment>, Error> {
///     // Derive the key from the order, so that the program finds the same payment after a crash, within 24 hours.
///     let key = IdempotencyKey::try_from(order)?;
///     for _ in 0..5 {
///         match client.payments().create(params.clone()).idempotency_key(key.clone()).await {
///             Ok(payment) => return Ok(Some(payment)),
///             // The request or the API key is wrong: a retry fails again.
///             Err(error) if !error.is_retryable() => return Err(error),
///             // The payment may exist. Retry with the same key.
///             Err(error) => {
///                 let backoff = error.retry_after().unwrap_or(std::time::Duration::from_secs(5));
///                 tokio::time::sleep(backoff).await;
///             }
///         }
///     }
///     Ok(None) // Store the order and its key, and retry later.
/// }
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    context: Context,
}

/// Details of the failed call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    pub(crate) tries: u32,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) response: Option<RawResponse>,
}

impl Context {
    /// The context of a response.
    pub(crate) fn of(response: RawResponse) -> Self {
        let (tries, key) = (response.tries, response.idempotency_key.clone());
        Self { tries, retry_after: None, key, response: Some(response) }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("cannot build the client: {0}")]
    Build(String),
    #[error("cannot build the request: {0}")]
    Request(String),
    #[error("cannot connect to the API; check the base URL and the network")]
    Connect(#[source] Option<reqwest::Error>),
    #[error("the API did not respond in time and may have processed the request; retry with the same idempotency key")]
    Timeout(#[source] Option<reqwest::Error>),
    #[error("the response was lost and the API may have processed the request; retry with the same idempotency key")]
    Lost(#[source] Option<reqwest::Error>),
    #[error("the rate limit is used up and the deadline ends before the next minute; the request was not sent")]
    Limited,
    #[error("the API returned {}: {}", .status, .body.message.sentences().join("; "))]
    Api { status: u16, body: Box<ErrorBody> },
    #[error("the API returned {} without an error body; check the base URL", .status)]
    Status { status: u16 },
    #[error("cannot parse the response ({}) at {path}", .status)]
    Decode { status: u16, path: String, source: serde_json::Error },
}

impl Error {
    pub(crate) fn new(kind: Kind, context: Context) -> Self {
        Self(Box::new(Inner { kind, context }))
    }

    /// The HTTP status of the response, if there is one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match &self.0.kind {
            Kind::Api { status, .. } | Kind::Status { status } | Kind::Decode { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The sentences of the API's error body; empty without one. A validation error has one sentence per field.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        match &self.0.kind {
            Kind::Api { body, .. } => body.message.sentences(),
            _ => &[],
        }
    }

    /// The API's code of the error, for programs to decide by. `None` without an error body, or from a server without codes.
    ///
    /// ```no_run
    /// use payments_client::{Client, ErrorCode, Payment, PaymentId, Result};
    ///
    /// /// Refunds a payment, unless it is refunded already.
    /// async fn refund_once(client: &Client, id: &PaymentId) -> Result<Payment> {
    ///     match client.payments().refund(id, None).await {
    ///         Err(error) if error.code() == Some(&ErrorCode::PaymentAlreadyRefunded) => client.payments().retrieve(id).await,
    ///         outcome => outcome,
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn code(&self) -> Option<&ErrorCode> {
        match &self.0.kind {
            Kind::Api { body, .. } => body.code.as_ref(),
            _ => None,
        }
    }

    /// Every invalid field of the request, with a code and a sentence each; empty unless fields are invalid.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        match &self.0.kind {
            Kind::Api { body, .. } => &body.fields,
            _ => &[],
        }
    }

    /// The server's request id. Include it when you contact the operator.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.response()?.request_id()
    }

    /// How many times the request was sent; 0 if never.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.0.context.tries
    }

    /// The idempotency key of the request. Retry with this key, not a new one: within 24 hours it cannot create a
    /// second payment. After 24 hours the server has pruned the key, and a retry creates a second payment.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.0.context.key.as_ref()
    }

    /// How long to wait before the next try, if the server said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.context.retry_after
    }

    /// The path of the JSON value that could not be parsed, such as `items[3].amount`.
    #[must_use]
    pub fn decode_path(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Decode { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The response as the server sent it: status, headers, request id and body. `None` if there is no response. The body may
    /// contain customer data, so do not log it carelessly.
    ///
    /// ```no_run
    /// use payments_client::Error;
    ///
    /// /// A field of the error's body that this version does not know.
    /// fn help(error: &Error) -> Option<String> {
    ///     let body: serde_json::Value = error.response()?.json().ok()?;
    ///     Some(body["helpUrl"].as_str()?.to_owned())
    /// }
    /// ```
    #[must_use]
    pub fn response(&self) -> Option<&RawResponse> {
        self.0.context.response.as_ref()
    }

    /// The request is invalid (400). The messages name the fields to correct.
    #[must_use]
    pub fn is_validation(&self) -> bool {
        self.status() == Some(400)
    }

    /// The API key is unknown or revoked (401). Check the configured key, and create a new one if it was revoked.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        self.status() == Some(401)
    }

    /// The resource does not exist, or belongs to another developer or environment (404). Check the id, and that you do
    /// not use a test key for a live payment.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// The payment's status does not allow the request (409), for example refunding an unpaid payment or paying an
    /// expired session. Retrieve the payment again. For a new webhook endpoint: the endpoint limit is reached.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The idempotency key was used for another request, or the server does not support this payment (422). Use one key
    /// per order.
    #[must_use]
    pub fn is_unprocessable(&self) -> bool {
        self.status() == Some(422)
    }

    /// Too many requests (429). Wait for [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.status() == Some(429) || matches!(self.0.kind, Kind::Limited)
    }

    /// The server failed (5xx). Retry later with the same key; if it persists, send the request id to the operator.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.status().is_some_and(|status| status >= 500)
    }

    /// The response did not arrive in time. The server may have processed the request: retry with the same key.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_)) || self.status() == Some(408)
    }

    /// The client could not connect, so nothing happened. Check the base URL, the network and the certificate.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self.0.kind, Kind::Connect(_))
    }

    /// There is no response. The server may have processed the request: retry with the same key.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(self.0.kind, Kind::Connect(_) | Kind::Timeout(_) | Kind::Lost(_))
    }

    /// The request succeeded, but this version cannot parse the response; see [`decode_path`](Self::decode_path).
    /// Update this crate, or find the payment in the list.
    #[must_use]
    pub fn is_decode(&self) -> bool {
        matches!(self.0.kind, Kind::Decode { .. })
    }

    /// Whether a retry with the same idempotency key may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.is_transport() || matches!(self.status(), Some(408 | 429 | 500..=599))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("kind", &self.0.kind).field("context", &self.0.context).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0.kind)
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self::new(kind, Context::default())
    }
}

impl From<SecretKeyError> for Error {
    fn from(error: SecretKeyError) -> Self {
        Kind::Build(error.to_string()).into()
    }
}

/// An [`IdempotencyKey`] is always valid, so passing one cannot fail.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<IdempotencyKeyError> for Error {
    fn from(error: IdempotencyKeyError) -> Self {
        Kind::Request(error.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_eight_bytes() {
        assert_eq!(size_of::<Error>(), 8);
        assert_eq!(size_of::<Result<()>>(), 8);
    }
}
