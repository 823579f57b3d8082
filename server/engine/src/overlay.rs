//! The overlay: batches that are durable and not yet in the tree.
//!
//! A commit is answered as soon as the journal has its batch; only then the batch is applied to the tree. Until then it
//! is here, so that a reader finds everything that was answered.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    iter,
    ops::Bound::{Excluded, Included},
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    error::TreeError,
    read::{Entries, Entry, KeyRange},
    tree::Tree,
    writes::Writes,
};

/// A tree with the overlay over it. Clones share both.
#[derive(Clone)]
pub(crate) struct Overlay {
    /// The tree alone, which may lack the last batches or parts of them.
    pub(crate) tree: Tree,
    batches: Arc<RwLock<Batches>>,
}

/// The last batches, oldest first. There is always one.
type Batches = Arc<[Arc<Batch>]>;

/// A batch that the journal has.
pub(crate) struct Batch {
    /// Its number in the journal.
    pub(crate) number: u64,
    pub(crate) writes: Writes,
}

impl Overlay {
    /// Over a tree that has all batches up to this number.
    pub(crate) fn new(tree: Tree, applied: u64) -> Self {
        let last = Arc::new(Batch { number: applied, writes: Writes::new() });
        Self { tree, batches: Arc::new(RwLock::new(Arc::new([last]))) }
    }

    /// Shows a batch to readers. It must be durable.
    pub(crate) fn push(&self, batch: Arc<Batch>) {
        let mut batches = self.batches.write().unwrap_or_else(PoisonError::into_inner);
        *batches = batches.iter().cloned().chain([batch]).collect();
    }

    /// Drops the batches up to this number: the tree has them. The last batch stays until the next is pushed, since that
    /// batch's changes read much of what this one wrote.
    pub(crate) fn applied(&self, number: u64) {
        let mut batches = self.batches.write().unwrap_or_else(PoisonError::into_inner);
        let over = batches.iter().take(batches.len() - 1).take_while(|batch| batch.number <= number).count();
        *batches = batches[over..].into();
    }

    /// The number of the last batch.
    pub(crate) fn last(&self) -> u64 {
        self.batches().last().map_or(0, |batch| batch.number)
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        // The overlay first: a batch leaves it when the tree has it.
        match self.batches().iter().rev().find_map(|batch| batch.writes.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.tree.get(key),
        }
    }

    /// Returns the entries of a key range, with `newer` writes over them, oldest first.
    pub(crate) fn scan(&self, keys: KeyRange, is_reversed: bool, newer: &[&Writes]) -> Entries {
        // sled and `BTreeMap` panic on a range that cannot hold a key.
        if let (Included(start) | Excluded(start), Included(end) | Excluded(end)) = &keys
            && (start > end || (start == end && !matches!(keys, (Included(_), Included(_)))))
        {
            return Box::new(iter::empty());
        }
        // The overlay first: a batch leaves it when the tree has it.
        let newer = self.newer(&keys, newer).into_iter();
        let in_tree = self.tree.range(keys);
        match is_reversed {
            false => Box::new(merge(newer, in_tree, <[u8]>::cmp)),
            true => Box::new(merge(newer.rev(), in_tree.rev(), |one, other| other.cmp(one))),
        }
    }

