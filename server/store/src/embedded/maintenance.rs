//! Maintenance of an embedded store.

use std::path::{Path, PathBuf};

use journaled_tree::{BackupError, JournalError, Restored, Sources};

use crate::{
    Finding,
    bytes::KeysOfPlace,
    layout::{is_payment, is_value},
};

/// The numbers of records and of payments in a backup, as [`Snapshot::check`](crate::Snapshot::check) counts them.
pub fn count_backup(directory: &Path) -> Result<(u64, u64), BackupError> {
    let (mut records, mut payments) = (0, 0);
    journaled_tree::backup_keys(directory, |key| {
        records += u64::from(is_value(key));
        payments += u64::from(is_payment(key));
    })?;
    Ok((records, payments))
}

/// Restores a store into a directory that is missing or empty.
pub fn restore(sources: &Sources<'_>, directory: &Path) -> Result<Restored, BackupError> {
    journaled_tree::restore(sources, directory, KeysOfPlace)
}

/// Reads every journal file of a data directory and returns the damaged ones. The store may be open.
pub fn check_journal(data_directory: &Path) -> Result<Vec<Finding>, JournalError> {
    let finding = |(path, error): (PathBuf, JournalError)| Finding {
        record: path.strip_prefix(data_directory).unwrap_or(&path).display().to_string(),
        what: error.to_string(),
    };
    Ok(journaled_tree::check_journal(data_directory)?.into_iter().map(finding).collect())
}
