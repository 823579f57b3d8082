//! The overlay: what is durable and not yet in the tree.
//!
//! A commit is answered as soon as the journal has its batch. Its writes gather here, and the applier brings them to the tree
//! many batches at a time, each key once. Until then a reader finds here everything that was answered.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    iter,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    error::TreeError,
    read::{Entries, Entry, KeyRange},
    scan::{Scan, first, may_hold_a_key, merge, merge_writes},
    tree::Tree,
    writes::Writes,
};

/// A tree with the overlay over it. Clones share both.
#[derive(Clone)]
pub(crate) struct Overlay {
    /// The tree alone, which may lack the last batches or parts of them.
    pub(crate) tree: Tree,
    layers: Arc<RwLock<Layers>>,
}

/// The latest write to each key.
struct Layers {
    /// Of the batches that the applier has not taken.
    gathered: Writes,
    /// Of the batches before them, which the applier has taken.
    taken: Arc<Writes>,
    /// The number of the last batch.
    last: u64,
}

impl Overlay {
    /// Over a tree that has all batches up to this number.
    pub(crate) fn new(tree: Tree, applied: u64) -> Self {
        let layers = Layers { gathered: Writes::new(), taken: Arc::default(), last: applied };
        Self { tree, layers: Arc::new(RwLock::new(layers)) }
    }

    /// Shows a batch to readers. It must be durable.
    pub(crate) fn push(&self, number: u64, writes: Writes) {
        let mut layers = self.write();
        layers.gathered.extend(writes);
        layers.last = number;
    }

    /// Takes what has gathered, to be applied to the tree. What was taken before must be in the tree.
    /// Also returns the number of the last batch in it.
    pub(crate) fn take(&self) -> (u64, Arc<Writes>) {
        let mut layers = self.write();
        debug_assert!(layers.taken.is_empty(), "what was taken before is in the tree");
        layers.taken = Arc::new(std::mem::take(&mut layers.gathered));
        (layers.last, Arc::clone(&layers.taken))
    }

    /// Drops what was taken: the tree has it.
    pub(crate) fn applied(&self) {
        let taken = std::mem::take(&mut self.write().taken);
        // Readers need not wait for this.
        drop(taken);
    }

    /// The number of the last batch.
    pub(crate) fn last(&self) -> u64 {
        self.read().last
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        // The overlay first: a write leaves it when the tree has it.
        let layers = self.read();
        if let Some(value) = layers.gathered.get(key).or_else(|| layers.taken.get(key)) {
            return Ok(value.clone());
        }
        drop(layers);
        self.tree.get(key)
    }

    /// Returns the entries of a key range, with `newer` writes over them, oldest first.
    pub(crate) fn scan(&self, keys: KeyRange, is_reversed: bool, newer: &[&Writes]) -> Entries {
        if !may_hold_a_key(&keys) {
            return Box::new(iter::empty());
        }
        let newer = latest(newer.iter().copied(), &keys);
        let durable = Scan::new(self.clone(), keys, is_reversed);
        match is_reversed {
            _ if newer.is_empty() => Box::new(durable),
            false => Box::new(merge(newer.into_iter(), durable, <[u8]>::cmp)),
            true => Box::new(merge(newer.into_iter().rev(), durable, |one, other| other.cmp(one))),
        }
    }

    /// The first entries of a range, or the last ones if it is reversed: about this many. Fewer mean that there are no more.
    pub(crate) fn part(&self, keys: KeyRange, is_reversed: bool, at_most: usize) -> Vec<Result<Entry, TreeError>> {
        // While the layers are locked nothing leaves them, so each write is in them or in the tree.
        let layers = self.read();
        let [taken, gathered] = [&*layers.taken, &layers.gathered].map(|layer| {
            let range = layer.range::<Vec<u8>, _>((keys.0.as_ref(), keys.1.as_ref()));
            range.map(|(key, value)| (&**key, value.as_deref()))
        });
        let in_tree = self.tree.range(keys.clone());
        match is_reversed {
            false => first(merge(merge_writes(gathered, taken, <[u8]>::cmp), in_tree, <[u8]>::cmp), at_most),
            true => {
                let down: fn(&[u8], &[u8]) -> Ordering = |one, other| other.cmp(one);
                first(merge(merge_writes(gathered.rev(), taken.rev(), down), in_tree.rev(), down), at_most)
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The latest write to each key of a range, of writes that come oldest first.
fn latest<'w>(writes: impl Iterator<Item = &'w Writes>, keys: &KeyRange) -> Writes {
    let mut latest = BTreeMap::new();
    for writes in writes {
        latest.extend(writes.range::<Vec<u8>, _>((keys.0.as_ref(), keys.1.as_ref())));
    }
    latest.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect()
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
        let tree = Tree::open(&SystemDisk, &directory.path().join("tree"), &Plain::shared()).unwrap();
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
                overlay.push(number, writes_of(number));
                // The tree comes some batches behind.
                if number.is_multiple_of(3) {
                    tree.apply(&overlay.take().1).unwrap();
                    overlay.applied();
                }
            }
        });
    }

    proptest! {
        #[test]
        fn readers_see_the_state_of_the_tree_after_all_batches(
            in_tree in prop::collection::btree_map(key(), any::<u8>(), 0..20),
            batches in prop::collection::vec(prop::collection::btree_map(key(), any::<Option<u8>>(), 0..12), 0..5),
            taken in 0_u64..5,
            is_applied: bool,
            appended in prop::collection::vec((key(), any::<u8>()), 0..12),
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
            // The last two are of a batch under way: of a change before, and of the one that looks.
            let (own, before) = (batches.pop().unwrap_or_default(), batches.pop().unwrap_or_default());
            let (own, before) = ((own, &appended[..appended.len() / 2]), (before, &appended[appended.len() / 2..]));
            for (writes, appended) in batches.iter().map(|writes| (writes, &[][..])).chain([(&before.0, before.1), (&own.0, own.1)]) {
                for (key, value) in writes {
                    match value {
                        Some(value) => drop(model.insert(key.clone(), value.clone())),
                        None => drop(model.remove(key)),
                    }
                }
                for (key, byte) in appended {
                    model.entry(key.clone()).or_default().push(*byte);
                }
            }
            for (number, writes) in (1..).zip(batches) {
                overlay.push(number, writes);
                if number == taken {
                    let (_, writes) = overlay.take();
                    if is_applied {
                        tree.apply(&writes).unwrap();
                        overlay.applied();
                    }
                }
            }
            let mut view = View::new(&overlay);
            for ((writes, appended), is_own) in [(before, false), (own, true)] {
                let decide = |view: &mut View<'_>| {
                    for (key, value) in writes {
                        match value {
                            Some(value) => view.put(key, value),
                            None => view.remove(key),
                        }
                    }
                    appended.iter().try_for_each(|(key, byte)| view.append(key.clone(), &[*byte]))
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
