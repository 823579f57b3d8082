//! A map on a disk: for the process that runs, and for a start after a power cut.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::cut::{Cut, Unsynced};

/// A map of which the disk may lose what was not synced.
pub(super) struct Kept<K, V> {
    /// What the process sees.
    pub(super) now: BTreeMap<K, V>,
    /// What is on the disk for certain.
    durable: BTreeMap<K, V>,
    /// What the process did since the last sync.
    pub(super) unsynced: Vec<Unsynced<Change<K, V>>>,
}

/// Keys that one call sets or removes, all or none.
pub(super) type Change<K, V> = Vec<(K, Option<V>)>;

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), durable: BTreeMap::new(), unsynced: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Kept<K, V> {
    pub(super) fn change(&mut self, call: u64, change: Change<K, V>) {
        apply(&mut self.now, change.clone());
        self.unsynced.push(Unsynced { call, change });
    }

    /// Makes the first changes since the last sync durable.
    pub(super) fn sync(&mut self, changes: usize) {
        for Unsynced { change, .. } in self.unsynced.drain(..changes) {
            apply(&mut self.durable, change);
        }
    }

    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        for Unsynced { call, change } in self.unsynced.drain(..) {
            if cut.keeps(rng, call) {
                apply(&mut self.durable, change);
            }
        }
        self.read_again();
    }

    /// The process sees what is durable, and the changes since the last sync that are left.
    pub(super) fn read_again(&mut self) {
        self.now.clone_from(&self.durable);
        for Unsynced { change, .. } in &self.unsynced {
            apply(&mut self.now, change.clone());
        }
    }
}

fn apply<K: Ord, V>(map: &mut BTreeMap<K, V>, change: Change<K, V>) {
    for (key, value) in change {
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
    }
}
