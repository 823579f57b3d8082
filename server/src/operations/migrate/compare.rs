//! Compares two stores record by record.

use std::cmp::Ordering;

use super::{super::progress, Failure};
use crate::store::{Contents, Record, RecordDigest, RecordKey, Records, Snapshot};

/// Reads both stores in the order of their keys. Returns what both hold, or the first record in which they differ.
pub(crate) fn compare(source: &dyn Snapshot, target: &dyn Snapshot, records: u64) -> Result<Contents, Failure> {
    let bar = progress::bar_of("comparing", || Ok(records))?;
    let (mut contents, mut digest) = (Contents::default(), RecordDigest::default());
    let (mut ours, mut theirs) = (Records::of(source, None), Records::of(target, None));
    loop {
        match (ours.next().transpose()?, theirs.next().transpose()?) {
            (None, None) => break,
            (Some(one), None) => return Err(differs(&one.key(), "is only in the source")),
            (None, Some(other)) => return Err(differs(&other.key(), "is only in the target")),
            (Some(one), Some(other)) => {
                let (key, json) = same(&one, &other)?;
                digest.add(&key, &json);
                *contents.records.entry(key.0).or_default() += 1;
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(Contents { sha256: digest.finish(), ..contents })
}

/// The key and the content of a record that both stores have.
fn same(one: &Record, other: &Record) -> Result<(RecordKey, String), Failure> {
    let (key, other_key) = (one.key(), other.key());
    let json = one.json()?;
    match key.cmp(&other_key) {
        Ordering::Less => Err(differs(&key, "is only in the source")),
        Ordering::Greater => Err(differs(&other_key, "is only in the target")),
        Ordering::Equal if json != other.json()? => Err(differs(&key, "differs")),
        Ordering::Equal => Ok((key, json)),
    }
}

fn differs((kind, key): &RecordKey, how: &str) -> Failure {
    format!(
        "the stores are not the same: the {kind} {key} {how}; somebody changed one of them during the migration: empty the \
         target and run it again"
    )
    .into()
}
