//! Each stored sum equals the derived one.

use std::collections::BTreeMap;

use journaled_tree::Read;
use serde::de::DeserializeOwned;

use super::Check;
use crate::store::StoreError;

impl Check<'_> {
    /// Compares the stored sums with the derived ones.
    pub(super) fn sums(&mut self) -> Result<(), StoreError> {
        let counts = std::mem::take(&mut self.counts);
        for (count, deliveries) in std::mem::take(&mut self.deliveries) {
            if counts.get(&count) != Some(&deliveries) {
                self.find(
                    &count,
                    format_args!("there are {deliveries} deliveries, and the list does not name as many"),
                );
            }
        }
        self.compare(b"count/", counts)?;
        let balances = std::mem::take(&mut self.balances);
        self.compare(b"balance/", balances)?;
        let volumes = std::mem::take(&mut self.volumes);
        self.compare(b"volume/", volumes)
    }

    pub(super) fn compare<T>(&mut self, prefix: &[u8], mut expected: BTreeMap<Vec<u8>, T>) -> Result<(), StoreError>
    where
        T: DeserializeOwned + Default + PartialEq + std::fmt::Debug,
    {
        for entry in self.database.prefix(prefix) {
            let (key, value) = entry?;
            let expected = expected.remove(&key).unwrap_or_default();
            if let Some(kept) = self.parse::<T>(&key, &value)
                && kept != expected
            {
                self.find(&key, format_args!("is kept as {kept:?}, and the records come to {expected:?}"));
            }
        }
        for (key, expected) in expected {
            if expected != T::default() {
                self.find(&key, format_args!("is missing, and the records come to {expected:?}"));
            }
        }
        Ok(())
    }
}
