//! The records as they will be once the batch under way is made.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};

use super::{
    codec::parse,
    journal::{self, Writes},
    packed,
    records::Records,
};
use crate::store::StoreError;

/// The records as they will be once the batch under way is made.
pub(super) struct View<'r> {
    records: &'r Records,
    batch: Writes,
    change: Writes,
}

impl<'r> View<'r> {
    pub(super) fn new(records: &'r Records) -> Self {
        Self { records, batch: BTreeMap::new(), change: BTreeMap::new() }
    }

    /// The writes of all changes that were taken.
    pub(super) fn into_writes(self) -> Writes {
        self.batch
    }

    /// The records before the batch.
    pub(super) fn records(&self) -> &'r Records {
        self.records
    }

    /// Takes what some work writes into the batch, unless it fails.
    pub(super) fn stage<T, E>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = work(self);
        let writes = std::mem::take(&mut self.change);
        if outcome.is_ok() {
            self.batch.extend(writes);
        }
        outcome
    }

    /// Whether at least `count` records have this prefix. Reads at most `count` of them beyond those that the batch
    /// writes.
    pub(super) fn has(&self, prefix: &[u8], count: usize) -> Result<bool, StoreError> {
        let mut written: BTreeMap<&[u8], bool> = BTreeMap::new();
        for (key, value) in journal::under(&self.batch, prefix).chain(journal::under(&self.change, prefix)) {
            written.insert(key, value.is_some());
        }
        let mut missing = count.saturating_sub(written.values().filter(|is_there| **is_there).count());
        for entry in self.records.under(prefix) {
            if missing == 0 {
                break;
            }
            let (key, _) = entry?;
            missing -= usize::from(!written.contains_key(&*key));
        }
        Ok(missing == 0)
    }

    /// Names something in a record of an index in time order, once.
    pub(super) fn enlist(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let mut names = self.bytes(&key)?;
        if !packed::has_line(&names, name) {
            packed::push_line(&mut names, name);
            self.set(key, names);
        }
        Ok(())
    }

    pub(super) fn delist(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let names = packed::without_line(&self.bytes(&key)?, name);
        self.set_unless_empty(key, names);
        Ok(())
    }

    /// Changes a number of entries; returns what it was.
    pub(super) fn count(&mut self, at: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Result<u64, StoreError> {
        let before = self.read(&at)?.unwrap_or_default();
        self.put(at, &change(before))?;
        Ok(before)
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.change.insert(key, None);
    }

    /// A record that holds many things; none where it would hold nothing.
    pub(super) fn set_unless_empty(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change.insert(key, (!value.is_empty()).then_some(value));
    }

    pub(super) fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change.insert(key, Some(value));
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: &impl Serialize) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value).map_err(|error| StoreError::corrupt(&key, error))?;
        self.set(key, json);
        Ok(())
    }

    /// A record that holds many things; nothing where there is none.
    pub(super) fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(bytes) => Ok(bytes.clone().unwrap_or_default()),
            None => self.records.bytes(key),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(Some(json)) => parse(key, json).map(Some),
            Some(None) => Ok(None),
            None => self.records.read(key),
        }
    }
}
