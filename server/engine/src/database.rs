//! An open database.

use std::{
    borrow::Cow,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread,
};

use crate::{
    backup::{BackedUp, Copier},
    error::{BackupError, CommitError, JournalError, TreeError},
    group_commit::GroupCommit,
    journal,
    overlay::Overlay,
    read::{Entries, KeyRange, Read},
    stop::Stop,
    tree,
    view::View,
};

/// A database that this process has open. It is closed by dropping it, and then [`Closing::wait`].
pub struct Database {
    pub(crate) overlay: Overlay,
    pub(crate) copier: Copier,
    /// The last field, so that it is dropped last: when its thread ends, everything else is closed.
    pub(crate) group_commit: GroupCommit,
}

impl Database {
    /// Commits a change: runs `decide`, and makes what it writes durable as a whole before it returns `Ok`. Changes run one
    /// at a time, each sees all before it, and those that wait share one sync.
    ///
    /// `decide` runs on another thread, or on this one where nothing else is committed. It must not block, nor commit. A
    /// panic in it stops the engine. Once this was polled the change may be made, even if the future is dropped then.
    ///
    /// # Errors
    /// [`CommitError::Refused`] with what `decide` returned; [`CommitError::NotWritten`] where it may be tried again; both
    /// have no effect. After [`CommitError::Stopped`] only the next opening knows whether it has.
    pub async fn commit<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        self.group_commit.commit(decide).await
    }

    /// As [`commit`](Self::commit), on this thread, which it blocks.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_blocking<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        self.group_commit.commit_blocking(decide)
    }

    /// How many keys there are. It counts them, and may miss the last batch.
    #[must_use]
    pub fn count(&self) -> usize {
        self.overlay.tree().len()
    }

    /// The version of the layout that the database has. Where it is less than that of the layout it was opened with, an
    /// earlier version wrote it: convert its records in as many changes as it takes, and write [`FORMAT`](crate::FORMAT)
    /// with the last one.
    ///
    /// # Errors
    /// Where the tree cannot be read.
    pub fn format(&self) -> Result<u32, TreeError> {
        let format = self.get(crate::FORMAT)?.and_then(|format| crate::writes::number(&format));
        format.ok_or_else(|| TreeError::damaged(crate::FORMAT, "it is missing or no number"))
    }

    /// Copies the database as it is at one moment into a directory, which must be missing or empty. Commits go on. The copy is
    /// made on a thread of tokio's for blocking work, and goes on where this future is dropped.
    ///
    /// # Errors
    /// Where the directory is in use, the disk is full, or the database is closed meanwhile. The copy is then not whole, and
    /// is refused by [`restore`](crate::restore()).
    pub async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, BackupError> {
        let copier = self.copier.clone();
        tokio::task::spawn_blocking(move || copier.copy_to(&directory)).await.map_err(|_| BackupError::Stopped)?
    }

    /// Lets go of the journal entries up to this number, which backups hold: the `from` of the oldest backup that is to
    /// stay useful. Until it is said the journal keeps everything.
    pub fn keep_journal_after(&self, number: u64) {
        self.copier.retention.backed_up(number);
    }
}

impl Read for Database {
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        Ok(self.overlay.get(key)?.map(Cow::Owned))
    }

    fn scan(&self, keys: KeyRange, is_reversed: bool) -> Entries {
        self.overlay.scan(keys, is_reversed, &[])
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.copier.is_closing.store(true, Ordering::Relaxed);
    }
}

/// Waits for a database to be closed. While this lives, no other process opens the directory.
#[must_use = "a database that is not closed in order has to be recovered at the next start"]
pub struct Closing {
    pub(crate) committer: thread::JoinHandle<()>,
    pub(crate) tree: PathBuf,
    pub(crate) mark: PathBuf,
    pub(crate) stop: Arc<Stop>,
    /// Held until the database is closed.
    pub(crate) _lock: File,
}

impl Closing {
    /// Waits until everything is on the disk, once the [`Database`] is dropped.
    pub fn wait(self) {
        // A panic in it has stopped the engine.
        let _ = self.committer.join();
        if self.stop.has_stopped() {
            return;
        }
        // An end is in order when everything that the tree ever writes is on the disk.
        if let Err(error) = tree::sync_closed(&self.tree).and_then(|()| fs::remove_file(&self.mark)) {
            tracing::warn!(%error, "the next start will say that this end was not in order");
        }
    }
}

/// Reads all journal files of a database, which may be open, and returns what is wrong with them: each must be there and
/// have all entries up to where the next begins.
///
/// # Errors
/// Where the journal cannot be read at all.
pub fn check_journal(directory: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    journal::faults(&directory.join(journal::DIRECTORY))
}
