//! Why an inbox stops.

use payments_core::EventId;

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an inbox could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// A request to the API failed.
    #[error(transparent)]
    Api(#[from] crate::Error),
    /// The database failed. Nothing is half applied.
    #[error("the inbox's database failed: {0}")]
    Store(#[source] BoxError),
    /// The handler failed, or broke its transaction, which was rolled back. The inbox stays before this event.
    #[error("event {event} was not applied: {source}")]
    Event {
        /// The event.
        event: EventId,
        /// The handler's error.
        source: BoxError,
    },
    /// The API does not know the live inbox's cursor.
    #[error(
        "the API does not know the inbox's cursor {cursor} ({source}); check that the database belongs to this API key and \
         server, then choose where to go on with `Inbox::restart`"
    )]
    CursorLost {
        /// The cursor.
        cursor: String,
        /// The API's answer.
        source: crate::Error,
    },
    /// A later version made the database's tables.
    #[error("a later version made the inbox's tables; update the program")]
    TooNew,
    /// The cursor in the database is none of this version's.
    #[error("the inbox's cursor in the database, {0:?}, is not one of this version; update the program")]
    CursorInvalid(String),
}

impl InboxError {
    /// Whether the next try may succeed without a person. `run` ends at other errors.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Api(error) => error.is_retryable(),
            Self::Store(_) | Self::Event { .. } => true,
            Self::CursorLost { .. } | Self::TooNew | Self::CursorInvalid(_) => false,
        }
    }
}
