//! Lists, status bitmaps and time indexes.

use super::{
    super::{
        deliveries::lists_of,
        keys::{self, List, StatusBitmap},
        packed,
        stored::Stored,
    },
    Check,
};
use crate::{
    domain::{Outgoing, Scope},
    store::StoreError,
};

/// The fault of a time index entry.
const DUE: &str = "is due for a payment that does not wait for it";

impl Check<'_> {
    /// Each line of a list names a record that belongs there.
    pub(super) fn leaf(&mut self, key: &[u8], value: &[u8], name: &str, number: u64) -> Result<(), StoreError> {
        for (id, position) in packed::lines(value).zip(number * keys::LEAF..) {
            *self.sums.counts.entry(keys::count(name)).or_default() += 1;
            let belongs = if name.ends_with("/events") {
                self.event_belongs(key, id, position)?
            } else if name.ends_with("/transactions") {
                self.transaction_belongs(key, id, position)?
            } else if name.ends_with("/payments") {
                self.stored(Some(id))?.is_some_and(|stored| {
                    stored.position == position && key == List::payments(&stored.session.scope()).leaf(position)
                })
            } else {
                let outgoing: Option<Outgoing> = self.named(Some(id), keys::delivery)?;
                outgoing.is_some_and(|outgoing| lists_of(&outgoing).iter().any(|list| key == list.leaf(position)))
            };
            self.expect(belongs, key, format_args!("names {id} at position {position}, which does not belong there"));
        }
        Ok(())
    }

    /// Each set bit is that of a payment with the status.
    pub(super) fn block(&mut self, key: &[u8], value: &[u8], name: &str, number: u64) -> Result<(), StoreError> {
        *self.sums.counts.entry(keys::count(name)).or_default() += packed::count_set(value);
        let scope = keys::scope_of(name);
        for position in packed::set_bits_down(value).map(|bit| number * keys::BLOCK + bit) {
            let id = scope.as_ref().map_or(Ok(None), |scope| self.payment_at(scope, position))?;
            let has_it = self.stored(id.as_deref())?.is_some_and(|Stored { session, .. }| {
                key == StatusBitmap::of(&session.scope(), &session.payment.status).block(position)
            });
            self.expect(
                has_it,
                key,
                format_args!("has a bit at position {position}, where no payment of that status is"),
            );
        }
        Ok(())
    }

    /// The payment at a position of the list.
    pub(super) fn payment_at(&self, scope: &Scope, position: u64) -> Result<Option<String>, StoreError> {
        self.line(&List::payments(scope), position)
    }

    /// Each session in the time index is open and expires then.
    pub(super) fn expiries(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for id in packed::lines(value) {
            let at = self.stored(Some(id))?.and_then(|stored| stored.session.unattempted_expiry());
            self.expect(at.is_some_and(|at| key == keys::bucket(keys::EXPIRIES, at)), key, DUE);
        }
        Ok(())
    }

    pub(super) fn gateway_check(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let payment = keys::payment_to_check(key);
        let stored = self.stored(payment.as_ref().map(|id| id.as_str()))?;
        let is_due = stored.is_some_and(|Stored { session, .. }| {
            session.check_at.is_some_and(|at| key == keys::check(at, &session.payment.id))
        });
        self.expect(is_due, key, DUE);
        Ok(())
    }
}
