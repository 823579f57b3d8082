//! What payments are found by.

use super::{
    super::{keys, packed},
    Check,
};
use crate::{
    domain::{Session, lookups},
    store::StoreError,
};

impl Check<'_> {
    /// Each of a payment's values finds it.
    pub(super) fn is_found(&mut self, key: &[u8], session: &Session, position: u64) -> Result<(), StoreError> {
        for lookup in lookups(&session.payment) {
            let block = keys::numbered(&keys::found_by(&session.scope(), &lookup), position / keys::BLOCK);
            let bits = self.get(&block)?.unwrap_or_default();
            let is_set = packed::is_set(&bits, position % keys::BLOCK);
            self.expect(is_set, key, format_args!("is not found by its {}", lookup.kind.as_str()));
        }
        Ok(())
    }

    /// Each payment that a value finds has the value.
    pub(super) fn found(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((scope, number)) = keys::scope_and_number_found(key) else {
            self.find(key, "finds payments of no scope");
            return Ok(());
        };
        for position in packed::set_bits_down(value).map(|bit| number * keys::BLOCK + bit) {
            let id = self.payment_at(&scope, position)?;
            let has_it = self.stored(id.as_deref())?.is_some_and(|stored| {
                let values = lookups(&stored.session.payment);
                values.iter().any(|lookup| key == keys::numbered(&keys::found_by(&scope, lookup), number))
            });
            self.expect(
                has_it,
                key,
                format_args!("finds the payment at position {position}, which does not have its value"),
            );
        }
        Ok(())
    }
}
