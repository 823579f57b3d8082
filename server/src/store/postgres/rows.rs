//! Rows of one table while a batch is decided: as the database has them, and what the batch makes of them.

use std::collections::{BTreeMap, HashMap};

/// The rows that a batch may read or write.
pub(super) struct Rows<K, V> {
    /// As they were read, locked until the batch ends.
    stored: HashMap<K, V>,
    /// The writes of the changes before this one.
    batch: BTreeMap<K, Option<V>>,
    /// The writes of this change.
    change: BTreeMap<K, Option<V>>,
}

/// What to write to a table.
pub(super) struct Written<K, V> {
    pub(super) inserted: Vec<(K, V)>,
    pub(super) updated: Vec<(K, V)>,
    pub(super) deleted: Vec<K>,
}

impl<K, V> Default for Rows<K, V> {
    fn default() -> Self {
        Self { stored: HashMap::new(), batch: BTreeMap::new(), change: BTreeMap::new() }
    }
}

impl<K: Ord + std::hash::Hash + Eq, V> Rows<K, V> {
    /// Adds a row that was read from the database.
    pub(super) fn read(&mut self, key: K, row: V) {
        self.stored.insert(key, row);
    }

    /// The row as this change sees it.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let written = self.change.get(key).or_else(|| self.batch.get(key));
        written.map_or_else(|| self.stored.get(key), Option::as_ref)
    }

    pub(super) fn put(&mut self, key: K, row: V) {
        self.change.insert(key, Some(row));
    }

    pub(super) fn remove(&mut self, key: K) {
        self.change.insert(key, None);
    }

    /// Ends a change: adds its writes to the batch, or drops them.
    pub(super) fn end_change(&mut self, is_accepted: bool) {
        let change = std::mem::take(&mut self.change);
        if is_accepted {
            self.batch.extend(change);
        }
    }

    /// The writes of the batch, where no row was read.
    pub(super) fn into_unread(self) -> BTreeMap<K, Option<V>> {
        self.batch
    }

    /// The writes of the batch, each kind in the order of the keys.
    pub(super) fn into_written(self) -> Written<K, V> {
        let mut written = Written { inserted: Vec::new(), updated: Vec::new(), deleted: Vec::new() };
        for (key, row) in self.batch {
            match (row, self.stored.contains_key(&key)) {
                (Some(row), false) => written.inserted.push((key, row)),
                (Some(row), true) => written.updated.push((key, row)),
                (None, true) => written.deleted.push(key),
                (None, false) => {}
            }
        }
        written
    }
}
