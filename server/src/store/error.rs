//! Why a store did not do what it was asked, in words that say what to do next.

use std::{fmt, time::Duration};

use super::Conflict;

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
    #[error("the store cannot do this now: {source}")]
    Unavailable {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// When it is worth another try.
        retry_after: Duration,
    },
    /// A record is not what was written. Trying again does not help; `check` finds all that is damaged.
    #[error("the record {record} cannot be read: {what}")]
    Corrupt {
        /// Which one.
        record: String,
        /// What is wrong with it.
        what: String,
    },
    /// The store has stopped, and the server is about to.
    #[error("the store has stopped")]
    Stopped,
}

impl StoreError {
    /// The store may be available again in a moment.
    pub(crate) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { source: source.into(), retry_after: Duration::from_secs(1) }
    }

    /// When it is worth another try.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            Self::Corrupt { .. } | Self::Stopped => Duration::from_secs(1),
        }
    }

    /// A record cannot be read.
    pub(crate) fn corrupt(record: &[u8], what: impl fmt::Display) -> Self {
        // The beginning of a key tells its kind; the rest of some is a hash.
        Self::Corrupt { record: String::from_utf8_lossy(record).escape_debug().to_string(), what: what.to_string() }
    }
}
