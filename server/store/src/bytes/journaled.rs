//! Bytes in a directory: the engine's journal and tree. One process, one cell.

use std::{borrow::Cow, fmt, ops::Range};

use async_trait::async_trait;
use journaled_tree::{CommitError, Database, Entries, Layout, TreeError};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task,
};

use super::{AtRest, Bytes, Cell, Decision, KeyValue, Table, View};
use crate::{Backups, StoreError};

/// The format of the keys and values. A store of another format is not opened.
const FORMAT: u32 = 1;

/// A read of this many values or more may wait for the disk.
const MANY: usize = 1_000;

/// Tells the engine about the keys.
pub struct KeysOfPlace;

impl Layout for KeysOfPlace {
    fn format(&self) -> u32 {
        FORMAT
    }

    fn compresses(&self, key: &[u8]) -> bool {
        Table::of(key) == Some(Table::Record)
    }

    /// A reader may see a part of a batch. So a record is written before the entry that names it and removed after it, and
    /// counts of entries come last.
    fn apply_order(&self, key: &[u8], is_put: bool) -> u8 {
        match (Table::of(key), is_put) {
            (Some(Table::Entry), false) => 0,
            (Some(Table::Record) | None, true) => 1,
            (Some(Table::Entry), true) => 2,
            (Some(Table::Hot), _) => 3,
            (Some(Table::Record) | None, false) => 4,
        }
    }
}

pub struct Journaled(pub Database);

#[async_trait]
impl Bytes for Journaled {
    fn packs(&self) -> bool {
        true
    }

    async fn get(&self, _cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        keys.iter().map(|key| Ok(self.0.get(key)?)).collect()
    }

    async fn range(
        &self,
        _cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        let keys = (std::ops::Bound::Included(keys.start), std::ops::Bound::Excluded(keys.end));
        let read = || first(self.0.scan(keys, is_reversed), at_most);
        if at_most < MANY { read() } else { elsewhere(read) }
    }

    async fn commit(&self, _cell: Cell, decision: Decision) -> Result<(), StoreError> {
        ended(self.0.commit(decide_by(decision)).await)
    }

    fn last_commit(&self) -> Option<u64> {
        Some(self.0.last_batch())
    }

    fn backups(&self) -> Option<Backups<'_>> {
        Some(Backups(&self.0))
    }
}

impl AtRest for Journaled {
    fn count(&self) -> Result<u64, StoreError> {
        Ok(self.0.count() as u64)
    }
}

impl Journaled {
    /// As [`commit`](Bytes::commit), but blocks this thread.
    pub fn commit_blocking(&self, decision: Decision) -> Result<(), StoreError> {
        ended(self.0.commit_blocking(decide_by(decision)))
    }
}

fn decide_by(mut decision: Decision) -> impl FnOnce(&mut journaled_tree::View<'_>) -> Result<(), Ended> + Send {
    move |view| match decision(&mut Changed(view)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Ended::Refused),
        Err(error) => Err(Ended::Failed(error)),
    }
}

fn ended(committed: Result<(), CommitError<Ended>>) -> Result<(), StoreError> {
    match committed {
        Ok(()) | Err(CommitError::Refused(Ended::Refused)) => Ok(()),
        Err(CommitError::Refused(Ended::Failed(error))) => Err(error),
        Err(CommitError::Stopped) => Err(StoreError::Stopped),
        Err(error) => Err(StoreError::unavailable(error.to_string())),
    }
}

/// The first `at_most` values of a scan, and an error for each damaged value among them.
fn first(scan: Entries, at_most: usize) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
    let mut found = Vec::new();
    let mut left = at_most;
    for entry in scan {
        match entry {
            Ok(entry) => {
                found.push(Ok(entry));
                left -= 1;
            }
            Err(error @ TreeError::Damaged { .. }) => found.push(Err(error.into())),
            Err(error) => return Err(error.into()),
        }
        if left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Runs a read that may wait for the disk. If the runtime has several threads, it moves the other tasks to another one
/// meanwhile. The read of a page is too quick for that: it would become a third slower.
fn elsewhere<T>(read: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(read),
        _ => read(),
    }
}

/// Why a decision's writes are dropped.
#[derive(Debug)]
enum Ended {
    Refused,
    Failed(StoreError),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("it was refused"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

struct Changed<'v, 'd>(&'v mut journaled_tree::View<'d>);

impl View for Changed<'_, '_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        self.0.get(key).map_err(StoreError::from)
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.put(key, value);
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.0.remove(key);
    }

    fn append(&mut self, key: Vec<u8>, more: &[u8]) -> Result<(), StoreError> {
        self.0.append(key, more).map_err(StoreError::from)
    }
}

impl From<TreeError> for StoreError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Damaged { key, what } => Self::Corrupt { record: key, what },
            error => Self::unavailable(error),
        }
    }
}
