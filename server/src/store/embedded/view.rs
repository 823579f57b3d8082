//! A change's view of the records.

use std::ops::Deref;

use payments_core::WebhookId;
use serde::{Serialize, de::DeserializeOwned};

use super::{codec::Records, keys, packed, subscribed::Subscribed};
use crate::{domain::Scope, store::StoreError};

/// The records as this batch leaves them so far.
pub(super) struct View<'v, 'd> {
    view: &'v mut journaled_tree::View<'d>,
    /// The scopes that may have endpoints; `None` if that is not known.
    subscribed: Option<&'v Subscribed>,
    /// How many deliveries this change puts into outboxes, less those that it takes out.
    pub(super) outbox: i64,
}

impl<'v, 'd> View<'v, 'd> {
    pub(super) fn of(view: &'v mut journaled_tree::View<'d>, subscribed: Option<&'v Subscribed>) -> Self {
        Self { view, subscribed, outbox: 0 }
    }
}

impl View<'_, '_> {
    /// Whether a scope has a webhook endpoint.
    pub(super) fn has_endpoint(&self, scope: &Scope) -> Result<bool, StoreError> {
        let may_have = self.subscribed.is_none_or(|subscribed| subscribed.may_have(scope));
        Ok(may_have && self.count_prefix(&keys::endpoints_of(scope), 1)? > 0)
    }

    /// Names an endpoint in the index of its scope.
    pub(super) fn add_endpoint(&mut self, scope: &Scope, id: &WebhookId) {
        if let Some(subscribed) = self.subscribed {
            subscribed.add(scope);
        }
        self.set(keys::endpoint_of(scope, id), Vec::new());
    }

    /// Adds to the end of a record.
    pub(super) fn append_bytes(&mut self, key: Vec<u8>, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(self.view.append(key, bytes)?)
    }

    /// Adds a line to a record of lines, which does not have it.
    pub(super) fn add_line(&mut self, key: Vec<u8>, line: &str) -> Result<(), StoreError> {
        let mut added = Vec::with_capacity(line.len() + 1);
        packed::push_line(&mut added, line);
        self.append_bytes(key, &added)
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
        self.view.put(key, value);
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.view.remove(key);
    }
}

impl<'d> Deref for View<'_, 'd> {
    type Target = journaled_tree::View<'d>;

    fn deref(&self) -> &Self::Target {
        self.view
    }
}
