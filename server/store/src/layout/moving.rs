//! Moves the values of a store into another one.
//!
//! All that a slot has is moved as it is. What a cell has of all its slots follows from their records, and is built again.

use payments_core::Slot;

use super::{Store, draft::Draft, entry::Entry, keys, kinds::entries_of, store_error};
use crate::{
    CommitError, Result,
    bytes::{CELL, KeyValue, Table},
};

impl Store {
    /// The first values of a slot that has some, strictly after a key, at most `at_most`. They come in the order of their keys.
    pub(super) async fn read_values_after(&self, after: Option<&[u8]>, at_most: usize) -> Result<Vec<KeyValue>> {
        let first = after.map(|after| [after, &[0]].concat()).unwrap_or_default();
        for slot in Slot::all() {
            for table in Table::ALL {
                let mut range = keys::all_of(slot, table);
                if range.end <= first {
                    continue;
                }
                range.start = range.start.max(first.clone());
                // One more, since how far a migration came is not moved.
                let mut found = self.of(slot).range(range, at_most.saturating_add(1)).await?;
                found.retain(|(key, _)| *key != keys::migration());
                found.truncate(at_most);
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Takes in values of one slot of another store, but those that are there.
    pub async fn take_in(&self, values: Vec<KeyValue>) -> Result<()> {
        let Some(slot) = values.first().and_then(|(key, _)| keys::slot_of(key)) else { return Ok(()) };
        let cell = self.bytes.cell_of(slot);
        let taken =
            self.decide(cell, true, move |draft| values.iter().try_for_each(|(key, value)| draft.take_in(key, value)));
        taken.await.map_err(store_error)
    }
}

impl Draft<'_> {
    fn take_in(&mut self, key: &[u8], value: &[u8]) -> Result<(), CommitError> {
        if self.get(key)?.is_some() {
            return Ok(());
        }
        self.put(key.to_vec(), value.to_vec());
        if Table::of(key) == Some(Table::Record) {
            entries_of(key, value)?.into_iter().try_for_each(|entry| self.add_to_cell(entry))?;
        }
        Ok(())
    }

    /// Adds what a cell has of all its slots.
    fn add_to_cell(&mut self, entry: Entry) -> Result<(), CommitError> {
        match entry {
            Entry::Key { ref key, .. } | Entry::Sum { head: ref key, .. } if key.starts_with(CELL) => self.add(entry),
            Entry::At { .. } => self.add(entry),
            Entry::Lane { scope, endpoint } => {
                self.put(keys::lane(&endpoint), scope.to_string().into_bytes());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
