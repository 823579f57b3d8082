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
        let length = self.file.file.length()?;
        let is_shorter = std::mem::replace(&mut self.length, length) > length;
        if is_shorter || length + self.bytes / 2 > self.until {
            self.file.file.allocate(length, self.bytes)?;
            self.until = length + self.bytes;
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
    fn reserve_in(directory: &Path, bytes: u64) -> (Reserve, File) {
        let file = File::create(directory.join(tree::FILE)).unwrap();
        let disk: Arc<dyn Disk> = SystemDisk::shared();
        (Reserve::new(Arc::new(TreeFile::open(&disk, directory).unwrap()), bytes), file)
    }

    #[test]
    fn the_reserve_is_made_up_when_less_than_half_is_left_and_when_the_file_has_become_shorter() {
        let directory = tempfile::tempdir().unwrap();
        let (mut reserve, file) = reserve_in(directory.path(), 1024 * KIB);
        for (length, until) in [
            (0, 1024),
            // Half is left.
            (512, 1024),
            (516, 516 + 1024),
            (1200, 1200 + 1024),
            // The blocks behind the end went with it.
            (100, 100 + 1024),
        ] {
            file.set_len(length * KIB).unwrap();
            let before = file.metadata().unwrap().blocks();
            reserve.keep().unwrap();
            let after = file.metadata().unwrap().blocks();
            assert_eq!(reserve.until, until * KIB, "at {length} KiB");
            assert_eq!(after > before, !matches!(length, 512), "at {length} KiB: {before} and then {after} blocks");
        }
    }
}
