//! Values that a server does not know and takes for absent, and those that it would write.

use std::{borrow::Cow, collections::BTreeMap};

use payments_store::{StoreError, bytes::View};

/// What a decision sees when it first runs at a place that has to learn what it reads.
#[derive(Default)]
pub(super) struct Unknown(BTreeMap<Vec<u8>, Vec<u8>>);

impl View for Unknown {
    fn get(&mut self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        Ok(self.0.get(key).map(|value| Cow::Borrowed(&value[..])))
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.insert(key, value);
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.0.remove(&key);
    }
}
