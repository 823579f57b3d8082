//! Each stored sum equals the derived one.

use std::collections::{BTreeMap, HashMap};

use journaled_tree::Read;
use payments_core::{Currency, LedgerAccount};
use serde::de::DeserializeOwned;

use super::{super::keys, Check};
use crate::{
    domain::{BothBalances, DayTotals, Scope},
    store::StoreError,
};

/// Sums derived from the records, by the keys of the stored sums.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) balances: BTreeMap<Vec<u8>, i128>,
    /// What the lists of transactions add up to.
    pub(super) running: HashMap<Scope, BothBalances>,
    pub(super) volumes: BTreeMap<Vec<u8>, (i128, u64)>,
    pub(super) days: BTreeMap<Vec<u8>, DayTotals>,
    /// Counts of lists, of bitmaps and of the outbox.
    pub(super) counts: BTreeMap<Vec<u8>, u64>,
    /// Counts of lists that the deliveries imply.
    pub(super) deliveries: BTreeMap<Vec<u8>, u64>,
}

impl Check<'_> {
    /// Compares the stored sums with the derived ones.
    pub(super) fn compare_sums(&mut self) -> Result<(), StoreError> {
        let Sums { balances, running, volumes, days, counts, deliveries } = std::mem::take(&mut self.sums);
        for (list, made) in deliveries {
            let is_complete = counts.get(&list) == Some(&made);
            self.expect(
                is_complete,
                &list,
                format_args!("there are {made} deliveries, and the list does not name as many"),
            );
        }
        for (scope, running) in running {
            for currency in Currency::ALL {
                let account = keys::balance(&scope, currency, LedgerAccount::Merchant);
                let (listed, posted) = (running.of(currency), balances.get(&account).copied().unwrap_or_default());
                let what = format_args!("comes to {posted}, and the list of transactions to {listed}");
                self.expect(listed == posted, &account, what);
            }
        }
        self.compare(b"count/", counts)?;
        self.compare(b"balance/", balances)?;
        self.compare(b"volume/", volumes)?;
        self.compare(b"day/", days)
    }

    fn compare<T>(&mut self, prefix: &[u8], mut derived: BTreeMap<Vec<u8>, T>) -> Result<(), StoreError>
    where
        T: DeserializeOwned + Default + PartialEq + std::fmt::Debug,
    {
        for entry in self.database.prefix(prefix) {
            let (key, value) = entry?;
            let expected = derived.remove(&key).unwrap_or_default();
            if let Some(stored) = self.parse::<T>(&key, &value) {
                let is_equal = stored == expected;
                self.expect(
                    is_equal,
                    &key,
                    format_args!("is stored as {stored:?}, and the records come to {expected:?}"),
                );
            }
        }
        for (key, expected) in derived {
            let is_zero = expected == T::default();
            self.expect(is_zero, &key, format_args!("is missing, and the records come to {expected:?}"));
        }
        Ok(())
    }
}
