//! Lists, status bitmaps and time indexes.

use super::{
    super::{
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
    pub(super) fn leaf(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((name, leaf)) = keys::numbered(keys::LISTS, key) else {
            self.find(key, "is no record of a list");
            return Ok(());
        };
        for (id, place) in packed::lines(value).zip(leaf * keys::LEAF..) {
            *self.counts.entry(keys::count(name)).or_default() += 1;
            let belongs = if name.ends_with("/payments") {
                self.stored(id)?.is_some_and(|stored| {
                    stored.place == place && key == List::payments(&stored.session.scope()).leaf(place)
                })
            } else {
                let outgoing: Option<Outgoing> =
                    id.parse().ok().map(|id| self.other(&keys::delivery(&id))).transpose()?.flatten();
                outgoing.is_some_and(|outgoing| {
                    let scope = outgoing.scope();
                    [List::deliveries(&scope), List::deliveries_to(&scope, &outgoing.delivery.webhook_id)]
                        .iter()
                        .any(|list| key == list.leaf(place))
                })
            };
            if !belongs {
                self.find(key, format_args!("names {id} at place {place}, which does not belong there"));
            }
        }
        Ok(())
    }

    /// Each set bit is that of a payment with the status.
    pub(super) fn marks(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some((name, block)) = keys::numbered(keys::BITMAPS, key) else {
            self.find(key, "is no record of marks");
            return Ok(());
        };
        *self.counts.entry(keys::count(name)).or_default() += packed::count_set(value);
        let scope = keys::scope_of(&mut name.split('/'));
        for place in packed::set_bits_down(value).map(|mark| block * keys::BLOCK + mark) {
            let id = scope.as_ref().map(|scope| self.at(scope, place)).transpose()?.flatten();
            let stored = id.map(|id| self.stored(&id)).transpose()?.flatten();
            let has_it = stored.is_some_and(|Stored { session, .. }| {
                key == StatusBitmap::of(&session.scope(), &session.payment.status).block(place)
            });
            if !has_it {
                self.find(key, format_args!("marks place {place}, where no payment of that status is"));
            }
        }
        Ok(())
    }

    /// The payment at a place of the list.
    pub(super) fn at(&self, scope: &Scope, place: u64) -> Result<Option<String>, StoreError> {
        let leaf = self.bytes(&List::payments(scope).leaf(place))?;
        let nth = usize::try_from(place % keys::LEAF).unwrap_or(usize::MAX);
        Ok(packed::lines(&leaf).nth(nth).map(str::to_owned))
    }

    /// Each session in the time index is open and expires then.
    pub(super) fn ends(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for id in packed::lines(value) {
            let is_due = self.stored(id)?.is_some_and(|Stored { session, .. }| {
                session.expires_by_itself_at().is_some_and(|at| key == keys::expiry(at))
            });
            self.expect(is_due, key, DUE);
        }
        Ok(())
    }

    pub(super) fn gateway_check(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = keys::payment_to_check(key);
        let stored = id.as_ref().map(|id| self.stored(id.as_str())).transpose()?.flatten();
        let at = stored.and_then(|stored| stored.session.check_at);
        let is_due = id.is_some_and(|id| at.is_some_and(|at| key == keys::check(at, &id)));
        self.expect(is_due, key, DUE);
        Ok(())
    }

    pub(super) fn waiting(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let stored = Self::parts(key).first().map(|id| self.stored(id)).transpose()?.flatten();
        let waits = stored.is_some_and(|Stored { session, .. }| {
            if key.starts_with(keys::MANUAL_SETTLEMENTS) {
                session.needs_manual_settlement()
            } else {
                session.needs_manual_review()
            }
        });
        self.expect(waits, key, "lists a payment that does not wait for anybody");
        Ok(())
    }
}
