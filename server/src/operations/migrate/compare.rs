//! Compares two stores record by record.

use std::cmp::Ordering;

use super::{super::progress, Failure};
use crate::store::{Contents, Record, RecordDigest, RecordKey, Records, Snapshot};

/// Reads both stores to their ends, in the order of their keys. Returns what both hold; an error says in how many records they
/// differ, names the first, and ends with what to do.
pub(crate) fn compare(
    source: &dyn Snapshot,
    target: &dyn Snapshot,
    records: u64,
    what_to_do: &str,
) -> Result<Contents, Failure> {
    let bar = progress::bar_of("comparing", || Ok(records))?;
    let (mut contents, mut digest) = (Contents::default(), RecordDigest::default());
    let (mut differing, mut first) = (0_u64, None);
    let (mut ours, mut theirs) = (Records::of(source, None), Records::of(target, None));
    let (mut one, mut other) = (ours.next().transpose()?, theirs.next().transpose()?);
    while let Some((order, key)) = least(one.as_ref(), other.as_ref()) {
        let how = match order {
            Ordering::Less => Some("is only in the source"),
            Ordering::Greater => Some("is only in the target"),
            Ordering::Equal => {
                let [json, other_json] = [&one, &other].map(|it| it.as_ref().map(Record::json).transpose());
                let (json, other_json) = (json?.unwrap_or_default(), other_json?.unwrap_or_default());
                digest.add(&key, &json);
                *contents.records.entry(key.0).or_default() += 1;
                (json != other_json).then_some("differs")
            }
        };
        if let Some(how) = how {
            differing += 1;
            first.get_or_insert((key, how));
        }
        if order.is_le() {
            one = ours.next().transpose()?;
            bar.inc(1);
        }
        if order.is_ge() {
            other = theirs.next().transpose()?;
        }
    }
    bar.finish_and_clear();
    match first {
        None => Ok(Contents { sha256: digest.finish(), ..contents }),
        Some(((kind, key), how)) => Err(format!(
            "the stores differ in {differing} records; the first is the {kind} {key}, which {how}; {what_to_do}"
        )
        .into()),
    }
}

/// The lesser key of two records, and which of them has it.
fn least(one: Option<&Record>, other: Option<&Record>) -> Option<(Ordering, RecordKey)> {
    match (one.map(Record::key), other.map(Record::key)) {
        (None, None) => None,
        (Some(key), None) => Some((Ordering::Less, key)),
        (None, Some(key)) => Some((Ordering::Greater, key)),
        (Some(one), Some(other)) => Some((one.cmp(&other), one.min(other))),
    }
}
