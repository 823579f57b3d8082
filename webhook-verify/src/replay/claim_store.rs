//! The contract of a store of claims.

/// Where claims are kept. Each call is atomic. All times are in seconds since 1970, passed in by the guard; a claim counts
/// as long as now is before its end.
pub trait ClaimStore: Send + Sync {
    /// Why the place cannot answer.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Claims an id, unless someone has it.
    ///
    /// # Errors
    /// When the store cannot answer. Nothing is claimed then: refuse the request.
    fn claim(&self, id: &str, now_unix_seconds: u64, until_unix_seconds: u64) -> Result<Held, Self::Error>;

    /// Makes a claim final: the event is handled. A claim that ran out, and that nobody else has taken since, is made
    /// final too.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn commit(&self, id: &str, ticket: Ticket, until_unix_seconds: u64) -> Result<Committed, Self::Error>;

    /// Gives a claim back: the event was not handled. Does nothing if the claim is no longer `ticket`'s.
    ///
    /// # Errors
    /// When the store cannot answer; the claim then runs out by itself.
    fn release(&self, id: &str, ticket: Ticket) -> Result<(), Self::Error>;
}

/// Tells one claim of an id from a later one, so that whoever was too slow cannot end somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// Who has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The caller, since just now.
    ByYou(Ticket),
    /// Somebody who is at work.
    InProgress,
    /// Nobody needs it any more: it was handled.
    Done,
}

/// Whether a claim could be made final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// It is final.
    Finally,
    /// It had run out, and somebody else has taken or handled the event since.
    TooLate,
}
