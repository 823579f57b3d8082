//! Backups by the engine itself.

use std::path::PathBuf;

use async_trait::async_trait;
pub(crate) use journaled_tree::{Series, TakenUp};
use payments_core::Timestamp;
use serde::{Deserialize, Serialize};

/// The backups of an engine that has a journal. A database has tools of its own.
#[async_trait]
pub(crate) trait Backups: Send + Sync {
    /// Copies the store, as of one moment, into a directory that is missing or empty. Commits do not wait for it.
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, BackUpError>;
    /// Takes up a series of backups at a start.
    fn take_up(&self, series: &Series, now: Timestamp) -> Result<TakenUp, BackUpError>;
    /// Makes the next backup of a series, and removes old ones with the journal that only they needed.
    async fn back_up_next(&self, series: &Series, now: Timestamp) -> Result<BackedUp, BackUpError>;
}

/// Why a backup failed: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BackUpError(pub(crate) String);

/// A backup that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackedUp {
    pub(crate) directory: PathBuf,
    /// The number of the change before the first one that it holds as a journal entry.
    pub(crate) from: u64,
    /// The number of the last change that it holds.
    pub(crate) to: u64,
}
