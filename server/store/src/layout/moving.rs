//! Moves the values of a store into another one.
//!
//! The values of a slot are moved unchanged. A cell's own entries follow from the records of its slots, and are built again.

use payments_core::Slot;

use super::{Store, draft::Draft, entry::Entry, keys, kinds::entries_of, store_error};
use crate::{
    CommitError, Result,
    bytes::{CELL, KeyValue, Table},
};

impl Store {
    /// At most `at_most` values strictly after a key, in the order of their keys. All are of one slot.
    pub(super) async fn read_values_after(&self, after: Option<&[u8]>, at_most: usize) -> Result<Vec<KeyValue>> {
        let first = after.map(|after| [after, &[0]].concat()).unwrap_or_default();
        for slot in Slot::all() {
            for table in Table::ALL {
                let mut range = keys::all_of(slot, table);
                if range.end <= first {
                    continue;
                }
                range.start = range.start.max(first.clone());
                // Read one more, because the progress of a migration is not moved.
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

    /// Adds values of one slot of another store, except those that are here already.
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

    /// Adds an entry of the cell's own.
    fn add_to_cell(&mut self, entry: Entry) -> Result<(), CommitError> {
        match entry {
            Entry::Key { ref key, .. } | Entry::Sum { head: ref key, .. } if key.starts_with(CELL) => self.add(entry),
            Entry::At { .. } | Entry::Owner { .. } => self.add(entry),
            Entry::Lane { scope, endpoint } => {
                self.put(keys::lane(&endpoint), scope.to_string().into_bytes());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
