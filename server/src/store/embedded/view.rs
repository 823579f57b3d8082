//! A change's view of the records.

use std::ops::Deref;

use serde::{Serialize, de::DeserializeOwned};

use super::{codec::Records, packed};
use crate::store::StoreError;

/// The records as this batch leaves them so far.
pub(super) struct View<'v, 'd>(pub(super) &'v mut journaled_tree::View<'d>);

impl View<'_, '_> {
    /// Adds a line to a record of lines, which does not have it.
    pub(super) fn add_line(&mut self, key: Vec<u8>, line: &str) -> Result<(), StoreError> {
        let mut added = Vec::with_capacity(line.len() + 1);
        packed::push_line(&mut added, line);
        Ok(self.0.append(key, &added)?)
    }

    pub(super) fn remove_line(&mut self, key: Vec<u8>, line: &str) -> Result<(), StoreError> {
        let lines = packed::without_line(&self.bytes(&key)?, line);
        self.set_unless_empty(key, lines);
        Ok(())
    }

    /// Sets or clears a bit of a record.
    pub(super) fn set_bit(&mut self, key: Vec<u8>, number: u64, is_set: bool) -> Result<(), StoreError> {
        let mut bits = self.bytes(&key)?;
        packed::set_bit(&mut bits, number, is_set);
        self.set_unless_empty(key, bits);
        Ok(())
    }

    /// Changes a sum and returns what it was.
    pub(super) fn update<T: Serialize + DeserializeOwned + Default + Copy>(
        &mut self,
        key: Vec<u8>,
        change: impl FnOnce(T) -> T,
    ) -> Result<T, StoreError> {
        let before = self.read(&key)?.unwrap_or_default();
        self.put(key, &change(before))?;
        Ok(before)
    }

    /// Writes a record of many entries, or removes it if it has none: no bytes or no set bit.
    pub(super) fn set_unless_empty(&mut self, key: Vec<u8>, value: Vec<u8>) {
        if value.iter().all(|byte| *byte == 0) { self.remove(key) } else { self.set(key, value) }
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: &impl Serialize) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value).map_err(|error| StoreError::corrupt(&key, error))?;
        self.set(key, json);
        Ok(())
    }

    pub(super) fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.put(key, value);
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.0.remove(key);
    }
}

impl<'d> Deref for View<'_, 'd> {
    type Target = journaled_tree::View<'d>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}
