//! Why a store did not do what it was asked, in words that say what to do next.

use std::fmt;

use super::Conflict;

/// The result of a verb.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// A condition did not hold; nothing was changed. Read again and decide again.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The store could not say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store cannot answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// It cannot for now, most often because its disk is full. Nothing was changed: try again.
    #[error("the store cannot do this now: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A record is not what was written. Trying again does not help; `check` finds all that is damaged.
    #[error("the record {record} cannot be read: {what}")]
    Corrupt {
        /// Which one.
        record: String,
        /// What is wrong with it.
        what: String,
    },
    /// The connection to the database broke while it committed. The change may have been made. Ask again under the same
    /// idempotency key.
    #[error("the database went away during the commit, so the change may have been made or not")]
    Unknown,
    /// The store has stopped, and the server is about to.
    #[error("the store has stopped")]
    Stopped,
}

impl StoreError {
    /// The store may be available again in a moment.
    pub(crate) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }

    /// The same error, for another change of the same batch.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::Unavailable(cause) => Self::unavailable(cause.to_string()),
            Self::Corrupt { record, what } => Self::Corrupt { record: record.clone(), what: what.clone() },
            Self::Unknown => Self::Unknown,
            Self::Stopped => Self::Stopped,
        }
    }

    /// A record cannot be read.
    pub(crate) fn corrupt(record: &[u8], what: impl fmt::Display) -> Self {
        // The beginning of a key tells its kind; the rest of some is a hash.
        Self::Corrupt { record: String::from_utf8_lossy(record).escape_debug().to_string(), what: what.to_string() }
    }
}