    /// Returns the latest write to each key of a range that the tree may not have.
    fn newer(&self, keys: &KeyRange, newer: &[&Writes]) -> Writes {
        let batches = self.batches();
        let mut latest = BTreeMap::new();
        for writes in batches.iter().map(|batch| &batch.writes).chain(newer.iter().copied()) {
            latest.extend(writes.range::<Vec<u8>, _>((keys.0.as_ref(), keys.1.as_ref())));
        }
        latest.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn batches(&self) -> Batches {
        Arc::clone(&self.batches.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Merges two runs of entries in this order. Where both have a key, the newer one counts; `None` removes the key.
fn merge(
    newer: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    in_tree: impl Iterator<Item = Result<Entry, TreeError>>,
    order: fn(&[u8], &[u8]) -> Ordering,
) -> impl Iterator<Item = Result<Entry, TreeError>> {
    let (mut newer, mut in_tree) = (newer.peekable(), in_tree.peekable());
    iter::from_fn(move || {
        loop {
            let order = match (newer.peek(), in_tree.peek()) {
                (Some((newer, _)), Some(Ok((in_tree, _)))) => order(newer, in_tree),
                (Some(_), None) => Ordering::Less,
                (_, _) => Ordering::Greater,
            };
            if order == Ordering::Greater {
                return in_tree.next();
            }
            if order == Ordering::Equal {
                in_tree.next();
            }
            if let Some((key, Some(value))) = newer.next() {
                return Some(Ok((key, value)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{disk::SystemDisk, layout::tests::Plain, read::Read, view::View};

    /// Short keys of few letters, so that runs meet; the last letter has no next one, and keys of one are compressed.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![b'a', b'z', 0xff]), 0..4)
    }

    fn all(entries: Entries) -> Vec<Entry> {
        entries.map(Result::unwrap).collect()
    }

    /// A tree in a directory that is removed with it. It has a key that no test asks for, as each tree has.
    fn tree() -> (tempfile::TempDir, Tree) {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree::open(&SystemDisk::shared(), &directory.path().join("tree"), &Plain::shared()).unwrap();
        (directory, tree)
    }

    #[test]
    fn a_reader_never_sees_an_older_value_after_a_newer_one() {
        let (_directory, tree) = tree();
        let overlay = Overlay::new(tree.clone(), 0);
        let number = |key: &str| {
            overlay
                .get(key.as_bytes())
                .unwrap()
                .map_or(0, |value| String::from_utf8(value).unwrap().parse::<u64>().unwrap())
        };
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
            let writes_of = |number: u64| -> Writes {
                let value = number.to_string().into_bytes();
                [b"a", b"b"].map(|key| (key.to_vec(), Some(value.clone()))).into()
            };
            for number in 1..=last {
                overlay.push(Arc::new(Batch { number, writes: writes_of(number) }));
                // The tree comes two batches behind.
                if number > 2 {
                    tree.apply(&writes_of(number - 2)).unwrap();
                    overlay.applied(number - 2);
                }
            }
        });
    }

    proptest! {
        #[test]
        fn readers_see_the_state_of_the_tree_after_all_batches(
            in_tree in prop::collection::btree_map(key(), any::<u8>(), 0..20),
            batches in prop::collection::vec(prop::collection::btree_map(key(), any::<Option<u8>>(), 0..12), 0..5),
            applied in 0_u64..5,
            prefix in key(),
            after in key(),
            end in key(),
        ) {
            let (_directory, tree) = tree();
            let as_writes = |batch: BTreeMap<Vec<u8>, Option<u8>>| -> Writes {
                batch.into_iter().map(|(key, value)| (key, value.map(|value| vec![value]))).collect()
            };
            let mut model: BTreeMap<_, _> = in_tree.into_iter().map(|(key, value)| (key, vec![value])).collect();
            tree.apply(&model.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()).unwrap();
            let overlay = Overlay::new(tree.clone(), 0);
            let mut batches: Vec<_> = batches.into_iter().map(as_writes).collect();
            for (key, value) in batches.iter().flatten() {
                match value {
                    Some(value) => drop(model.insert(key.clone(), value.clone())),
                    None => drop(model.remove(key)),
                }
            }
            // The last two are of a batch under way: of a change before, and of the one that looks.
            let (own, before) = (batches.pop().unwrap_or_default(), batches.pop().unwrap_or_default());
            for (number, writes) in (1..).zip(batches) {
                overlay.push(Arc::new(Batch { number, writes: writes.clone() }));
                if number <= applied {
                    tree.apply(&writes).unwrap();
                    overlay.applied(number);
                }
            }
            let mut view = View::new(&overlay);
            for (writes, is_own) in [(before, false), (own, true)] {
                let write = |view: &mut View<'_>| {
                    for (key, value) in writes {
                        match value {
                            Some(value) => view.put(key, value),
                            None => view.remove(key),
                        }
                    }
                };
                let decide = |view: &mut View<'_>| {
                    write(view);
                    Ok::<_, TreeError>(())
                };
                if is_own { decide(&mut view) } else { view.take(decide) }.unwrap();
            }

            let found = view.get(&prefix).unwrap();
            prop_assert_eq!(found.as_deref(), model.get(&prefix).map(Vec::as_slice));
            let in_range: Vec<_> = model.clone().into_iter().filter(|(key, _)| (&prefix..&end).contains(&key)).collect();
            prop_assert_eq!(all(view.range(prefix.clone()..end)), in_range);
            let from: Vec<_> = model.clone().into_iter().filter(|(key, _)| *key >= prefix).collect();
            prop_assert_eq!(all(view.range(prefix.clone()..)), from);
            let mut under: Vec<_> = model.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
            prop_assert_eq!(all(view.prefix(&prefix)), under.clone());
            let rest: Vec<_> = under.iter().filter(|(key, _)| *key > after).cloned().collect();
            prop_assert_eq!(all(view.prefix_after(&prefix, &after)), rest);
            under.reverse();
            prop_assert_eq!(all(view.prefix_rev(&prefix)), under);
        }
    }
}
