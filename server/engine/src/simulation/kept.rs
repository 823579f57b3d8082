//! A disk's state: for the running process, and for a start after a power cut.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::cut::Cut;

/// A state whose unsynced changes the disk may lose.
#[derive(Clone)]
pub(super) struct Kept<S, C> {
    /// What the process sees.
    pub(super) now: S,
    /// What is certainly on the disk.
    pub(super) durable: S,
    /// The changes since the last sync.
    pub(super) unsynced: Vec<Unsynced<C>>,
}

/// A change since the last sync.
#[derive(Clone)]
pub(super) struct Unsynced<C> {
    /// The number of the call that made it.
    pub(super) call: u64,
    pub(super) change: C,
}

pub(super) trait Change<S> {
    fn apply(&self, state: &mut S);
}

/// Keys that one call sets or removes in a map, all or none.
pub(super) type Writes<K, V> = Vec<(K, Option<V>)>;

impl<K: Ord + Clone, V: Clone> Change<BTreeMap<K, V>> for Writes<K, V> {
    fn apply(&self, map: &mut BTreeMap<K, V>) {
        for (key, value) in self {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
    }
}

impl<S: Default, C> Default for Kept<S, C> {
    fn default() -> Self {
        Self { now: S::default(), durable: S::default(), unsynced: Vec::new() }
    }
}

impl<S: Clone, C: Change<S>> Kept<S, C> {
    pub(super) fn change(&mut self, call: u64, change: C) {
        change.apply(&mut self.now);
        self.unsynced.push(Unsynced { call, change });
    }

    /// Makes the first `changes` unsynced changes durable.
    pub(super) fn sync(&mut self, changes: usize) {
        self.unsynced.drain(..changes).for_each(|unsynced| unsynced.change.apply(&mut self.durable));
    }

    pub(super) fn sync_all(&mut self) {
        self.sync(self.unsynced.len());
    }

    /// A power cut, which keeps each change whole or not at all.
    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        self.unsynced.retain(|unsynced| cut.keeps(rng, unsynced.call));
        self.sync_all();
        self.read_again();
    }

    /// Shows the process the durable state and the remaining unsynced changes.
    pub(super) fn read_again(&mut self) {
        self.now.clone_from(&self.durable);
        self.unsynced.iter().for_each(|unsynced| unsynced.change.apply(&mut self.now));
    }
}
