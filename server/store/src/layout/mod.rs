//! The layout of the store: which key holds what, over bytes in any place.
//!
//! **A record** is text under a named key: a payment, an event, a delivery, an endpoint … **An entry** follows from records: an
//! item of a list, a bit, a count, a time at which something is due. [`entry`] says how: one function for each kind of record. A
//! commit applies the difference, `check` compares, a migration builds entries again.
//!
//! [`change`] turns the writes of a change into records, through a [`draft`](draft::Draft). [`store`] reads them.

mod audit;
mod bits;
mod booking;
mod books;
mod change;
mod check;
mod claims;
mod codec;
mod coverage;
mod delivery;
mod draft;
mod entry;
mod erasure;
mod event;
mod funds;
mod head;
mod idempotency;
mod key_cache;
mod keys;
mod kinds;
mod limits;
mod list;
mod lists;
mod looks;
mod merchant_reads;
mod merchants;
mod moving;
mod payment;
mod payment_list;
mod payout;
mod payouts;
mod prune;
mod reads;
mod records;
mod settlements;
mod snapshot;
mod store;
mod work;

use std::{ops::Deref, sync::Arc};

use parking_lot::Mutex;
use payments_core::Slot;

pub use self::{
    claims::Claims,
    payouts::NextStatement,
    snapshot::{Checked, Finding, Snapshot},
};
use self::{draft::Draft, key_cache::KeyCache, looks::Looks, reads::Reads};
use super::{
    CommitError, Conflict, StoreError,
    bytes::{Bytes, Cell, Decision, Table, View},
};
#[cfg(any(test, feature = "testing"))]
use crate::bytes::Memory;
use crate::domain::Scope;

/// The server's records and waiting work.
pub struct Store {
    bytes: Arc<dyn Bytes>,
    claims: Claims,
    looks: Looks,
    keys: KeyCache,
}

impl Store {
    pub fn new(bytes: Arc<dyn Bytes>, claims: Claims) -> Self {
        Self { bytes, claims, looks: Looks::default(), keys: KeyCache::default() }
    }

    fn of(&self, slot: Slot) -> Reads<'_> {
        self.in_cell(self.bytes.cell_of(slot))
    }

    fn of_scope(&self, scope: &Scope) -> Reads<'_> {
        self.of(scope.developer_id.slot())
    }

    fn cells(&self) -> Result<impl Iterator<Item = Reads<'_>>, StoreError> {
        Ok(self.bytes.cells()?.into_iter().map(|cell| self.in_cell(cell)))
    }

    fn in_cell(&self, cell: Cell) -> Reads<'_> {
        Reads::new(&*self.bytes, cell)
    }

    /// Commits all writes of `decide`, or none if it refuses. `decide` may run again. A crash may undo a commit that is not
    /// synced.
    async fn decide<T: Send + 'static>(
        &self,
        cell: Cell,
        is_synced: bool,
        decide: impl Fn(&mut Draft<'_>) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (decision, outcome) = decision(self.bytes.packs(), decide);
        if is_synced {
            self.bytes.commit(cell, decision).await?;
        } else {
            self.bytes.commit_unsynced(cell, decision).await?;
        }
        outcome_of(&outcome)
    }
}

pub struct Placed<B> {
    store: Arc<Store>,
    pub bytes: Arc<B>,
}

impl<B: Bytes> Placed<B> {
    pub fn new(bytes: B, claims: Claims) -> Self {
        let bytes = Arc::new(bytes);
        Self { store: Arc::new(Store::new(Arc::clone(&bytes) as _, claims)), bytes }
    }

    /// The store. The place stays open while anybody has the store.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// The store without the place.
    pub fn into_store(self) -> Arc<Store> {
        self.store
    }

    /// Whether anybody else has the store.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.store) > 1
    }
}

impl<B> Deref for Placed<B> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The outcome of a decision, once it has run.
type Outcome<T> = Arc<Mutex<Option<Result<T, Conflict>>>>;

/// A decision over a view, and where it leaves its outcome.
fn decision<T: Send + 'static>(
    packs: bool,
    decide: impl Fn(&mut Draft<'_>) -> Result<T, CommitError> + Send + 'static,
) -> (Decision, Outcome<T>) {
    let outcome = Outcome::default();
    let decided = Arc::clone(&outcome);
    let decision = move |view: &mut dyn View| {
        let mut draft = Draft::new(view, packs);
        let outcome = match decide(&mut draft) {
            Ok(outcome) => {
                draft.finish();
                Ok(outcome)
            }
            Err(CommitError::Conflict(conflict)) => Err(conflict),
            Err(CommitError::Store(error)) => return Err(error),
        };
        let is_accepted = outcome.is_ok();
        *decided.lock() = Some(outcome);
        Ok(is_accepted)
    };
    (Box::new(decision), outcome)
}

fn outcome_of<T>(outcome: &Outcome<T>) -> Result<T, CommitError> {
    let outcome = outcome.lock().take();
    Ok(outcome.ok_or(StoreError::Stopped)??)
}

/// The error of a change without conditions.
fn store_error(error: CommitError) -> StoreError {
    match error {
        CommitError::Store(error) => error,
        CommitError::Conflict(conflict) => StoreError::unavailable(conflict),
    }
}

/// Whether a key belongs to the layout, not to the state of its place.
pub fn is_value(key: &[u8]) -> bool {
    keys::kind_of(key).is_some()
}

/// The kind of record under a key; `None` if it is no key of a record.
pub fn record_kind(key: &[u8]) -> Option<&str> {
    keys::kind_of(key).filter(|(table, _)| *table == Table::Record).map(|(_, kind)| kind)
}

/// A key for people: the kind of a record and the rest of its key, or any other key as a whole. Bytes that are not text are
/// escaped.
pub fn name_of(key: &[u8]) -> String {
    match record_kind(key) {
        Some(kind) => {
            let behind = &key[key.len().min(keys::records_of(Slot::FIRST, kind).len())..];
            format!("the {} {}", kind.replace('-', " "), behind.escape_ascii())
        }
        None => key.escape_ascii().to_string(),
    }
}

/// Whether a key is that of a payment's record.
pub fn is_payment(key: &[u8]) -> bool {
    keys::kind_of(key) == Some((Table::Record, "payment"))
}

/// A store in memory, which forgets everything when it is dropped.
#[cfg(any(test, feature = "testing"))]
pub type MemoryStore = Placed<Memory>;

#[cfg(any(test, feature = "testing"))]
impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Memory::default(), Claims::Stored(Arc::default()))
    }
}

#[cfg(any(test, feature = "testing"))]
impl MemoryStore {
    /// Loses the record of a pending delivery, as a damaged store does.
    pub fn lose_delivery(&self, id: &payments_core::DeliveryId) {
        self.bytes.lose(&keys::delivery(id));
    }

    /// Makes the next `commits` commits fail, as on a full disk.
    pub fn fail_commits(&self, commits: u32) {
        self.bytes.fail_commits(commits);
    }
}
