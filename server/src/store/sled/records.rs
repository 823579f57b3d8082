//! The records as readers find them: in sled, and before it in the batches that are durable and not yet in sled.
//!
//! Whoever waited for a batch is answered as soon as the journal has it; only then it is applied to sled. Meanwhile it lies
//! here, so that what was answered can be read.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
    sync::{Arc, PoisonError, RwLock},
};

use serde::de::DeserializeOwned;
use sled::IVec;

use super::{
    codec,
    journal::{self, Writes},
};
use crate::store::StoreError;

/// All records, the durable ones and no others.
#[derive(Clone)]
pub(super) struct Records {
    tree: sled::Db,
    ahead: Arc<RwLock<Ahead>>,
}

/// The last batches, the oldest first. There is always one.
type Ahead = Arc<[Arc<Batch>]>;

/// What the journal has and sled may not have yet.
pub(super) struct Batch {
    /// Its number in the journal.
    pub(super) number: u64,
    pub(super) writes: Writes,
}

impl Records {
    /// The records of a tree that has all batches up to this number.
    pub(super) fn new(tree: sled::Db, applied: u64) -> Self {
        let last = Arc::new(Batch { number: applied, writes: Writes::new() });
        Self { tree, ahead: Arc::new(RwLock::new(Arc::new([last]))) }
    }

    /// The tree alone, which lacks the last batches or parts of them.
    pub(super) fn tree(&self) -> &sled::Db {
        &self.tree
    }

    /// Lets a batch be read from now on. It must be durable.
    pub(super) fn show(&self, batch: Arc<Batch>) {
        let mut ahead = self.ahead.write().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.iter().cloned().chain([batch]).collect();
    }

    /// The tree has all batches up to this number. The last one is read here until the next is shown: that one's changes
    /// ask for much of what these wrote.
    pub(super) fn applied(&self, number: u64) {
        let mut ahead = self.ahead.write().unwrap_or_else(PoisonError::into_inner);
        let over = ahead.iter().take(ahead.len() - 1).take_while(|batch| batch.number <= number).count();
        *ahead = ahead[over..].into();
    }

    /// The number of the last batch that was shown.
    pub(super) fn last(&self) -> u64 {
        self.ahead().last().map_or(0, |batch| batch.number)
    }

    fn ahead(&self) -> Ahead {
        Arc::clone(&self.ahead.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What lies under a key, as the tree has it or would have it.
    pub(super) fn value(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        // In this order: what is no longer ahead is in the tree.
        match self.ahead().iter().rev().find_map(|batch| batch.writes.get(key)) {
            Some(value) => Ok(value.as_deref().map(IVec::from)),
            None => self.tree.get(key).map_err(StoreError::unavailable),
        }
    }

    /// Reads a record, if there is one.
    pub(super) fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.value(key)?.map(|value| codec::parse(key, &value)).transpose()
    }

    /// A record that holds many things; nothing where there is none.
    pub(super) fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.value(key)?.map_or_else(|| Ok(Vec::new()), |value| Ok(codec::open(key, &value)?.into_owned()))
    }

    /// All that lies in a range of keys, in their order.
    pub(super) fn range(&self, range: impl RangeBounds<Vec<u8>>) -> impl Iterator<Item = Entry> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        let (from, to) = (bounds.0.as_ref(), bounds.1.as_ref());
        let ahead = latest(self.ahead().iter().flat_map(|batch| batch.writes.range::<Vec<u8>, _>((from, to))));
        merged(ahead, self.tree.range(bounds), <[u8]>::cmp)
    }

    /// All that lies under keys with this beginning.
    pub(super) fn under(&self, prefix: &[u8]) -> impl Iterator<Item = Entry> {
        merged(self.ahead_under(prefix), self.tree.scan_prefix(prefix), <[u8]>::cmp)
    }

    /// The same, the last first.
    pub(super) fn under_from_the_end(&self, prefix: &[u8]) -> impl Iterator<Item = Entry> {
        let (ahead, tree) = (self.ahead_under(prefix).into_iter().rev(), self.tree.scan_prefix(prefix).rev());
        merged(ahead, tree, |one, other| other.cmp(one))
    }

    /// What lies under keys with this beginning after one, which has it or is it.
    pub(super) fn under_after(&self, prefix: &[u8], after: &[u8]) -> impl Iterator<Item = Entry> {
        let ahead = self.ahead_under(prefix).into_iter().filter(|(key, _)| **key > *after);
        let tree = self.tree.range::<&[u8], _>((Bound::Excluded(after), Bound::Unbounded));
        let tree = tree.take_while(|entry| entry.as_ref().map_or(true, |(key, _)| key.starts_with(prefix)));
        merged(ahead, tree, <[u8]>::cmp)
    }

    /// What the batches ahead write under keys with this beginning.
    fn ahead_under(&self, prefix: &[u8]) -> BTreeMap<IVec, Option<IVec>> {
        latest(self.ahead().iter().flat_map(|batch| journal::under(&batch.writes, prefix)))
    }
}

/// Writes of batches, the oldest first, to be kept when others are shown; of each key the latest.
fn latest<'w>(writes: impl Iterator<Item = (&'w Vec<u8>, &'w Option<Vec<u8>>)>) -> BTreeMap<IVec, Option<IVec>> {
    writes.map(|(key, value)| (IVec::from(&**key), value.as_deref().map(IVec::from))).collect()
}

