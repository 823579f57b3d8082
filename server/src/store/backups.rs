//! Backups by the engine itself.

use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// The backups of an engine that has a journal. A database has tools of its own.
#[async_trait]
pub(crate) trait Backups: Send + Sync {
    /// Copies the store, as of one moment, into a directory that is missing or empty. Commits do not wait for it.
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, BackUpError>;
    /// Keeps the journal after this change, and drops what is before. The next call replaces this one.
    fn keep_journal_after(&self, number: u64);
}

/// Why a backup failed: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BackUpError(pub(crate) String);

/// A backup that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackedUp {
    pub(crate) directory: PathBuf,
    /// How many records it holds.
    pub(crate) records: u64,
    /// The number of the change before the first one that it holds as a journal entry.
    pub(crate) from: u64,
    /// The number of the last change that it holds.
    pub(crate) to: u64,
}
