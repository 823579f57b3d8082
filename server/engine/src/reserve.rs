//! Room on the disk that is the tree's alone.
//!
//! The tree writes a batch some time after the batch was answered, and cannot go on if that write fails. So the engine takes a
//! batch only while the disk has reserved room for it.

use std::{io, sync::Arc};

use crate::tree::TreeFile;

/// How much of the disk is kept unless given.
pub(crate) const RESERVE_BYTES: u64 = 128 * 1024 * 1024;

/// The room at the end of the tree's file.
pub(crate) struct Reserve {
    file: Arc<TreeFile>,
    bytes: u64,
    /// The file's length at the last look.
    length: u64,
    /// The offset up to which blocks are allocated.
    until: u64,
}

impl Reserve {
    pub(crate) fn new(file: Arc<TreeFile>, bytes: u64) -> Self {
        Self { file, bytes, length: 0, until: 0 }
    }

    /// Makes sure that at least half of the reserve is left.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        if planted!(NoReserve) {
            return Ok(());
        }
        let length = self.file.file.length()?;
        let is_shorter = std::mem::replace(&mut self.length, length) > length;
        if is_shorter || length + self.bytes / 2 > self.until {
            self.file.file.allocate(length, self.bytes)?;
            self.until = length + self.bytes;
        }
        Ok(())
    }
}
