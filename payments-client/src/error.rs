//! What can go wrong, and what to do then.

use std::fmt;

use payments_core::ErrorBody;
use reqwest::StatusCode;

use crate::{IdempotencyKeyError, SecretKeyError};

/// A call that did not succeed.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call did not succeed. No part of it holds the API key.
pub struct Error(Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("the client cannot be built: {0}")]
    Build(String),
    #[error("the API could not be reached")]
    Transport(#[source] reqwest::Error),
    #[error("the API refused with {}: {}", .status.as_u16(), .body.message.sentences().join("; "))]
    Api { status: StatusCode, body: ErrorBody },
    #[error("the API answered {} with something that is not its error body", .status.as_u16())]
    Status { status: StatusCode },
    #[error("the API's answer cannot be read")]
    Decode(#[source] serde_json::Error),
}

impl Error {
    /// The HTTP status of the answer, if one came.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match &*self.0 {
            Kind::Api { status, .. } | Kind::Status { status } => Some(status.as_u16()),
            _ => None,
        }
    }

    /// What the API said, one sentence for each fault.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        match &*self.0 {
            Kind::Api { body, .. } => body.message.sentences(),
            _ => &[],
        }
    }

    /// The request does not validate (400); the messages name the fields. Sending it again will not help.
    #[must_use]
    pub fn is_validation(&self) -> bool {
        self.status() == Some(400)
    }

    /// The key is unknown or revoked (401). Check which key the program was given.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        self.status() == Some(401)
    }

    /// There is no such thing, or it belongs to another developer or environment (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// No answer came. What was asked for may have happened: ask again under the same idempotency key.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(&*self.0, Kind::Transport(_))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.0)
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

impl From<SecretKeyError> for Error {
    fn from(error: SecretKeyError) -> Self {
        Kind::Build(error.to_string()).into()
    }
}

impl From<IdempotencyKeyError> for Error {
    fn from(error: IdempotencyKeyError) -> Self {
        Kind::Build(error.to_string()).into()
    }
}
