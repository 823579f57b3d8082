//! Maintenance of an embedded store.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use journaled_tree::{BackupError, JournalError, Manifest, Restored, Sources};
use payments_core::Timestamp;

use crate::store::{
    BackUpError, BackedUp, Backups, Finding, Series, TakenUp,
    bytes::{Journaled, KeysOfPlace},
    layout::{is_payment, is_value},
};

#[async_trait]
impl Backups for Journaled {
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, BackUpError> {
        let made = self.0.back_up(directory.clone()).await.map_err(failed)?;
        Ok(backed_up(directory, &made))
    }

    fn take_up(&self, series: &Series, now: Timestamp) -> Result<TakenUp, BackUpError> {
        self.0.take_up(series, now.as_millis()).map_err(failed)
    }

    async fn back_up_next(&self, series: &Series, now: Timestamp) -> Result<BackedUp, BackUpError> {
        let (directory, made) = self.0.back_up_next(series.clone(), now.as_millis()).await.map_err(failed)?;
        Ok(backed_up(directory, &made))
    }
}

fn backed_up(directory: PathBuf, made: &Manifest) -> BackedUp {
    BackedUp { directory, from: made.from, to: made.to }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn failed(error: BackupError) -> BackUpError {
    BackUpError(error.to_string())
}

/// The numbers of records and of payments in a backup. They are those that [`Snapshot::check`](crate::store::Snapshot::check) counts in the store of it.
pub(crate) fn count_backup(directory: &Path) -> Result<(u64, u64), BackupError> {
    let (mut records, mut payments) = (0, 0);
    journaled_tree::backup_keys(directory, |key| {
        records += u64::from(is_value(key));
        payments += u64::from(is_payment(key));
    })?;
    Ok((records, payments))
}

/// Restores a store into a directory that is missing or empty.
pub(crate) fn restore(sources: &Sources<'_>, directory: &Path) -> Result<Restored, BackupError> {
    journaled_tree::restore(sources, directory, KeysOfPlace)
}

/// Reads every journal file of a data directory and returns what is wrong. The store may be open.
pub(crate) fn check_journal(data_directory: &Path) -> Result<Vec<Finding>, JournalError> {
    let finding = |(path, error): (PathBuf, JournalError)| Finding {
        record: path.strip_prefix(data_directory).unwrap_or(&path).display().to_string(),
        what: error.to_string(),
    };
    Ok(journaled_tree::check_journal(data_directory)?.into_iter().map(finding).collect())
}
