//! Places for bytes: ordered keys and values, in cells.
//!
//! A place is a directory, a database or memory. A cell is a part of it with one order of commits. A place does not
//! know what the bytes mean: the [layout](super::layout) says which key holds what, and is the same in every place.
//!
//! A key begins with three characters, its home: the slot of its value, or [`CELL`] for values about all slots of a cell. The
//! next character names the [`Table`] of the value.

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

/// The home of a cell's own entries, which sort after those of all slots.
pub const CELL: &[u8; 3] = b"all";

/// One order of commits in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u16);

/// A commit's number in the order of its cell, and its tag: after a failover, another commit may have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub number: i64,
    pub tag: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Text from which entries follow.
    Record,
    /// A value that follows from records.
    Entry,
    /// An entry that most commits of a scope change. A place may store it in its own way.
    Hot,
}

impl Table {
    /// All tables, in the order of their keys.
    pub const ALL: [Self; 3] = [Self::Hot, Self::Record, Self::Entry];

    /// The character after the home in a key.
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

/// What a decision reads and writes: the values as all earlier commits leave them.
pub trait View {
    /// # Errors
    /// If the place has not fetched the value yet, or cannot read it.
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

/// Reads a view of a cell, writes into it, and returns whether to commit these writes. It reads only named keys, has no other
/// effect, and may run again: a place may first run it as if unknown values were absent, to learn which keys it reads. The
/// last run counts.
pub type Decision = Box<dyn FnMut(&mut dyn View) -> Result<bool, StoreError> + Send>;

#[async_trait]
pub trait Bytes: Send + Sync + 'static {
    /// All cells. A place of one process has one.
    fn cells(&self) -> Result<Vec<Cell>, StoreError> {
        Ok(vec![Cell(0)])
    }
    fn cell_of(&self, _slot: Slot) -> Cell {
        Cell(0)
    }
    /// Whether one key that many commits of a moment share costs less than a key for each commit.
    fn packs(&self) -> bool;

    /// The values under keys of a cell, in the order of `keys`. They may be of different moments.
    async fn get(&self, cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// At most `at_most` values whose keys are in a range, in the order of the keys or reversed, with an error for each
    /// unreadable value among them. They may be of different moments, but no key is missed that is there all the time.
    async fn range(
        &self,
        cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError>;

    /// Decides and commits. When this returns `Ok`, all writes of the decision are durable, or it refused and nothing was
    /// written.
    async fn commit(&self, cell: Cell, decision: Decision) -> Result<(), StoreError>;

    /// As [`commit`](Self::commit), but a crash may still undo the commit after this returns.
    async fn commit_unsynced(&self, cell: Cell, decision: Decision) -> Result<(), StoreError> {
        self.commit(cell, decision).await
    }

    /// The number of the last commit, if no other process commits here. While it stays the same, so do all values.
    fn last_commit(&self) -> Option<u64> {
        None
    }

    /// The newest commit of a cell, if other processes commit there and this read costs less than reading values. The answer
    /// may be a moment old, but never older than this process's last commit.
    async fn newest(&self, _cell: Cell) -> Result<Option<Batch>, StoreError> {
        Ok(None)
    }

    /// The place's backups, if it makes any.
    fn backups(&self) -> Option<Backups<'_>> {
        None
    }

    /// Fails if the place is readable but lacks a privilege that its work needs.
    async fn prove_readiness(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The counts of requests that all servers on the place share, if it may have several servers.
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        None
    }
}

/// A place as of one moment. Its methods block: call them on a thread that runs no tasks.
pub trait AtRest: Bytes {
    fn count(&self) -> Result<u64, StoreError>;
    /// Runs a read to its end.
    fn wait<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        now(read)
    }
}

/// Runs a read on this machine, which never waits.
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
    fn the_character_after_the_home_names_the_table() {
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
