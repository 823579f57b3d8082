//! The reads and writes of a change while it is being decided.

use std::borrow::Cow;

use crate::{
    error::TreeError,
    overlay::Overlay,
    read::{Entries, KeyRange, Read},
    writes::Writes,
};

/// The keys and values as they will be once the batch is durable: everything durable, the changes before this one in the
/// batch, and this one's own writes.
pub struct View<'d> {
    overlay: &'d Overlay,
    /// The writes of the changes before this one.
    pub(crate) batch: Writes,
    change: Writes,
}

impl<'d> View<'d> {
    pub(crate) fn new(overlay: &'d Overlay) -> Self {
        Self { overlay, batch: Writes::new(), change: Writes::new() }
    }

    /// Sets the value under a key.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.change.insert(key.into(), Some(value.into()));
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.change.insert(key.into(), None);
    }

    /// Adds the writes of a change to the batch, unless it fails.
    pub(crate) fn take<T, E>(&mut self, decide: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = decide(self);
        let writes = std::mem::take(&mut self.change);
        if outcome.is_ok() {
            self.batch.extend(writes);
        }
        outcome
    }
}

impl Read for View<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(value) => Ok(value.as_deref().map(Cow::Borrowed)),
            None => Ok(self.overlay.get(key)?.map(Cow::Owned)),
        }
    }

    fn scan(&self, keys: KeyRange, is_reversed: bool) -> Entries {
        self.overlay.scan(keys, is_reversed, &[&self.batch, &self.change])
    }
}
