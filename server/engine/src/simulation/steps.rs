//! What a simulation can do with an engine and its files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::SimulatedDisk;
use crate::{
    backup::Manifest,
    database::Database,
    error::{BackupError, JournalError},
    journal,
    layout::Layout,
    open::Options,
    restore::{Restored, Sources, restore_on},
    series::Series,
};

/// The engine's workers. Each has its own thread, unless the disk is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// Commits the changes that wait.
    Committer,
    /// Applies the next batch to the tree.
    Applier,
    /// Compresses closed journal files.
    Archivist,
}

impl Options {
    /// Uses a simulated disk. The database then starts no threads: see [`Database::step`].
    pub fn simulated(mut self, disk: &SimulatedDisk) -> Self {
        self.platform = Arc::new(disk.clone());
        self
    }
}

impl Database {
    /// Does the next piece of a worker's work, on a simulated disk. Returns false if there is none.
    pub fn step(&self, worker: Worker) -> bool {
        match worker {
            Worker::Committer => self.group_commit.committer.step(),
            Worker::Applier => self.group_commit.writer().applier.worker.step(),
            Worker::Archivist => self.group_commit.writer().archivist.worker.step(),
        }
    }

    /// Does the same as [`back_up`](Self::back_up) on this thread.
    pub fn back_up_blocking(&self, directory: &Path) -> Result<Manifest, BackupError> {
        self.copier.copy_to(directory)
    }

    /// Does the same as [`back_up_next`](Self::back_up_next) on this thread.
    pub fn back_up_next_blocking(&self, series: &Series, now: i64) -> Result<(PathBuf, Manifest), BackupError> {
        self.copier.copy_next(series, now)
    }
}

/// Does the same as [`restore`](crate::restore()) on a simulated disk.
pub fn restore(
    disk: &SimulatedDisk,
    sources: &Sources<'_>,
    directory: &Path,
    layout: impl Layout,
) -> Result<Restored, BackupError> {
    let layout: Arc<dyn Layout> = Arc::new(layout);
    restore_on(disk, sources, directory, &layout)
}

/// Does the same as [`check_journal`](crate::check_journal) on a simulated disk.
pub fn check_journal(disk: &SimulatedDisk, database: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    journal::check_journal_on(disk, database)
}
