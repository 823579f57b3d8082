//! A change's view of the records.

use std::ops::{Deref, DerefMut};

use journaled_tree::Read;
use serde::Serialize;

use super::{codec::Records, packed};
use crate::store::StoreError;

/// The records as this batch leaves them so far.
pub(super) struct View<'v, 'd>(pub(super) &'v mut journaled_tree::View<'d>);

impl View<'_, '_> {
    /// Whether at least `count` records have this prefix.
    pub(super) fn has_many(&self, prefix: &[u8], count: usize) -> Result<bool, StoreError> {
        let found = self.prefix(prefix).take(count).try_fold(0, |found, entry| entry.map(|_| found + 1))?;
        Ok(found == count)
    }

    /// Adds a name to a record of names, once.
    pub(super) fn add_name(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let mut names = self.bytes(&key)?;
        if !packed::has_line(&names, name) {
            packed::push_line(&mut names, name);
            self.set(key, names);
        }
        Ok(())
    }

    pub(super) fn remove_name(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let names = packed::without_line(&self.bytes(&key)?, name);
        self.set_unless_empty(key, names);
        Ok(())
    }

    /// Changes a count and returns what it was.
    pub(super) fn count(&mut self, at: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Result<u64, StoreError> {
        let before = self.read(&at)?.unwrap_or_default();
        self.put(at, &change(before))?;
        Ok(before)
    }

    /// Writes a record of many entries, or removes it if it has none.
    pub(super) fn set_unless_empty(&mut self, key: Vec<u8>, value: Vec<u8>) {
        if value.is_empty() { self.remove(key) } else { self.set(key, value) }
    }

    pub(super) fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.put(key, value);
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: &impl Serialize) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value).map_err(|error| StoreError::corrupt(&key, error))?;
        self.set(key, json);
        Ok(())
    }
}

impl<'d> Deref for View<'_, 'd> {
    type Target = journaled_tree::View<'d>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for View<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}
