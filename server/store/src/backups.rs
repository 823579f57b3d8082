//! Backups that the engine makes.

use std::path::PathBuf;

pub use journaled_tree::Series;
use journaled_tree::{BackupError, Database, Manifest, TakenUp};
use payments_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The backups of a store in a directory. A database has tools of its own.
#[derive(Clone, Copy)]
pub struct Backups<'d>(pub(super) &'d Database);

impl Backups<'_> {
    /// Copies the store, as of one moment, into a directory that is missing or empty. Commits do not wait for it.
    pub async fn back_up(self, directory: PathBuf) -> Result<BackedUp, BackupError> {
        let Manifest { from, to, .. } = self.0.back_up(directory.clone()).await?;
        Ok(BackedUp { directory, from, to })
    }

    /// Resumes a series of backups at a start.
    pub fn take_up(self, series: &Series, now: Timestamp) -> Result<TakenUp, BackupError> {
        self.0.take_up(series, now.as_millis())
    }

    /// Makes the next backup of a series, and removes old backups with the journal files that only they needed.
    pub async fn back_up_next(self, series: &Series, now: Timestamp) -> Result<BackedUp, BackupError> {
        let (directory, Manifest { from, to, .. }) = self.0.back_up_next(series.clone(), now.as_millis()).await?;
        Ok(BackedUp { directory, from, to })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BackedUp {
    pub directory: PathBuf,
    /// The number of the last change before the first journal entry of the backup.
    pub from: u64,
    /// The number of the last change in the backup.
    pub to: u64,
}
