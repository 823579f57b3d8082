//! Where bytes are kept: ordered keys and values, in cells.
//!
//! A cell is one order of commits, with all bytes that it orders. A place knows nothing of what the bytes mean: the
//! [layout](super::layout) says which key holds what, and is the same in every place.
//!
//! A key begins with the three letters of its home: the slot whose value it is, or [`CELL`] for what a cell has of all its
//! slots. The character behind them says what kind of value it is: a [`Table`].

mod journaled;
#[cfg(any(test, feature = "testing"))]
mod memory;
pub mod postgres;

use std::{
    borrow::Cow,
    ops::Range,
    pin::pin,
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use payments_core::Slot;

pub use self::journaled::{Journaled, KeysOfPlace};
#[cfg(any(test, feature = "testing"))]
pub use self::memory::Memory;
use super::{backups::Backups, error::StoreError, request_counts::RequestCounts};

/// The home of a cell's own entries, which stand behind those of all slots.
pub const CELL: &[u8; 3] = b"all";

/// One order of commits in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u16);

/// A commit's place in the order of its cell, and whose it is: after a failover another commit may have the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub number: i64,
    pub tag: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Text that others follow from.
    Record,
    /// What follows from records.
    Entry,
    /// What follows from records and changes with most commits of a scope. A place may keep it in its own way.
    Hot,
}

impl Table {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 3] = [Self::Hot, Self::Record, Self::Entry];

    /// The character behind the home.
    pub const fn mark(self) -> u8 {
        match self {
            Self::Record => b'/',
            Self::Entry => b':',
            Self::Hot => b'*',
        }
    }

    /// The table of a key; `None` if it is no key of a layout.
    pub fn of(key: &[u8]) -> Option<Self> {
        let mark = key.get(CELL.len())?;
        Self::ALL.into_iter().find(|table| table.mark() == *mark)
    }
}

pub type KeyValue = (Vec<u8>, Vec<u8>);

/// What a commit decides by, and writes into: the values as all commits before it leave them.
pub trait View {
    /// # Errors
    /// If the place has not fetched it yet, or cannot read it.
    fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError>;
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>);
    fn remove(&mut self, key: Vec<u8>);
    /// Adds to the end of a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn append(&mut self, key: Vec<u8>, more: &[u8]) -> Result<(), StoreError> {
        let mut value = self.get(&key)?.map(Cow::into_owned).unwrap_or_default();
        value.extend_from_slice(more);
        self.put(key, value);
        Ok(())
    }
}

/// Decides by a view of a cell, and writes into it. Returns whether what it wrote is to be committed. It reads named keys alone,
/// has no other effect, and may run again: a place may first run it over values that it does not know and takes for absent, to learn
/// what it reads. The last run counts.
pub type Decision = Box<dyn FnMut(&mut dyn View) -> Result<bool, StoreError> + Send>;

#[async_trait]
pub trait Bytes: Send + Sync + 'static {
    /// All cells: one, in one process.
    fn cells(&self) -> Result<Vec<Cell>, StoreError> {
        Ok(vec![Cell(0)])
    }
    fn cell_of(&self, _slot: Slot) -> Cell {
        Cell(0)
    }
    /// Whether a key that many commits of the same moment share costs less than a key for each.
    fn packs(&self) -> bool;

    /// The values under keys of a cell, in the order of the keys. They need not be of one moment.
    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// At most `at_most` values whose keys are in a range, in the order of the keys or reversed, and between them what is wrong
    /// with those that cannot be read. They need not be of one moment; a key that was there before and is not removed meanwhile
    /// is not missed.
    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError>;

    /// Decides and commits. When it returns, what was decided is durable as a whole, or nothing was written.
    async fn commit(&self, cell: Cell, decision: Decision) -> Result<(), StoreError>;

    /// As [`commit`](Self::commit), but it need not be durable when it returns: a crash may take it.
    async fn commit_unsynced(&self, cell: Cell, decision: Decision) -> Result<(), StoreError> {
        self.commit(cell, decision).await
    }

    /// The number of the last commit, if no other process commits here. While it stays the same, so do all values.
    fn last_commit(&self) -> Option<u64> {
        None
    }

    /// The newest commit of a cell, if others commit there and asking costs less than a look at values. It may be one of a moment
    /// ago, but no older one than the last of this process.
    async fn newest(&self, _cell: Cell) -> Result<Option<Batch>, StoreError> {
        Ok(None)
    }

    /// The backups that the place makes, if it does.
    fn backups(&self) -> Option<Backups<'_>> {
        None
    }

    /// Fails if the place can be read and cannot do its work all the same, because it is denied a privilege.
    async fn prove_readiness(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The counts of requests that all servers on the place share, if it may have several servers.
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        None
    }
}

/// A place as of one moment. Its methods block: they are called on a thread that runs no tasks.
pub trait AtRest: Bytes {
    fn count(&self) -> Result<u64, StoreError>;
    /// The outcome of a read.
    fn wait<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        now(read)
    }
}

/// The outcome of a read on this machine, which never waits.
pub fn now<T>(read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match pin!(read).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => Err(StoreError::unavailable("a read of a place on this machine waits")),
    }
}

pub fn with_prefix(prefix: &[u8]) -> Range<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    prefix.to_vec()..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_character_behind_the_home_tells_the_table() {
        assert!(Table::ALL.is_sorted_by_key(|table| table.mark()));
        for table in Table::ALL {
            assert_eq!(Table::of(format!("3ff{}rest", char::from(table.mark())).as_bytes()), Some(table));
        }
        for other in ["", "all", "meta/applied"] {
            assert_eq!(Table::of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_keys_with_a_prefix_are_those_that_begin_with_it() {
        let range = with_prefix(b"a\xff");
        for (key, is_in) in [(&b"a\xff"[..], true), (b"a\xff\xff\xff", true), (b"b", false), (b"a\xfe", false)] {
            assert_eq!(range.contains(&key.to_vec()), is_in, "{}", key.escape_ascii());
        }
    }
}
