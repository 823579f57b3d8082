//! An open database.

use std::{
    ops::RangeBounds,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    thread,
};

use crate::{
    backup::{Copier, Manifest},
    disk::Disk,
    entries::{Entries, KeyRange},
    error::{BackupError, CommitError, TreeError},
    group_commit::{GroupCommit, change},
    lock::Lock,
    overlay::Overlay,
    stop::Stop,
    tree,
    view::View,
};

/// A database that this process has open. To close it, drop it, and then call [`Closing::wait`].
pub struct Database {
    pub(crate) overlay: Overlay,
    pub(crate) copier: Copier,
    /// The last field, because it must be dropped last: when its thread ends, everything else is closed.
    pub(crate) group_commit: GroupCommit,
}

impl Database {
    /// Returns the last durable value under a key.
    ///
    /// # Errors
    /// If the value is damaged or the tree has failed.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        self.overlay.get(key)
    }

    /// Returns the entries of a key range, in key order or reversed.
    pub fn scan(&self, keys: KeyRange, is_reversed: bool) -> Entries {
        self.overlay.scan(keys, is_reversed)
    }

    /// Returns the entries of a range in key order.
    pub fn range(&self, keys: impl RangeBounds<Vec<u8>>) -> Entries {
        self.scan((keys.start_bound().cloned(), keys.end_bound().cloned()), false)
    }

    /// Counts the keys. It may miss the last batch.
    #[must_use]
    pub fn count(&self) -> usize {
        self.overlay.tree.store.len()
    }

    /// The number of the last durable batch of changes. While it stays the same, readers find the same data.
    #[must_use]
    pub fn last_batch(&self) -> u64 {
        self.overlay.last()
    }

    /// Commits a change: runs `decide`, and makes all its writes durable together before it returns `Ok`. Changes run one at
    /// a time. Each sees all changes before it, and those that wait share one sync.
    ///
    /// `decide` runs on another thread, or on this one if nothing else is committed. It must neither block nor commit. A
    /// panic in it stops the engine. Once the future was polled, the change may be made even if the future is dropped.
    ///
    /// # Errors
    /// [`CommitError::Refused`] with the error of `decide`; [`CommitError::NotWritten`] if the caller may try again; both
    /// have no effect. After [`CommitError::Stopped`] only the next opening knows whether the change was made.
    pub async fn commit<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        let (change, outcome) = change(decide);
        if !self.group_commit.commit(change).await {
            return Err(CommitError::Stopped);
        }
        outcome.await.map_err(|_| CommitError::Stopped)?
    }

    /// Does the same as [`commit`](Self::commit) on this thread, which it blocks.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit).
    pub fn commit_blocking<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        let (change, mut outcome) = change(decide);
        self.group_commit.commit_on_this_thread(self.group_commit.writer(), change);
        outcome.try_recv().map_err(|_| CommitError::Stopped)?
    }

    /// Copies the database as of one moment into a directory, which must be missing or empty. Commits go on. A thread of
    /// tokio's for blocking work makes the copy, and goes on even if this future is dropped.
    ///
    /// # Errors
    /// If the directory is in use, the disk is full, or the database is closed during the copy. Then the copy is not whole,
    /// and [`restore`](crate::restore()) refuses it.
    pub async fn back_up(&self, directory: PathBuf) -> Result<Manifest, BackupError> {
        let copier = self.copier.clone();
        tokio::task::spawn_blocking(move || copier.copy_to(&directory)).await.map_err(|_| BackupError::Stopped)?
    }

    /// Allows the journal to remove the entries up to this number, which backups contain. The number is the `from` of the
    /// oldest backup to keep usable. Until this is called, the journal keeps everything.
    pub fn keep_journal_after(&self, number: u64) {
        self.copier.retention.backed_up(number);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.copier.is_closing.store(true, Ordering::Relaxed);
    }
}

/// Waits until a database is closed. While this exists, no other process can open the directory.
#[must_use = "a database that is not closed in order has to be recovered at the next start"]
pub struct Closing {
    /// The threads of the committer, the applier and the archivist. The committer ends first.
    pub(crate) threads: Vec<thread::JoinHandle<()>>,
    pub(crate) tree: PathBuf,
    pub(crate) mark: PathBuf,
    pub(crate) stop: Arc<Stop>,
    pub(crate) disk: Arc<dyn Disk>,
    /// Held until the database is closed.
    pub(crate) _lock: Lock,
}

impl Closing {
    /// Waits until everything is on the disk. Drop the [`Database`] first.
    pub fn wait(self) {
        // A panic in the committer or the applier has stopped the engine. Without the archivist, files only stay
        // uncompressed.
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        if self.stop.has_stopped() {
            return;
        }
        // The shutdown is clean once everything that the tree writes is on the disk.
        if let Err(error) = tree::sync_closed(&*self.disk, &self.tree).and_then(|()| self.disk.remove_file(&self.mark))
        {
            tracing::warn!(%error, "the next start will report an unclean shutdown");
        }
    }
}
