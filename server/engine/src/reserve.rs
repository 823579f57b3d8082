//! Room on the disk that is the tree's alone.
//!
//! The tree writes a batch some time after the batch was answered, and cannot go on if that write fails. So the engine takes a
//! batch only while the disk has reserved room for it.

use std::{io, sync::Arc};

use crate::tree::TreeFile;

/// How much room sled takes for a byte that it is given.
const TAKEN_FOR_A_BYTE: u64 = 4;

/// The room at the end of the tree's file. It grows with what waits for the tree, so that a small store takes little.
pub(crate) struct Reserve {
    file: Arc<TreeFile>,
    /// What the tree needs if nothing waits for it: it may begin a segment.
    least: u64,
    /// The file's length at the last look.
    length: u64,
    /// The offset up to which blocks are allocated.
    until: u64,
}

impl Reserve {
    pub(crate) fn new(file: Arc<TreeFile>, least: u64) -> Self {
        Self { file, least, length: 0, until: 0 }
    }

    /// Makes sure that there is room for this many bytes that the tree does not have yet. Takes room for twice as many.
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
    fn the_reserve_is_made_up_when_too_little_is_left_and_when_the_file_has_become_shorter() {
        let directory = tempfile::tempdir().unwrap();
        let (mut reserve, file) = reserve_in(directory.path(), 512 * KIB);
        for (length, waiting, until) in [
            (0, 0, 1024),
            // Enough is left.
            (512, 0, 1024),
            (516, 0, 516 + 1024),
            (1200, 0, 1200 + 1024),
            // More waits.
            (1200, 128, 1200 + 1024),
            (1200, 192, 1200 + 2 * (512 + 4 * 192)),
            // The blocks behind the end went with it.
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
