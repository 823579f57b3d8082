//! Moves records in batches, each with how far the migration has come.

use super::{super::progress, Failure, Target};
use crate::store::{Migration, Record, RecordDigest, RecordKind, Records, Snapshot, Write};

/// How many records are moved in one commit.
const BATCH: usize = 256;

/// The writes of a batch.
pub(super) fn writes(records: Vec<Record>, migration: &Migration) -> Vec<Write> {
    let moved = records.into_iter().map(|record| Write::Moved(Box::new(record)));
    moved.chain([Write::Migration(Box::new(migration.clone()))]).collect()
}

/// Tells a store from others: the digest of the records before its payments, which are few.
pub(super) fn identity(store: &dyn Snapshot) -> Result<String, Failure> {
    let mut digest = RecordDigest::default();
    for record in Records::of(store, None) {
        let record = record?;
        let key = record.key();
        if key.0 >= RecordKind::Payment {
            break;
        }
        digest.add(&key, &record.json()?);
    }
    Ok(digest.finish())
}

/// The migration at its next version.
pub(super) fn next(migration: &Migration) -> Migration {
    Migration { version: migration.version + 1, ..migration.clone() }
}

/// Moves the records that are left.
pub(super) fn move_records(
    source: &dyn Snapshot,
    target: &Target,
    mut migration: Migration,
) -> Result<Migration, Failure> {
    let bar = progress::bar_of("moving", || RecordKind::ALL.iter().map(|kind| source.count(*kind)).sum())?;
    let mut records = Records::of(source, migration.after.clone());
    loop {
        bar.set_position(migration.records);
        let batch = records.by_ref().take(BATCH).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = batch.last() else { break };
        let moved = migration.records + batch.len() as u64;
        migration = Migration { after: Some(last.key()), records: moved, ..next(&migration) };
        target.commit(batch, &migration)?;
    }
    bar.finish_and_clear();
    Ok(migration)
}
