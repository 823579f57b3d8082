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

/// A database that this process has open. It is closed by dropping it, and then [`Closing::wait`].
pub struct Database {
    pub(crate) overlay: Overlay,
    pub(crate) copier: Copier,
    /// The last field, so that it is dropped last: when its thread ends, everything else is closed.
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

    /// The number of the last durable batch of changes. While it stays the same, so does everything that a reader finds.
    #[must_use]
    pub fn last_batch(&self) -> u64 {
        self.overlay.last()
    }

    /// Commits a change: runs `decide`, and makes its writes durable as a whole before it returns `Ok`. Changes run one at a
    /// time, each sees all before it, and those that wait share one sync.
    ///
    /// `decide` runs on another thread, or on this one if nothing else is committed. It must not block, nor commit. A panic in
    /// it stops the engine. Once this was polled the change may be made, even if the future is dropped then.
    ///
    /// # Errors
    /// [`CommitError::Refused`] with the error of `decide`; [`CommitError::NotWritten`] if it may be tried again; both have no
    /// effect. After [`CommitError::Stopped`] only the next opening knows whether it has.
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

    /// As [`commit`](Self::commit), on this thread, which it blocks.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_blocking<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        let (change, mut outcome) = change(decide);
        self.group_commit.commit_on_this_thread(self.group_commit.writer(), change);
        outcome.try_recv().map_err(|_| CommitError::Stopped)?
    }

    /// Copies the database as it is at one moment into a directory, which must be missing or empty. Commits go on. The copy is
    /// made on a thread of tokio's for blocking work, and goes on if this future is dropped.
    ///
    /// # Errors
    /// If the directory is in use, the disk is full, or the database is closed meanwhile. The copy is then not whole, and
    /// [`restore`](crate::restore()) refuses it.
    pub async fn back_up(&self, directory: PathBuf) -> Result<Manifest, BackupError> {
        let copier = self.copier.clone();
        tokio::task::spawn_blocking(move || copier.copy_to(&directory)).await.map_err(|_| BackupError::Stopped)?
    }

    /// Allows the journal to remove the entries up to this number, which backups hold: the `from` of the oldest backup that is
    /// to stay useful. Until this is called the journal keeps everything.
    pub fn keep_journal_after(&self, number: u64) {
        self.copier.retention.backed_up(number);
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
    /// The threads of committer, applier and archivist. The committer ends first.
    pub(crate) threads: Vec<thread::JoinHandle<()>>,
    pub(crate) tree: PathBuf,
    pub(crate) mark: PathBuf,
    pub(crate) stop: Arc<Stop>,
    pub(crate) disk: Arc<dyn Disk>,
    /// Held until the database is closed.
    pub(crate) _lock: Lock,
}

impl Closing {
    /// Waits until everything is on the disk, once the [`Database`] is dropped.
    pub fn wait(self) {
        // A panic in the committer or the applier has stopped the engine. Without the archivist files stay uncompressed.
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        if self.stop.has_stopped() {
            return;
        }
        // An end is in order when everything that the tree ever writes is on the disk.
        if let Err(error) = tree::sync_closed(&*self.disk, &self.tree).and_then(|()| self.disk.remove_file(&self.mark))
        {
            tracing::warn!(%error, "the next start will report an unclean shutdown");
        }
    }
}
