//! Merges runs of entries: a batch's writes over the overlay, and the overlay over the tree.

use std::{
    cmp::Ordering,
    iter,
    ops::Bound::{Excluded, Included},
};

use crate::{
    entries::{Entry, KeyRange},
    error::TreeError,
};

/// Whether a range can contain a key. sled and `BTreeMap` panic on some ranges that cannot.
pub(crate) fn may_hold_a_key(keys: &KeyRange) -> bool {
    match keys {
        (Included(start), Included(end)) => start <= end,
        (Included(start) | Excluded(start), Included(end) | Excluded(end)) => start < end,
        _ => true,
    }
}

/// Reads a part of a scan. It ends after this many entries, or where the tree fails, so only its last item can be a failure.
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

/// Merges two runs of entries in this order. If both have a key, the newer run counts; `None` removes the key.
pub(crate) fn merge<'w>(
    newer: impl Iterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    older: impl Iterator<Item = Result<Entry, TreeError>>,
    order: fn(&[u8], &[u8]) -> Ordering,
) -> impl Iterator<Item = Result<Entry, TreeError>> {
    let (mut newer, mut older) = (newer.peekable(), older.peekable());
    iter::from_fn(move || {
        loop {
            let order = match (newer.peek(), older.peek()) {
                (Some((newer, _)), Some(Ok((older, _)))) => order(newer, older),
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
                return Some(Ok((key.to_vec(), value.to_vec())));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::{io, ops::Bound::Unbounded};

    use super::*;

    #[test]
    fn a_range_that_ends_before_it_begins_contains_no_key() {
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
    fn a_part_ends_at_its_limit_or_where_the_tree_fails_but_not_at_damage() {
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
