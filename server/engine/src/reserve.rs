//! Reserves room on the disk for the tree.
//!
//! The tree writes a batch some time after the batch was answered, and the engine cannot go on if that write fails. So the
//! engine accepts a batch only while there is reserved room for it.

use std::{io, sync::Arc};

use crate::tree::TreeFile;

/// How many bytes of room sled takes for each byte written to it.
const TAKEN_FOR_A_BYTE: u64 = 4;

/// The reserved room at the end of the tree's file. It grows with the bytes that wait for the tree, so a small store takes
/// little.
pub(crate) struct Reserve {
    file: Arc<TreeFile>,
    /// How much the tree needs even if nothing waits, because it may begin a segment.
    least: u64,
    /// The file's length when it was last read.
    length: u64,
    /// The offset up to which blocks are allocated.
    until: u64,
}

impl Reserve {
    pub(crate) fn new(file: Arc<TreeFile>, least: u64) -> Self {
        Self { file, least, length: 0, until: 0 }
    }

    /// Ensures that there is room for this many waiting bytes. Reserves room for twice as many.
    pub(crate) fn keep(&mut self, waiting: usize) -> io::Result<()> {
        let length = self.file.file.length()?;
        let is_shorter = std::mem::replace(&mut self.length, length) > length;
        let needed = self.least + TAKEN_FOR_A_BYTE * waiting as u64;
        if is_shorter || length + needed > self.until {
            self.file.file.allocate(length, 2 * needed)?;
            self.until = length + 2 * needed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::MetadataExt, path::Path};

    use super::*;
    use crate::{
        disk::{Disk, SystemDisk},
        tree,
    };

    const KIB: u64 = 1024;

    /// The reserve of a file, and the file.
    fn reserve_in(directory: &Path, least: u64) -> (Reserve, File) {
        let file = File::create(directory.join(tree::FILE)).unwrap();
        let disk: Arc<dyn Disk> = SystemDisk::shared();
        (Reserve::new(Arc::new(TreeFile::open(&disk, directory).unwrap()), least), file)
    }

    #[test]
    fn the_reserve_is_refilled_when_it_is_low_or_the_file_gets_shorter() {
        let directory = tempfile::tempdir().unwrap();
        let (mut reserve, file) = reserve_in(directory.path(), 512 * KIB);
        for (length, waiting, until) in [
            (0, 0, 1024),
            // Enough room is left.
            (512, 0, 1024),
            (516, 0, 516 + 1024),
            (1200, 0, 1200 + 1024),
            // More bytes wait.
            (1200, 128, 1200 + 1024),
            (1200, 192, 1200 + 2 * (512 + 4 * 192)),
            // The file got shorter, and the blocks behind its end are gone.
            (100, 0, 100 + 1024),
        ] {
            file.set_len(length * KIB).unwrap();
            let (before, was_until) = (file.metadata().unwrap().blocks(), reserve.until);
            reserve.keep(waiting * 1024).unwrap();
            let after = file.metadata().unwrap().blocks();
            assert_eq!(reserve.until, until * KIB, "at {length} KiB with {waiting}");
            assert_eq!(after > before, reserve.until != was_until, "at {length} KiB: {before} and then {after} blocks");
        }
    }
}