/// A key and what lies under it.
pub(super) type Entry = Result<(IVec, IVec), StoreError>;

/// Two runs of entries, both in this order, as one. What is ahead is to be looked up first: what no longer is is in the tree.
fn merged<A, T>(ahead: A, tree: T, order: fn(&[u8], &[u8]) -> Ordering) -> Merged<A::IntoIter, T>
where
    A: IntoIterator<Item = (IVec, Option<IVec>)>,
    T: Iterator<Item = sled::Result<(IVec, IVec)>>,
{
    Merged { ahead: ahead.into_iter().peekable(), tree: tree.peekable(), order }
}

/// Two runs of entries in one order; of a key that both have, what is ahead.
struct Merged<A: Iterator, T: Iterator> {
    ahead: std::iter::Peekable<A>,
    tree: std::iter::Peekable<T>,
    order: fn(&[u8], &[u8]) -> Ordering,
}

impl<A, T> Iterator for Merged<A, T>
where
    A: Iterator<Item = (IVec, Option<IVec>)>,
    T: Iterator<Item = sled::Result<(IVec, IVec)>>,
{
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let order = match (self.ahead.peek(), self.tree.peek()) {
                (Some((ahead, _)), Some(Ok((in_tree, _)))) => (self.order)(ahead, in_tree),
                (Some(_), None) => Ordering::Less,
                (_, _) => Ordering::Greater,
            };
            if order == Ordering::Greater {
                return self.tree.next().map(|entry| entry.map_err(StoreError::unavailable));
            }
            if order == Ordering::Equal {
                self.tree.next();
            }
            // What was removed is passed over.
            if let Some((key, Some(value))) = self.ahead.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{super::applier, *};

    /// Short keys of few letters, so that runs meet; the last letter has no next one.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![b'a', b'b', 0xff]), 0..4)
    }

    fn all(entries: impl Iterator<Item = Entry>) -> Vec<(Vec<u8>, Vec<u8>)> {
        entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
    }

    #[test]
    fn what_was_read_once_is_never_older_later_whatever_is_shown_and_applied_meanwhile() {
        let tree = sled::Config::new().temporary(true).open().unwrap();
        let records = Records::new(tree.clone(), 0);
        let number = |key: &str| records.read::<u64>(key.as_bytes()).unwrap().unwrap_or(0);
        let last = 3000;
        std::thread::scope(|threads| {
            for (first, second) in [("a", "b"), ("b", "a")] {
                threads.spawn(move || {
                    let mut seen = 0;
                    while seen < last {
                        for key in [first, second] {
                            let found = number(key);
                            assert!(found >= seen, "{key} was {seen} or later and is {found}");
                            seen = found;
                        }
                    }
                });
            }
            for number in 1..=last {
                let value = number.to_string().into_bytes();
                let keys = [b"a".to_vec(), b"b".to_vec()];
                let writes: Writes = keys.iter().map(|key| (key.clone(), Some(value.clone()))).collect();
                records.show(Arc::new(Batch { number, writes }));
                // The tree comes two batches behind.
                if number > 2 {
                    let value = (number - 2).to_string();
                    for key in keys {
                        tree.insert(key, &*value).unwrap();
                    }
                    records.applied(number - 2);
                }
            }
        });
    }

    proptest! {
        #[test]
        fn readers_find_what_the_tree_will_hold_once_all_batches_are_applied(
            in_tree in prop::collection::btree_map(key(), any::<u8>(), 0..20),
            batches in prop::collection::vec(prop::collection::btree_map(key(), any::<Option<u8>>(), 0..12), 0..4),
            applied in 0_u64..4,
            prefix in key(),
            after in key(),
        ) {
            let tree = sled::Config::new().temporary(true).open().unwrap();
            let mut model = BTreeMap::new();
            for (key, value) in in_tree {
                tree.insert(&*key, &[value]).unwrap();
                model.insert(key, vec![value]);
            }
            let records = Records::new(tree.clone(), 0);
            let mut number = 0;
            for batch in batches {
                number += 1;
                let writes: Writes =
                    batch.into_iter().map(|(key, value)| (key, value.map(|value| vec![value]))).collect();
                for (key, value) in &writes {
                    match value {
                        Some(value) => drop(model.insert(key.clone(), value.clone())),
                        None => drop(model.remove(key)),
                    }
                }
                records.show(Arc::new(Batch { number, writes: writes.clone() }));
                if number <= applied {
                    applier::apply(&tree, &writes).unwrap();
                    records.applied(number);
                }
            }

            prop_assert_eq!(records.last(), number);
            prop_assert_eq!(records.bytes(&prefix).unwrap(), model.get(&prefix).cloned().unwrap_or_default());
            let from: Vec<_> = model.range(prefix.clone()..).map(|(key, value)| (key.clone(), value.clone())).collect();
            prop_assert_eq!(all(records.range(prefix.clone()..)), from);
            let mut under: Vec<_> = model.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
            prop_assert_eq!(all(records.under(&prefix)), under.clone());
            let after = prefix.clone().max(after);
            let rest: Vec<_> = under.iter().filter(|(key, _)| *key > after).cloned().collect();
            prop_assert_eq!(all(records.under_after(&prefix, &after)), rest);
            under.reverse();
            prop_assert_eq!(all(records.under_from_the_end(&prefix)), under);
        }
    }
}
