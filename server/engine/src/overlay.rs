//! The overlay: durable writes that are not yet in the tree.
//!
//! Writes gather here until the applier applies them to the tree, many batches at a time and each key once.

use std::{
    cmp::Ordering,
    ops::Bound::Excluded,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    vec,
};

use crate::{
    entries::{Entries, Entry, KeyRange},
    error::TreeError,
    merge::{first, may_hold_a_key, merge},
    tree::Tree,
    writes::Writes,
};

/// How many entries are read first, because many scans want only one.
const ENTRIES_AT_FIRST: usize = if cfg!(test) { 2 } else { 4 };
/// How many entries are read at a time after the first ones.
const ENTRIES_AT_A_TIME: usize = if cfg!(test) { 3 } else { 32 };

/// A tree with the overlay over it. Clones share both.
#[derive(Clone)]
pub(crate) struct Overlay {
    /// The tree alone, which may lack the last batches or parts of them.
    pub(crate) tree: Tree,
    layers: Arc<RwLock<Layers>>,
}

/// The latest write to each key.
struct Layers {
    /// Writes of batches that the applier has not taken.
    gathered: Writes,
    /// Writes of earlier batches, which the applier has taken.
    taken: Arc<Writes>,
    last: u64,
}

impl Overlay {
    /// An overlay over a tree that has all batches up to this number.
    pub(crate) fn new(tree: Tree, applied: u64) -> Self {
        let layers = Layers { gathered: Writes::new(), taken: Arc::default(), last: applied };
        Self { tree, layers: Arc::new(RwLock::new(layers)) }
    }

    /// Makes a batch visible to readers. It must be durable.
    pub(crate) fn push(&self, number: u64, writes: Writes) {
        let mut layers = self.write();
        layers.gathered.extend(writes);
        layers.last = number;
    }

    /// Takes the gathered writes, to apply them to the tree. Writes taken earlier must be in the tree. Also returns the
    /// number of the last batch in them.
    pub(crate) fn take(&self) -> (u64, Arc<Writes>) {
        let mut layers = self.write();
        debug_assert!(layers.taken.is_empty(), "what was taken before is in the tree");
        layers.taken = Arc::new(std::mem::take(&mut layers.gathered));
        (layers.last, Arc::clone(&layers.taken))
    }

    /// Drops the taken writes: the tree has them.
    pub(crate) fn applied(&self) {
        let taken = std::mem::take(&mut self.write().taken);
        // Readers need not wait for this.
        drop(taken);
    }

    pub(crate) fn last(&self) -> u64 {
        self.read().last
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        // Look in the overlay first: a write leaves it only when the tree has it.
        let layers = self.read();
        if let Some(value) = layers.gathered.get(key).or_else(|| layers.taken.get(key)) {
            return Ok(value.clone());
        }
        drop(layers);
        self.tree.get(key)
    }

    /// Returns the entries of a key range, in key order or reversed.
    pub(crate) fn scan(&self, keys: KeyRange, is_reversed: bool) -> Entries {
        let (part, rest) = (Vec::new().into_iter(), Some(keys).filter(may_hold_a_key));
        Box::new(Scan { overlay: self.clone(), is_reversed, at_most: ENTRIES_AT_FIRST, part, rest })
    }

