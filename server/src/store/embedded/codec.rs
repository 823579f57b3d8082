//! Reads records: JSON, lines or bits.

use std::borrow::Cow;

use journaled_tree::{Read, TreeError};
use serde::de::DeserializeOwned;

use crate::store::StoreError;

/// Reads records of the database, or of a change's view of it.
pub(super) trait Records: Read {
    /// A record, if there is one.
    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.get(key)?.map(|json| parse(key, &json)).transpose()
    }

    /// A record of many entries; empty if it does not exist.
    fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.get(key)?.map(Cow::into_owned).unwrap_or_default())
    }

    /// How many records have this prefix, counted up to `at_most`.
    fn count_prefix(&self, prefix: &[u8], at_most: usize) -> Result<usize, StoreError> {
        Ok(self.prefix(prefix).take(at_most).try_fold(0, |count, entry| entry.map(|_| count + 1))?)
    }
}

impl<R: Read> Records for R {}

pub(super) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| StoreError::corrupt(key, error))
}

impl From<TreeError> for StoreError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Damaged { key, what } => Self::Corrupt { record: key, what },
            error => Self::unavailable(error),
        }
    }
}
