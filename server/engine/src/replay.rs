//! Applies journal entries to a tree that has no readers yet.

use crate::{
    error::TreeError,
    tree::Tree,
    writes::{APPLIED, Writes, bytes_of, set_number},
};

/// About how many bytes of entries are applied together.
const BYTES_AT_A_TIME: usize = 8 * 1024 * 1024;

/// Applies many entries together, so that a key that many entries write is written once.
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

    /// Adds an entry. Its number must be larger than those before it.
    pub(crate) fn add(&mut self, number: u64, writes: Writes) -> Result<(), TreeError> {
        self.last = number;
        self.bytes += bytes_of(&writes);
        self.writes.extend(writes);
        if self.bytes > BYTES_AT_A_TIME { self.finish() } else { Ok(()) }
    }

    /// Applies the added entries, and the number of the last one.
    pub(crate) fn finish(&mut self) -> Result<(), TreeError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        set_number(&mut self.writes, APPLIED, self.last);
        self.tree.apply(&std::mem::take(&mut self.writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{disk::SystemDisk, layout::tests::Plain};

    #[test]
    fn entries_are_applied_together_once_they_exceed_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree::open(&SystemDisk, &directory.path().join("tree"), &Plain::shared()).unwrap();
        let mut replay = Replay::new(&tree);
        let mut add = |number, key: &[u8; 2], bytes| {
            replay.add(number, Writes::from([(key.to_vec(), Some(vec![0; bytes]))])).unwrap();
            tree.number::<u64>(APPLIED).unwrap()
        };
        assert_eq!(add(1, b"aa", BYTES_AT_A_TIME / 2 - 2), 0);
        assert_eq!(add(2, b"bb", BYTES_AT_A_TIME / 2 - 2), 0);
        assert_eq!(add(3, b"cc", 0), 3);
        assert_eq!(add(4, b"dd", BYTES_AT_A_TIME / 2), 3);
        replay.finish().unwrap();
        assert_eq!(tree.number::<u64>(APPLIED).unwrap(), 4);
        assert_eq!(tree.store.len(), 5);
    }
}
