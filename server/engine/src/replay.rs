//! Applies journal entries to a tree that nobody reads yet.

use crate::{
    error::TreeError,
    tree::Tree,
    writes::{APPLIED, Writes, bytes_of, set_number},
};

/// About how many bytes of entries are applied together.
const BYTES_AT_A_TIME: usize = 8 * 1024 * 1024;

/// Applies entries, many at a time: a key that most of them write is then written once.
pub(crate) struct Replay<'t> {
    tree: &'t Tree,
    writes: Writes,
    bytes: usize,
    last: u64,
}

impl<'t> Replay<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Self {
        Self { tree, writes: Writes::new(), bytes: 0, last: 0 }
    }

    /// Adds an entry of a later number than those before it.
    pub(crate) fn add(&mut self, number: u64, writes: Writes) -> Result<(), TreeError> {
        self.last = number;
        self.bytes += bytes_of(&writes);
        self.writes.extend(writes);
        if self.bytes > BYTES_AT_A_TIME { self.finish() } else { Ok(()) }
    }

    /// Applies what has been added, with the number of the last entry.
    pub(crate) fn finish(&mut self) -> Result<(), TreeError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        set_number(&mut self.writes, APPLIED, self.last);
        self.tree.apply(&std::mem::take(&mut self.writes))
    }
}
