//! Directories for copies of a running server's store. Other processes remove the copies of those that were killed.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf, absolute},
    process, thread,
    time::Duration,
};

use crate::store::embedded::OpenError;

/// Directory name of a copy: this prefix and the id of the process that reads it.
const PREFIX: &str = "copy-";
/// Before it is locked, the directory has this prefix.
const UNNAMED_PREFIX: &str = "new-copy-";
/// The file in the directory that its process has locked. A copy with a free lock is abandoned.
const LOCK: &str = "lock";
/// Maximum tries to remove a copy. If all fail, the next copy or the server's next start removes it.
const MAX_REMOVAL_ATTEMPTS: usize = 50;
/// How many tries must find no copy. A thread that is interrupted while it writes may create the directory again.
const ATTEMPTS_WITHOUT_COPY: usize = 5;

/// A directory for a copy of the store, removed on drop.
pub(super) struct StoreCopy {
    path: PathBuf,
    _lock: File,
}

impl StoreCopy {
    pub(super) fn create(data_directory: &Path) -> Result<Self, OpenError> {
        let make = || Self::make(&absolute(data_directory)?, process::id());
        make().map_err(|error| OpenError::unusable(error, data_directory))
    }

    /// The directory gets its name when it is locked, so that nobody takes it for an abandoned one before.
    fn make(data_directory: &Path, process: u32) -> io::Result<Self> {
        let unnamed = data_directory.join(format!("{UNNAMED_PREFIX}{process}"));
        // A process that was killed here may have had the same id.
        fs::create_dir_all(&unnamed)?;
        let lock = File::create(unnamed.join(LOCK))?;
        lock.lock()?;
        let path = data_directory.join(format!("{PREFIX}{process}"));
        fs::rename(unnamed, &path)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StoreCopy {
    fn drop(&mut self) {
        // Retry, because the server or a thread of this process may still be writing to it.
        let mut without_copy = 0;
        for _ in 0..MAX_REMOVAL_ATTEMPTS {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => without_copy += 1,
                _ => without_copy = 0,
            }
            if without_copy == ATTEMPTS_WITHOUT_COPY {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Removes the copies of processes that were killed.
pub fn remove_abandoned_copies(data_directory: &Path) -> Result<(), OpenError> {
    remove_abandoned_in(data_directory).map_err(|error| OpenError::unusable(error, data_directory))
}

fn remove_abandoned_in(data_directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(data_directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // Leave an operator's own backups alone.
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map(str::parse::<u32>);
        if !matches!(process, Some(Ok(_))) || !entry.file_type()?.is_dir() {
            continue;
        }
        let is_held = File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if !is_held {
            tracing::warn!(directory = %entry.path().display(), "removing an abandoned copy of the store");
            match fs::remove_dir_all(entry.path()) {
                // Somebody else removes it too, or the server still writes to it, and the next start or copy removes it.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
                outcome => outcome?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn copies_that_are_made_at_the_same_time_are_not_taken_for_abandoned_ones() {
        let data = tempfile::tempdir().unwrap();
        let ended = AtomicBool::new(false);
        thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        remove_abandoned_in(data.path()).unwrap();
                    }
                });
            }
            let makers: Vec<_> = (0..4)
                .map(|maker| {
                    let data = data.path();
                    threads.spawn(move || {
                        for number in 0..10 {
                            let copy = StoreCopy::make(data, 10 * maker + number).unwrap();
                            fs::write(copy.path().join("record"), "5 taka").unwrap();
                            thread::yield_now();
                            assert_eq!(fs::read(copy.path().join("record")).unwrap(), b"5 taka");
                        }
                    })
                })
                .collect();
            let outcomes: Vec<_> = makers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            ended.store(true, Ordering::Relaxed);
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        });
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_copy_of_a_killed_process_is_removed_and_other_directories_stay() {
        let data = tempfile::tempdir().unwrap();
        for name in ["copy-7/store", "copy-8", "copy-of-mine", "journal"] {
            fs::create_dir_all(data.path().join(name)).unwrap();
        }
        fs::write(data.path().join("copy-7").join(LOCK), "").unwrap();
        remove_abandoned_in(data.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["copy-of-mine", "journal"]);
        remove_abandoned_in(&data.path().join("missing")).unwrap();
    }

    #[test]
    fn an_abandoned_copy_to_which_the_server_still_writes_is_no_error() {
        let data = tempfile::tempdir().unwrap();
        let ended = AtomicBool::new(false);
        thread::scope(|threads| {
            for writer in 0..3 {
                let (backup, ended) = (data.path().join("copy-7").join("backup"), &ended);
                threads.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        let _ = fs::create_dir_all(&backup);
                        let _ = fs::write(backup.join(writer.to_string()), "");
                    }
                });
            }
            let outcomes: Vec<_> = (0..10_000).map(|_| remove_abandoned_in(data.path())).collect();
            ended.store(true, Ordering::Relaxed);
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        });
    }

    #[test]
    fn the_unnamed_directory_of_a_killed_process_with_the_same_id_is_taken_over() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("new-copy-7")).unwrap();
        let copy = StoreCopy::make(data.path(), 7).unwrap();
        assert_eq!(copy.path(), data.path().join("copy-7"));
        drop(copy);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
    }
}
