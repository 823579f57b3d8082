//! Moves values in batches. Each batch also stores the migration's progress.

use sha2::{Digest, Sha256};

use super::{super::progress, ends::Target};
use crate::{
    cli::CommandError,
    store::{Migration, Snapshot, bytes::KeyValue},
};

const BATCH: usize = 256;
/// The kinds of records that identify a store: its merchants and their endpoints, which are few.
const TELLING: [&str; 3] = ["workspace", "api-key", "endpoint"];

/// The digest of values in order: SHA-256 over each key and each value, each after its length.
#[derive(Default)]
pub(super) struct ValueDigest(Sha256);

impl ValueDigest {
    pub(super) fn add(&mut self, (key, value): &KeyValue) {
        for part in [key, value] {
            self.0.update((part.len() as u64).to_be_bytes());
            self.0.update(part);
        }
    }

    pub(super) fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

pub(super) fn identity(store: &dyn Snapshot) -> Result<String, CommandError> {
    let mut digest = ValueDigest::default();
    for kind in TELLING {
        for record in store.each(kind) {
            digest.add(&record?);
        }
    }
    Ok(digest.finish())
}

pub(super) fn next(migration: &Migration) -> Migration {
    Migration { version: migration.version + 1, ..migration.clone() }
}

pub(super) fn move_values(source: &dyn Snapshot, target: &Target, begun: Migration) -> Result<Migration, CommandError> {
    let bar = progress::bar("moving", || source.records())?;
    let mut after = begun.after.as_ref().map(hex::decode).transpose().map_err(|error| {
        format!("the target does not say how far the migration has come: {error}; empty it and run it again")
    })?;
    let mut migration = begun;
    loop {
        bar.set_position(migration.records);
        let batch = source.values_after(after.as_deref(), BATCH)?;
        let Some((last, _)) = batch.last() else { break };
        after = Some(last.clone());
        let (after, moved) = (Some(hex::encode(last)), migration.records + batch.len() as u64);
        migration = Migration { after, records: moved, ..next(&migration) };
        target.take_in(batch)?;
        target.note(&migration)?;
    }
    bar.finish_and_clear();
    Ok(migration)
}
