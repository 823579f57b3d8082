//! Scans: the entries of a key range, of overlay and tree together.

use std::{
    cmp::Ordering,
    iter,
    ops::Bound::{Excluded, Included},
    vec,
};

use crate::{
    error::TreeError,
    overlay::Overlay,
    read::{Entry, KeyRange},
};

/// How many entries are read at first: many scans look for one.
const ENTRIES_AT_FIRST: usize = if cfg!(test) { 2 } else { 4 };
/// How many entries are read at a time after those.
const ENTRIES_AT_A_TIME: usize = if cfg!(test) { 3 } else { 32 };

/// A scan. It goes through its range part by part.
pub(crate) struct Scan {
    overlay: Overlay,
    is_reversed: bool,
    at_most: usize,
    part: vec::IntoIter<Result<Entry, TreeError>>,
    /// What comes after the part, if anything.
    rest: Option<KeyRange>,
}

impl Scan {
    pub(crate) fn new(overlay: Overlay, keys: KeyRange, is_reversed: bool) -> Self {
        Self { overlay, is_reversed, at_most: ENTRIES_AT_FIRST, part: Vec::new().into_iter(), rest: Some(keys) }
    }

    /// Reads the next part of the range.
    fn read_part(&mut self, keys: KeyRange) {
        let part = self.overlay.part(keys.clone(), self.is_reversed, self.at_most);
        if let Some(Ok((last, _))) = part.last().filter(|_| part.len() >= self.at_most) {
            let rest = match self.is_reversed {
                false => (Excluded(last.clone()), keys.1),
                true => (keys.0, Excluded(last.clone())),
            };
            self.rest = Some(rest).filter(may_hold_a_key);
        }
        self.part = part.into_iter();
        self.at_most = ENTRIES_AT_A_TIME;
    }
}

impl Iterator for Scan {
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.part.next() {
                return Some(entry);
            }
            let keys = self.rest.take()?;
            self.read_part(keys);
        }
    }
}

/// Whether a range may hold a key. sled and `BTreeMap` panic on some that cannot.
pub(crate) fn may_hold_a_key(keys: &KeyRange) -> bool {
    match keys {
        (Included(start), Included(end)) => start <= end,
        (Included(start) | Excluded(start), Included(end) | Excluded(end)) => start < end,
        _ => true,
    }
}

/// Ends a part of a scan: after this many entries, or where the tree fails. So the last of many is an entry.
pub(crate) fn first(
    entries: impl Iterator<Item = Result<Entry, TreeError>>,
    at_most: usize,
) -> Vec<Result<Entry, TreeError>> {
    let mut part = Vec::new();
    let mut found = 0;
    for entry in entries {
        found += usize::from(entry.is_ok());
        let is_last = found == at_most || matches!(entry, Err(TreeError::Failed(_)));
        part.push(entry);
        if is_last {
            break;
        }
    }
    part
}

/// Merges two runs of entries in this order. Where both have a key, the newer one counts; `None` removes the key.
pub(crate) fn merge<K: AsRef<[u8]> + Into<Vec<u8>>, V: Into<Vec<u8>>>(
    newer: impl Iterator<Item = (K, Option<V>)>,
    older: impl Iterator<Item = Result<Entry, TreeError>>,
    order: fn(&[u8], &[u8]) -> Ordering,
) -> impl Iterator<Item = Result<Entry, TreeError>> {
    let (mut newer, mut older) = (newer.peekable(), older.peekable());
    iter::from_fn(move || {
        loop {
            let order = match (newer.peek(), older.peek()) {
                (Some((newer, _)), Some(Ok((older, _)))) => order(newer.as_ref(), older),
                (Some(_), None) => Ordering::Less,
                (_, _) => Ordering::Greater,
            };
            if order == Ordering::Greater {
                return older.next();
            }
            if order == Ordering::Equal {
                older.next();
            }
            if let Some((key, Some(value))) = newer.next() {
                return Some(Ok((key.into(), value.into())));
            }
        }
    })
}

/// Merges two runs of writes in this order. Where both have a key, the newer one counts.
pub(crate) fn merge_writes<'w, V>(
    newer: impl Iterator<Item = (&'w [u8], V)>,
    older: impl Iterator<Item = (&'w [u8], V)>,
    order: fn(&[u8], &[u8]) -> Ordering,
) -> impl Iterator<Item = (&'w [u8], V)> {
    let (mut newer, mut older) = (newer.peekable(), older.peekable());
    iter::from_fn(move || match (newer.peek(), older.peek()) {
        (Some((one, _)), Some((other, _))) => match order(one, other) {
            Ordering::Less => newer.next(),
            Ordering::Greater => older.next(),
            Ordering::Equal => {
                older.next();
                newer.next()
            }
        },
        (None, _) => older.next(),
        (_, None) => newer.next(),
    })
}

#[cfg(test)]
mod tests {
    use std::{io, ops::Bound::Unbounded};

    use super::*;

    #[test]
    fn a_range_that_ends_before_it_begins_holds_no_key() {
        let (a, b) = (|| b"a".to_vec(), || b"b".to_vec());
        for (range, may) in [
            ((Included(a()), Included(a())), true),
            ((Included(a()), Excluded(a())), false),
            ((Excluded(a()), Included(a())), false),
            ((Excluded(a()), Excluded(a())), false),
            ((Excluded(a()), Excluded(b())), true),
            ((Included(b()), Included(a())), false),
            ((Excluded(b()), Included(a())), false),
            ((Unbounded, Excluded(a())), true),
            ((Included(b()), Unbounded), true),
        ] {
            assert_eq!(may_hold_a_key(&range), may, "{range:?}");
        }
    }

    #[test]
    fn a_part_ends_after_so_many_entries_or_where_the_tree_fails_and_goes_on_behind_damage() {
        let entry = || Ok((b"key".to_vec(), b"value".to_vec()));
        let damaged = || Err(TreeError::damaged(b"key", "not whole"));
        let failed = || Err(TreeError::failed(io::Error::other("the disk is gone")));
        let length = |entries: Vec<Result<Entry, TreeError>>, at_most| first(entries.into_iter(), at_most).len();
        assert_eq!(length(vec![entry(), entry(), entry()], 2), 2);
        assert_eq!(length(vec![entry(), entry(), entry()], 9), 3);
        assert_eq!(length(vec![damaged(), entry(), damaged(), entry(), entry()], 2), 4);
        assert_eq!(length(vec![entry(), failed(), entry()], 9), 2);
    }
}
