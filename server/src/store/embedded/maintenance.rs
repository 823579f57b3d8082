//! Maintenance of an embedded store.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use journaled_tree::{BackupError, JournalError, Manifest, Read, Restored, Sources};
use payments_core::{Posting, Timestamp};

use super::{EmbeddedStore, check, deliveries, keys, layout::Layout, stored::Stored};
use crate::{
    domain::{Outgoing, Session},
    store::{
        BackUpError, BackedUp, Backups, Checked, Each, Finding, Migration, Record, RecordKind, Series, Snapshot,
        StoreError, TakenUp,
    },
};

#[async_trait]
impl Backups for EmbeddedStore {
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, BackUpError> {
        let made = self.database.back_up(directory.clone()).await.map_err(failed)?;
        Ok(backed_up(directory, &made))
    }

    fn take_up(&self, series: &Series, now: Timestamp) -> Result<TakenUp, BackUpError> {
        self.database.take_up(series, now.as_millis()).map_err(failed)
    }

    async fn back_up_next(&self, series: &Series, now: Timestamp) -> Result<BackedUp, BackUpError> {
        let (directory, made) = self.database.back_up_next(series.clone(), now.as_millis()).await.map_err(failed)?;
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

/// A store that nobody writes to.
impl Snapshot for EmbeddedStore {
    fn records(&self) -> Result<u64, StoreError> {
        Ok(self.database.count() as u64)
    }

    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
        check::check(&self.database, progress)
    }

    fn each_session(&self) -> Each<'_, Session> {
        Box::new(self.database.prefix(keys::SESSIONS).map(|entry| {
            let (key, record) = entry?;
            Ok(Stored::parse(&key, &record)?.session)
        }))
    }

    fn each_session_with_postings(&self) -> Each<'_, (Session, Vec<Vec<Posting>>)> {
        Box::new(self.each_session().map(|session| {
            let session = session?;
            let postings = self.each(&keys::postings_of(&session.payment.id)).collect::<Result<_, _>>()?;
            Ok((session, postings))
        }))
    }

    fn each_delivery(&self) -> Each<'_, Outgoing> {
        Box::new(self.database.prefix(keys::DELIVERIES).map(|entry| deliveries::of_entry(&self.database, entry)))
    }

    fn page(&self, kind: RecordKind, after: Option<&str>, at_most: usize) -> Result<Vec<Record>, StoreError> {
        self.record_page(kind, after, at_most)
    }

    fn count(&self, kind: RecordKind) -> Result<u64, StoreError> {
        self.record_count(kind)
    }

    fn migration(&self) -> Result<Option<Migration>, StoreError> {
        self.get(keys::MIGRATION)
    }
}

/// The numbers of records and of payments in a backup. They are those that [`Snapshot::check`] counts in the store of it.
pub(crate) fn count_backup(directory: &Path) -> Result<(u64, u64), BackupError> {
    let (mut records, mut payments) = (0, 0);
    journaled_tree::backup_keys(directory, |key| {
        records += u64::from(keys::is_record(key));
        payments += u64::from(key.starts_with(keys::SESSIONS));
    })?;
    Ok((records, payments))
}

/// Restores a store into a directory that is missing or empty.
pub(crate) fn restore(sources: &Sources<'_>, directory: &Path) -> Result<Restored, BackupError> {
    journaled_tree::restore(sources, directory, Layout)
}

/// Reads every journal file of a data directory and returns what is wrong. The store may be open.
pub(crate) fn check_journal(data_directory: &Path) -> Result<Vec<Finding>, JournalError> {
    let finding = |(path, error): (PathBuf, JournalError)| Finding {
        record: path.strip_prefix(data_directory).unwrap_or(&path).display().to_string(),
        what: error.to_string(),
    };
    Ok(journaled_tree::check_journal(data_directory)?.into_iter().map(finding).collect())
}
