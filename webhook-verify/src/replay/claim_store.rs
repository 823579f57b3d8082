//! The trait of a claim store.

use core::future::Future;

/// Stores claims. Each call is atomic. The guard passes all times, in Unix seconds; a claim is valid while `now` is
/// before its `until`.
///
/// A store in the database that holds your orders makes claims in your transactions:
///
/// ```
/// # struct Database; struct Transaction; #[derive(Debug, thiserror::Error)] #[error("no rows")] struct DatabaseError;
/// # impl Transaction { async fn execute(&mut self, sql: &str) -> Result<u64, DatabaseError> { Ok(1) } }
/// use webhook_verify::replay::{ClaimStore, Committed, Held, Ticket};
///
/// /// The rows of a table `claims`. A second claim waits until the first one's transaction ends.
/// struct Claims;
///
/// impl ClaimStore for Claims {
///     type Error = DatabaseError;
///     type Tx = Transaction;
///
///     async fn claim(&self, tx: &mut Transaction, id: &str, now: u64, until: u64) -> Result<Held, DatabaseError> {
///         let insert = "INSERT INTO claims (id) VALUES ($1) ON CONFLICT DO NOTHING"; // bind `id`
///         Ok(if tx.execute(insert).await? == 1 { Held::ByYou(Ticket(0)) } else { Held::Done })
///     }
///
///     async fn commit(&self, _: &mut Transaction, _: &str, _: Ticket, _: u64) -> Result<Committed, DatabaseError> {
///         Ok(Committed::Finally) // The transaction commits it.
///     }
/// }
/// ```
pub trait ClaimStore: Send + Sync {
    /// Why the store failed.
    type Error: core::error::Error + Send + Sync + 'static;

    /// The caller's transaction in which claims are made; `()` if the store has none.
    type Tx: Send;

    /// Claims an id, unless it has a valid claim.
    ///
    /// # Errors
    /// If the store fails. The guard then rejects the request.
    fn claim(
        &self,
        tx: &mut Self::Tx,
        id: &str,
        now_unix_seconds: u64,
        until_unix_seconds: u64,
    ) -> impl Future<Output = Result<Held, Self::Error>> + Send;

    /// Commits a claim, because the event is handled. Also commits an expired claim if nobody has claimed the id since.
    ///
    /// # Errors
    /// If the store fails.
    fn commit(
        &self,
        tx: &mut Self::Tx,
        id: &str,
        ticket: Ticket,
        until_unix_seconds: u64,
    ) -> impl Future<Output = Result<Committed, Self::Error>> + Send;

    /// Releases a claim, because the event was not handled. Does nothing if the id has another ticket by now. The default does
    /// nothing: a claim in a transaction ends with its rollback, any other one expires.
    fn release(&self, _id: &str, _ticket: Ticket) {}
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
