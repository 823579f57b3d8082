//! Scans: the entries of a key range, of overlay and tree together.

use std::{
    cmp::Ordering,
    iter,
    ops::Bound::{Excluded, Included},
};

use crate::{
    error::TreeError,
    overlay::Overlay,
    read::{Entries, Entry, KeyRange},
};

/// How many writes of the overlay are copied at a time. Most scans end before they need more.
const WRITES_AT_A_TIME: usize = if cfg!(test) { 3 } else { 32 };

/// A scan. It goes through its range part by part, each with the next writes of the overlay.
pub(crate) struct Scan {
    overlay: Overlay,
    is_reversed: bool,
    /// The entries of the present part.
    part: Entries,
    /// What comes after the present part, if anything.
    rest: Option<KeyRange>,
}

impl Scan {
    pub(crate) fn new(overlay: Overlay, keys: KeyRange, is_reversed: bool) -> Self {
        Self { overlay, is_reversed, part: Box::new(iter::empty()), rest: Some(keys) }
    }

    /// The entries of the next part of the range.
    fn next_part(&mut self, keys: KeyRange) -> Entries {
        // The overlay before the tree: a write leaves the overlay when the tree has it.
        let writes = self.overlay.writes_in(&keys, self.is_reversed, WRITES_AT_A_TIME);
        let last = if self.is_reversed { writes.first_key_value() } else { writes.last_key_value() };
        let mut part = keys;
        if let Some((last, _)) = last.filter(|_| writes.len() == WRITES_AT_A_TIME) {
            // There may be more writes after the last of these.
            let mut rest = part.clone();
            match self.is_reversed {
                false => (part.1, rest.0) = (Included(last.clone()), Excluded(last.clone())),
                true => (part.0, rest.1) = (Included(last.clone()), Excluded(last.clone())),
            }
            self.rest = Some(rest).filter(may_hold_a_key);
        }
        let in_tree = self.overlay.tree.range(part);
        match self.is_reversed {
            false => Box::new(merge(writes.into_iter(), in_tree, <[u8]>::cmp)),
            true => Box::new(merge(writes.into_iter().rev(), in_tree.rev(), |one, other| other.cmp(one))),
        }
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
            self.part = self.next_part(keys);
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

/// Merges two runs of entries in this order. Where both have a key, the newer one counts; `None` removes the key.
pub(crate) fn merge(
    newer: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
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
                return Some(Ok((key, value)));
            }
        }
    })
}
