//! The reads and writes of a change while it is being decided.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry as Place},
};

use crate::{error::TreeError, overlay::Overlay, writes::Writes};

/// The keys and values as they will be once the batch is durable: all durable ones, the batch's earlier changes, and this
/// change's own writes.
pub struct View<'d> {
    overlay: &'d Overlay,
    /// The writes of the batch's earlier changes.
    pub(crate) batch: Writes,
    change: BTreeMap<Vec<u8>, Edit>,
}

/// What a change does to a key.
enum Edit {
    /// Sets the value, or removes the key.
    Set(Option<Vec<u8>>),
    /// Appends to the key's value in the batch.
    Append(Vec<u8>),
}

impl<'d> View<'d> {
    pub(crate) fn new(overlay: &'d Overlay) -> Self {
        Self { overlay, batch: Writes::new(), change: BTreeMap::new() }
    }

    /// Returns the value under a key.
    ///
    /// # Errors
    /// If the value is damaged or the tree has failed.
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        match (self.change.get(key), self.batch.get(key).map(Option::as_deref)) {
            (Some(Edit::Set(value)), _) => Ok(value.as_deref().map(Cow::Borrowed)),
            (Some(Edit::Append(more)), before) => {
                Ok(Some(Cow::Owned([before.flatten().unwrap_or_default(), more].concat())))
            }
            (None, Some(value)) => Ok(value.map(Cow::Borrowed)),
            (None, None) => Ok(self.overlay.get(key)?.map(Cow::Owned)),
        }
    }

    /// Sets the value under a key.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.change.insert(key.into(), Edit::Set(Some(value.into())));
    }

    /// Removes a key, if it exists.
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.change.insert(key.into(), Edit::Set(None));
    }

    /// Appends to the value under a key. If many changes of a batch append to a long value, it is not copied for each.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn append(&mut self, key: impl Into<Vec<u8>>, bytes: &[u8]) -> Result<(), TreeError> {
        match self.change.entry(key.into()) {
            Place::Occupied(mut place) => match place.get_mut() {
                Edit::Set(Some(value)) | Edit::Append(value) => value.extend_from_slice(bytes),
                removed @ Edit::Set(None) => *removed = Edit::Set(Some(bytes.to_vec())),
            },
            Place::Vacant(place) => {
                let edit = match self.batch.get(place.key()) {
                    Some(Some(_)) => Edit::Append(bytes.to_vec()),
                    Some(None) => Edit::Set(Some(bytes.to_vec())),
                    None => {
                        let before = self.overlay.get(place.key())?.unwrap_or_default();
                        Edit::Set(Some([&before, bytes].concat()))
                    }
                };
                place.insert(edit);
            }
        }
        Ok(())
    }

    /// Adds the writes of a change to the batch, unless the change fails.
    pub(crate) fn take<T, E>(&mut self, decide: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = decide(self);
        let change = std::mem::take(&mut self.change);
        if outcome.is_ok() {
            for (key, edit) in change {
                match edit {
                    Edit::Set(value) => drop(self.batch.insert(key, value)),
                    Edit::Append(more) => {
                        let value = self.batch.entry(key).or_default();
                        value.get_or_insert_default().extend(more);
                    }
                }
            }
        }
        outcome
    }
}
