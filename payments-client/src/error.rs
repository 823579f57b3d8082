//! What can go wrong, and what to do then.

use std::{fmt, time::Duration};

use payments_core::{ErrorBody, Message};
use reqwest::StatusCode;

use crate::{IdempotencyKey, IdempotencyKeyError, SecretKeyError};

/// A call that did not succeed.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not succeed. No part of it holds the API key, and it is as small as a pointer.
///
/// By the time you see it, whatever could be tried again was. What is left to do is for your program to decide:
///
/// ```no_run
/// use payments_client::{Client, CreatePayment, Error, IdempotencyKey, Payment};
///
/// async fn pay(client: &Client, order: &str, params: CreatePayment) -> Result<Option<Payment>, Error> {
///     // The key comes from the order, so a program that crashed goes on with the same payment. It holds for 24 hours.
///     let key = IdempotencyKey::new(order)?;
///     for _ in 0..5 {
///         match client.payments().create(params.clone()).idempotency_key(key.clone()).await {
///             Ok(payment) => return Ok(Some(payment)),
///             // The request is wrong, or the key is: the same again gets the same answer.
///             Err(error) if !error.is_retryable() => return Err(error),
///             // It may have happened. The same key asks for the answer that was lost.
///             Err(error) => {
///                 let pause = error.retry_after().unwrap_or(std::time::Duration::from_secs(5));
///                 tokio::time::sleep(pause).await;
///             }
///         }
///     }
///     Ok(None) // Keep the order and its key, and go on later.
/// }
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    context: Context,
}

/// What is known of the request that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    pub(crate) tries: u32,
    pub(crate) request_id: Option<Box<str>>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) body_start: Option<BodyStart>,
}

/// The beginning of a body. It may hold a customer's data, so `Debug` does not show it.
#[derive(Clone)]
pub(crate) struct BodyStart(Box<str>);

impl BodyStart {
    const MAX_BYTES: usize = 1024;

    pub(crate) fn of(body: &[u8]) -> Self {
        let start = &body[..body.len().min(Self::MAX_BYTES)];
        Self(String::from_utf8_lossy(start).into())
    }
}

impl fmt::Debug for BodyStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("the client cannot be built: {0}")]
    Build(String),
    #[error("the request cannot be made: {0}")]
    Request(String),
    #[error("no connection to the API; check the base URL and the network")]
    Connect(#[source] Option<reqwest::Error>),
    #[error("the API did not answer in time; it may have done what was asked, so ask again under the same key")]
    Timeout(#[source] Option<reqwest::Error>),
    #[error("the API's answer was lost; it may have done what was asked, so ask again under the same key")]
    Lost(#[source] Option<reqwest::Error>),
    #[error("the rate limit of this minute is spent, and the deadline comes before the next; nothing was sent")]
    Limited,
    #[error("the API refused with {}: {}", .status.as_u16(), .body.message.sentences().join("; "))]
    Api { status: StatusCode, body: ErrorBody },
    #[error("the API answered {} with something that is not its error body; check the base URL", .status.as_u16())]
    Status { status: StatusCode },
    #[error("the API's answer ({}) cannot be read at {path}", .status.as_u16())]
    Decode { status: StatusCode, path: String, source: serde_json::Error },
}

impl Error {
    pub(crate) fn new(kind: Kind, context: Context) -> Self {
        Self(Box::new(Inner { kind, context }))
    }

    /// The HTTP status of the answer, if one came: whatever its body was.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match &self.0.kind {
            Kind::Api { status, .. } | Kind::Status { status } | Kind::Decode { status, .. } => Some(status.as_u16()),
            _ => None,
        }
    }

    /// What the API said: one sentence for each fault, or none if it said nothing readable.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        match &self.0.kind {
            Kind::Api { body: ErrorBody { message: Message::One(sentence), .. }, .. } => std::slice::from_ref(sentence),
            Kind::Api { body, .. } => body.message.sentences(),
            _ => &[],
        }
    }

    /// The server's name for the request; tell it when you ask its operator for help.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.context.request_id.as_deref()
    }

    /// How many times it was sent; 0 if it never was.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.0.context.tries
    }

    /// The idempotency key it was sent under. Ask again under this one, not a new one: within 24 hours it cannot make
    /// a second payment. After 24 hours the server has forgotten it, and the same request makes a second payment.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.0.context.key.as_ref()
    }

    /// How long the server asks to wait before the next try, which was more than the deadline left.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.context.retry_after
    }

    /// Where in the JSON an answer could not be read, such as `items[3].amount`.
    #[must_use]
    pub fn decode_path(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Decode { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The first 1024 bytes of an answer that was no success. It may hold a customer's data: think before you log it.
    #[must_use]
    pub fn body_start(&self) -> Option<&str> {
        self.0.context.body_start.as_ref().map(|start| &*start.0)
    }

    /// The request does not validate (400); the messages name the fields. Correct them: the same again is refused again.
    #[must_use]
    pub fn is_validation(&self) -> bool {
        self.status() == Some(400)
    }

    /// The key is unknown or revoked (401). Check which key the program was given; make a new one if it was revoked.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        self.status() == Some(401)
    }

    /// There is no such thing, or it belongs to another developer or environment (404). Check the id, and whether a
    /// test key asks for a live payment.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// What the payment is forbids it (409): a refund of what is not paid, a session that is over. Read the payment again.
    /// Of a new webhook endpoint: there are as many as there may be.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The idempotency key was used for another request (422), or this server cannot make such a payment. Use one key
    /// for one order.
    #[must_use]
    pub fn is_unprocessable(&self) -> bool {
        self.status() == Some(422)
    }

    /// Too many requests in this minute (429). Wait for [`retry_after`](Self::retry_after).
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.status() == Some(429) || matches!(self.0.kind, Kind::Limited)
    }

    /// The server failed (5xx). Ask again later, under the same key; if it stays, tell the operator the request's id.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.status().is_some_and(|status| status >= 500)
    }

    /// No whole answer came in time. What was asked for may have happened: ask again under the same key.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Timeout(_)) || self.status() == Some(408)
    }

    /// No connection was made, so nothing happened. Check the base URL, the network and the certificate.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self.0.kind, Kind::Connect(_))
    }

    /// No answer came. What was asked for may have happened: ask again under the same idempotency key.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(self.0.kind, Kind::Connect(_) | Kind::Timeout(_) | Kind::Lost(_))
    }

    /// A success that this version cannot read. What was asked for has happened; [`decode_path`](Self::decode_path)
    /// tells where. Update this crate, or read the payment's id from the list.
    #[must_use]
    pub fn is_decode(&self) -> bool {
        matches!(self.0.kind, Kind::Decode { .. })
    }

    /// Whether the same request, under the same idempotency key, may succeed later.
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