    /// The first entries of a range, or the last ones if it is reversed: about `at_most`. Fewer mean that there are no more.
    fn part(&self, keys: KeyRange, is_reversed: bool, at_most: usize) -> Vec<Result<Entry, TreeError>> {
        // While the layers are locked, no write leaves them. So each write is in them or in the tree.
        let layers = self.read();
        let [gathered, taken] = [&layers.gathered, &*layers.taken].map(|layer| {
            let range = layer.range::<Vec<u8>, _>((keys.0.as_ref(), keys.1.as_ref()));
            range.map(|(key, value)| (&**key, value.as_deref()))
        });
        let in_tree = self.tree.range(keys.clone(), is_reversed);
        match is_reversed {
            false => first(merge(gathered, merge(taken, in_tree, <[u8]>::cmp), <[u8]>::cmp), at_most),
            true => first(merge(gathered.rev(), merge(taken.rev(), in_tree, down), down), at_most),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn down(one: &[u8], other: &[u8]) -> Ordering {
    other.cmp(one)
}

/// A scan, which reads its range part by part.
struct Scan {
    overlay: Overlay,
    is_reversed: bool,
    at_most: usize,
    part: vec::IntoIter<Result<Entry, TreeError>>,
    /// The rest of the range after this part, if there is one.
    rest: Option<KeyRange>,
}

impl Scan {
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

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        ops::{
            Bound::{Included, Unbounded},
            RangeBounds,
        },
    };

    use proptest::prelude::*;

    use super::*;
    use crate::{disk::SystemDisk, layout::tests::Plain, view::View};

    /// Short keys of few letters, so that runs have common keys. The last letter has no successor, and one letter's keys are
    /// compressed.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![b'a', b'z', 0xff]), 0..4)
    }

    fn all(entries: Entries) -> Vec<Entry> {
        entries.map(Result::unwrap).collect()
    }

    /// A tree in a temporary directory. It has one key that no test asks for, as every tree has.
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
                // The tree lags some batches behind.
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
            start in key(),
            end in key(),
        ) {
            let (_directory, tree) = tree();
            let as_writes = |batch: BTreeMap<Vec<u8>, Option<u8>>| -> Writes {
                batch.into_iter().map(|(key, value)| (key, value.map(|value| vec![value]))).collect()
            };
            let mut model: BTreeMap<_, _> = in_tree.into_iter().map(|(key, value)| (key, vec![value])).collect();
            tree.apply(&model.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()).unwrap();
            let overlay = Overlay::new(tree.clone(), 0);
            let set = |model: &mut BTreeMap<_, _>, writes: &Writes| {
                for (key, value) in writes {
                    match value {
                        Some(value) => drop(model.insert(key.clone(), value.clone())),
                        None => drop(model.remove(key)),
                    }
                }
            };
            let mut batches: Vec<_> = batches.into_iter().map(as_writes).collect();
            // The last two batches are in progress: an earlier change's, and the reading change's own.
            let (own, before) = (batches.pop().unwrap_or_default(), batches.pop().unwrap_or_default());
            for (number, writes) in (1..).zip(batches) {
                set(&mut model, &writes);
                overlay.push(number, writes);
                if number == taken {
                    let (_, writes) = overlay.take();
                    if is_applied {
                        tree.apply(&writes).unwrap();
                        overlay.applied();
                    }
                }
            }
            for (keys, is_reversed) in [
                ((Included(start.clone()), Excluded(end.clone())), false),
                ((Included(start.clone()), Included(end.clone())), true),
                ((Excluded(start.clone()), Unbounded), false),
                ((Unbounded, Included(end.clone())), true),
            ] {
                let is_within = |key: &Vec<u8>| RangeBounds::<Vec<u8>>::contains(&keys, key);
                let mut wanted: Vec<_> = model.clone().into_iter().filter(|(key, _)| is_within(key)).collect();
                if is_reversed {
                    wanted.reverse();
                }
                prop_assert_eq!(all(overlay.scan(keys, is_reversed)), wanted);
            }

            let (own, before) = ((own, &appended[..appended.len() / 2]), (before, &appended[appended.len() / 2..]));
            let mut view = View::new(&overlay);
            for ((writes, appended), is_own) in [(before, false), (own, true)] {
                set(&mut model, &writes);
                for (key, byte) in appended {
                    model.entry(key.clone()).or_default().push(*byte);
                }
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
            for key in model.keys().chain([&start, &end]) {
                let found = view.get(key).unwrap();
                prop_assert_eq!(found.as_deref(), model.get(key).map(Vec::as_slice));
            }
        }
    }
}
