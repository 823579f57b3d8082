//! A view for a decision whose values the server does not know yet.

use std::{borrow::Cow, collections::BTreeMap};

use payments_store::{StoreError, bytes::View};

/// Shows only the decision's own writes; every other value is absent. A store may first run a decision on such a view,
/// to learn which keys the decision reads.
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
