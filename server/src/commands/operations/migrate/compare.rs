//! Compares two stores value by value.

use std::cmp::Ordering;

use super::{super::progress, moving::ValueDigest};
use crate::{
    cli::CommandError,
    store::{
        Contents, Snapshot,
        bytes::KeyValue,
        layout::{name_of, record_kind},
    },
};

const PAGE: usize = 256;

struct Values<'s> {
    store: &'s dyn Snapshot,
    after: Option<Vec<u8>>,
    page: std::vec::IntoIter<KeyValue>,
}

impl<'s> Values<'s> {
    fn of(store: &'s dyn Snapshot) -> Self {
        Self { store, after: None, page: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<KeyValue>, CommandError> {
        if self.page.as_slice().is_empty() {
            let page = self.store.values_after(self.after.as_deref(), PAGE)?;
            if let Some((last, _)) = page.last() {
                self.after = Some(last.clone());
            }
            self.page = page.into_iter();
        }
        Ok(self.page.next())
    }
}

/// Reads all values of both stores, slot by slot, in the order of the keys. Returns the contents of both. If they differ, the
/// error says in how many values, names the first, and ends with what to do.
pub fn compare(
    source: &dyn Snapshot,
    target: &dyn Snapshot,
    values: u64,
    what_to_do: &str,
) -> Result<Contents, CommandError> {
    let bar = progress::bar("comparing", || Ok(values))?;
    let (mut contents, mut digest) = (Contents::default(), ValueDigest::default());
    let (mut differing, mut first): (u64, Option<Difference>) = (0, None);
    let (mut ours, mut theirs) = (Values::of(source), Values::of(target));
    let (mut one, mut other) = (ours.next()?, theirs.next()?);
    while let Some((order, value)) = least(one.as_ref(), other.as_ref()) {
        let how = match order {
            Ordering::Less => Some("is only in the source"),
            Ordering::Greater => Some("is only in the target"),
            Ordering::Equal => {
                digest.add(value);
                if let Some(kind) = record_kind(&value.0) {
                    *contents.records.entry(kind.replace('-', "_")).or_default() += 1;
                }
                (one != other).then_some("differs")
            }
        };
        if let Some(how) = how {
            differing += 1;
            let is_payment = |key: &[u8]| record_kind(key) == Some("payment");
            // A payment tells the reader most.
            if first.as_ref().is_none_or(|(other, _)| is_payment(&value.0) && !is_payment(other)) {
                first = Some((value.0.clone(), how));
            }
        }
        if order.is_le() {
            one = ours.next()?;
            bar.inc(1);
        }
        if order.is_ge() {
            other = theirs.next()?;
        }
    }
    bar.finish_and_clear();
    match first {
        None => Ok(Contents { sha256: digest.finish(), ..contents }),
        Some((key, how)) => {
            let named = name_of(&key);
            Err(format!("the stores differ in {differing} values; the first is {named}, which {how}; {what_to_do}")
                .into())
        }
    }
}

/// A key, and what is wrong with its values.
type Difference = (Vec<u8>, &'static str);

/// The lesser of two values by their keys, and how the keys compare.
fn least<'v>(one: Option<&'v KeyValue>, other: Option<&'v KeyValue>) -> Option<(Ordering, &'v KeyValue)> {
    match (one, other) {
        (None, None) => None,
        (Some(one), None) => Some((Ordering::Less, one)),
        (None, Some(other)) => Some((Ordering::Greater, other)),
        (Some(one), Some(other)) => {
            let order = one.0.cmp(&other.0);
            Some((order, if order.is_gt() { other } else { one }))
        }
    }
}
