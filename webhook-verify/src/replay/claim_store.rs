//! The trait of a claim store.

/// Stores claims. Each call is atomic. The guard passes all times, in Unix seconds; a claim is valid while `now` is
/// before its `until`.
pub trait ClaimStore: Send + Sync {
    /// Why the store failed.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Claims an id, unless it has a valid claim.
    ///
    /// # Errors
    /// If the store fails. The guard then rejects the request.
    fn claim(&self, id: &str, now_unix_seconds: u64, until_unix_seconds: u64) -> Result<Held, Self::Error>;

    /// Commits a claim, because the event is handled. Also commits an expired claim if nobody has claimed the id since.
    ///
    /// # Errors
    /// If the store fails.
    fn commit(&self, id: &str, ticket: Ticket, until_unix_seconds: u64) -> Result<Committed, Self::Error>;

    /// Releases a claim, because the event was not handled. Does nothing if the id has another ticket by now.
    ///
    /// # Errors
    /// If the store fails. The claim then expires.
    fn release(&self, id: &str, ticket: Ticket) -> Result<(), Self::Error>;
}

/// A fencing token: identifies one claim of an id, so that a slow handler cannot commit or release a later claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// The result of [`ClaimStore::claim`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The caller now holds the claim.
    ByYou(Ticket),
    /// Another caller holds the claim.
    InProgress,
    /// The event was handled.
    Done,
}

/// The result of [`ClaimStore::commit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// The claim is committed.
    Finally,
    /// The claim had expired, and another caller has claimed or handled the event since.
    TooLate,
}
