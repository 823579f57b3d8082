//! Bytes in memory, for tests: an ordered map, which forgets everything when it is dropped.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};

use super::{AtRest, Bytes, Cell, Decision, KeyValue, View};
use crate::StoreError;

/// One cell in memory.
#[derive(Default)]
pub struct Memory {
    values: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// How many of the next commits fail.
    failing: AtomicU32,
    /// The keys whose values cannot be read.
    damaged: Mutex<BTreeSet<Vec<u8>>>,
}

impl Memory {
    /// Loses a value, as a damaged place does.
    pub fn lose(&self, key: &[u8]) {
        self.values().remove(key);
    }

    /// Sets a value, as damage does.
    pub fn set(&self, key: &[u8], value: Vec<u8>) {
        self.values().insert(key.to_vec(), value);
    }

    /// Makes the value under a key unreadable.
    pub fn damage(&self, key: &[u8]) {
        self.damaged.lock().insert(key.to_vec());
    }

    /// Makes all values readable again.
    pub fn mend(&self) {
        self.damaged.lock().clear();
    }

    fn check(&self, key: &[u8]) -> Result<(), StoreError> {
        let is_damaged = self.damaged.lock().contains(key);
        if is_damaged { Err(StoreError::corrupt(key, "it is damaged")) } else { Ok(()) }
    }

    /// Makes the next `commits` commits fail, as on a full disk.
    pub fn fail_commits(&self, commits: u32) {
        self.failing.store(commits, Ordering::SeqCst);
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.values.lock()
    }
}

#[async_trait]
impl Bytes for Memory {
    fn packs(&self) -> bool {
        false
    }

    async fn get(&self, _cell: Cell, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let values = self.values();
        keys.iter().map(|key| self.check(key).map(|()| values.get(key).cloned())).collect()
    }

    async fn range(
        &self,
        _cell: Cell,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.values();
        let found = values.range(keys).map(|(key, value)| self.check(key).map(|()| (key.clone(), value.clone())));
        Ok(if is_reversed { found.rev().take(at_most).collect() } else { found.take(at_most).collect() })
    }

    async fn commit(&self, _cell: Cell, mut decision: Decision) -> Result<(), StoreError> {
        let fails = self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() {
            return Err(StoreError::unavailable("no space left on the device"));
        }
        let mut values = self.values();
        let mut view = MapView { values: &values, writes: BTreeMap::new() };
        let is_accepted = decision(&mut view)?;
        if is_accepted {
            for (key, value) in view.writes {
                match value {
                    Some(value) => drop(values.insert(key, value)),
                    None => drop(values.remove(&key)),
                }
            }
        }
        Ok(())
    }
}

impl AtRest for Memory {
    fn count(&self) -> Result<u64, StoreError> {
        Ok(self.values().len() as u64)
    }
}

struct MapView<'m> {
    values: &'m BTreeMap<Vec<u8>, Vec<u8>>,
    /// `None` removes the value.
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl View for MapView<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        let value = match self.writes.get(key) {
            Some(written) => written.as_ref(),
            None => self.values.get(key),
        };
        Ok(value.map(|value| Cow::Borrowed(&value[..])))
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.writes.insert(key, Some(value));
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.writes.insert(key, None);
    }
}
