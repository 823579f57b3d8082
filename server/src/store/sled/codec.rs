//! Records as bytes: JSON, long ones compressed.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::squeezed;
use crate::store::StoreError;

/// Reads a record, if there is one.
pub(super) fn read<T: DeserializeOwned>(tree: &sled::Tree, key: &[u8]) -> Result<Option<T>, StoreError> {
    match tree.get(key).map_err(StoreError::unavailable)? {
        Some(json) => parse(key, &json).map(Some),
        None => Ok(None),
    }
}

/// A record that holds many things; nothing where there is none.
pub(super) fn bytes(tree: &sled::Tree, key: &[u8]) -> Result<Vec<u8>, StoreError> {
    match tree.get(key).map_err(StoreError::unavailable)? {
        Some(value) => open(key, &value).map(Cow::into_owned),
        None => Ok(Vec::new()),
    }
}

pub(super) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(&open(key, value)?).map_err(|error| StoreError::corrupt(key, error))
}

/// The value under a key, as it was before it was squeezed.
pub(super) fn open<'v>(key: &[u8], value: &'v [u8]) -> Result<Cow<'v, [u8]>, StoreError> {
    squeezed::open(key, value).map_err(|damage| StoreError::corrupt(key, damage))
}
