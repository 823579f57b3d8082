//! The lock of a database's directory: only one process has it open.

use std::path::Path;

use crate::{
    disk::{self, DiskFile, Open},
    error::OpenError,
    platform::Platform,
};

/// The lock file of an open database. Its text is the process id.
const FILE: &str = "lock";

/// The lock of a directory. Dropping it releases the lock.
pub(crate) struct Lock(Box<dyn DiskFile>);

impl Lock {
    pub(crate) fn take(disk: &dyn Platform, directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(FILE);
        let file = disk.open(&path, Open::Create)?;
        if !file.try_lock()? {
            let process = String::from_utf8_lossy(&disk::read(disk, &path).unwrap_or_default()).into_owned();
            return Err(OpenError::InUse { directory: directory.to_owned(), process });
        }
        file.set_length(0)?;
        file.write_all_at(disk.process_id().to_string().as_bytes(), 0)?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the lock of the directory is released only when its file is closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::disk::{Disk, SystemDisk};

    #[test]
    fn a_lock_ends_even_if_a_new_child_process_has_a_copy_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let file = File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let file = SystemDisk.open(&path, Open::Write).unwrap();
        assert!(file.try_lock().unwrap());
        let lock = Lock(file);
        assert!(File::open(&path).unwrap().try_lock().is_err());
        drop(lock);
        File::open(&path).unwrap().try_lock().unwrap();
        drop(copy);
    }
}
