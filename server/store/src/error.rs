//! Errors of the store. Each says what to do next.

use std::fmt;

use super::change::Conflict;

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A condition did not hold; nothing was changed. Read again and decide again.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The store failed. Only after [`StoreError::Unknown`] may the change have been made.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A read or a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot do this now, most often because its disk is full. Nothing was changed: try again.
    #[error("the store cannot do this now: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database denies the server what it needs, such as a privilege. Trying again does not help until its operator has
    /// granted it.
    #[error("the database denies the server what it needs: {0}")]
    Denied(String),
    /// A record is damaged. Trying again does not help; `check` finds all damaged records.
    #[error("the record {record} cannot be read: {what}")]
    Corrupt { record: String, what: String },
    /// The connection to the database broke while it committed. The change may have been made. Ask again under the same
    /// idempotency key.
    #[error("the database went away during the commit, so the change may have been made or not")]
    Unknown,
    /// The store has stopped, and the server is about to stop.
    #[error("the store has stopped")]
    Stopped,
}

impl StoreError {
    /// An error of a store that may be available again in a moment.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }

    /// The message for callers of the API, who must not see the operator's details.
    pub fn for_callers(&self) -> &'static str {
        match self {
            Self::Denied(_) => {
                "the server's database denies the server what it needs, so this cannot be done until the server's operator has \
                 granted it; the server's log and /readyz have the cause"
            }
            Self::Corrupt { .. } => {
                "a record that this needs cannot be read; give the X-Request-Id to the server's operator, whose log names it"
            }
            Self::Unavailable(_) | Self::Unknown | Self::Stopped => {
                "the server cannot reach its store; try again in a moment"
            }
        }
    }

    /// The same error, for another change of the same batch.
    pub fn repeated(&self) -> Self {
        match self {
            Self::Unavailable(cause) => Self::unavailable(cause.to_string()),
            Self::Denied(what) => Self::Denied(what.clone()),
            Self::Corrupt { record, what } => Self::Corrupt { record: record.clone(), what: what.clone() },
            Self::Unknown => Self::Unknown,
            Self::Stopped => Self::Stopped,
        }
    }

    pub fn corrupt(record: &[u8], what: impl fmt::Display) -> Self {
        Self::Corrupt { record: record.escape_ascii().to_string(), what: what.to_string() }
    }
}
