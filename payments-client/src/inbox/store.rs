//! Where an inbox keeps its cursor.

use payments_core::{Environment, WorkspaceId};

use super::BoxError;

/// One inbox of a shop: its row in the shop's database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct InboxId {
    /// The inbox's name.
    pub name: String,
    /// The workspace of the API key.
    pub workspace: WorkspaceId,
    /// The environment of the API key.
    pub environment: Environment,
}

/// The row of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where the inbox stands. Opaque to a store.
    pub cursor: String,
    /// How many times in a row the next event has failed.
    pub failures: u32,
    /// Why it failed last.
    pub error: Option<String>,
}

/// A database with transactions, which holds one row for each [`InboxId`]. The crate `payments-inbox-sqlx` has those for SQLite
/// and PostgreSQL.
pub trait Store: Send + Sync {
    /// A transaction. The handler writes in it. Dropping it rolls it back.
    type Tx: Send;

    /// Creates the tables if they are missing. Returns false if a later version made them.
    ///
    /// # Errors
    /// If the database fails.
    fn prepare(&self) -> impl Future<Output = Result<bool, BoxError>> + Send;

    /// The inbox's row, if there is one.
    ///
    /// # Errors
    /// If the database fails.
    fn read(&self, inbox: &InboxId) -> impl Future<Output = Result<Option<Row>, BoxError>> + Send;

    /// Inserts the inbox's row without failures. An existing one stays.
    ///
    /// # Errors
    /// If the database fails.
    fn insert(&self, inbox: &InboxId, cursor: &str) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Begins a transaction, and in it sets the cursor from `from` to `to` and the failures to none. This locks the row until
    /// the transaction ends. `None`, and no transaction, if the cursor is another one.
    ///
    /// # Errors
    /// If the database fails.
    fn begin(
        &self,
        inbox: &InboxId,
        from: &str,
        to: &str,
    ) -> impl Future<Output = Result<Option<Self::Tx>, BoxError>> + Send;

    /// Commits, if the transaction is still the one that [`begin`](Self::begin) began: it sees the cursor `to`.
    ///
    /// # Errors
    /// If the database fails, or the handler has ended or broken the transaction.
    fn commit(&self, tx: Self::Tx, inbox: &InboxId, to: &str) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Rolls a transaction back.
    ///
    /// # Errors
    /// If the database fails.
    fn roll_back(&self, tx: Self::Tx) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Counts a failure of the event after `cursor`, if the inbox still stands there.
    ///
    /// # Errors
    /// If the database fails.
    fn fail(&self, inbox: &InboxId, cursor: &str, error: &str) -> impl Future<Output = Result<(), BoxError>> + Send;
}
