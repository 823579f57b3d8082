//! The indexes and totals of payments: what a change's effects mean for their records.

use payments_core::PaymentId;

use super::{
    keys::{self, StatusBitmap},
    view::View,
};
use crate::{
    domain::{DayTotals, Effects, Transition},
    store::StoreError,
};

impl View<'_, '_> {
    /// Applies the effects of a payment's change. `position` is the payment's position in the list of all payments.
    pub(super) fn apply_effects(&mut self, id: &PaymentId, position: u64, effects: &Effects) -> Result<(), StoreError> {
        let Effects { scope, currency, .. } = effects;
        for (status, is_set) in [(effects.status.left(), false), (effects.status.entered(), true)] {
            if let Some(status) = status {
                let bitmap = StatusBitmap::of(scope, status);
                self.update(bitmap.count(), |count: u64| if is_set { count + 1 } else { count.saturating_sub(1) })?;
                self.set_bit(bitmap.block(position), position % keys::BLOCK, is_set)?;
            }
        }
        if let Some(time) = effects.expiry.left() {
            self.remove_line(keys::bucket(keys::EXPIRIES, *time), id.as_str())?;
        }
        if let Some(time) = effects.expiry.entered() {
            self.add_line(keys::bucket(keys::EXPIRIES, *time), id.as_str())?;
        }
        self.add_lookups(scope, position, &effects.lookups)?;
        self.index(&effects.gateway_check, |time| keys::check(*time, id));
        self.index(&effects.manual_settlement, |()| keys::manual_settlement(id));
        self.index(&effects.manual_review, |()| keys::manual_review(id));
        for (account, minor) in &effects.balances {
            self.update(keys::balance(scope, *currency, *account), |balance: i128| balance + minor)?;
        }
        if let Some(minor) = effects.volume {
            let add = |(volume, payments): (i128, u64)| (volume + minor, payments + 1);
            self.update(keys::volume(scope, *currency), add)?;
        }
        self.add_to_day(effects)
    }

    /// Adds to the totals of the day on which the payment was created.
    pub(super) fn add_to_day(&mut self, effects: &Effects) -> Result<(), StoreError> {
        if let Some((day, added)) = effects.day {
            self.update(keys::day(&effects.scope, effects.currency, day), |mut totals: DayTotals| {
                totals += added;
                totals
            })?;
        }
        Ok(())
    }

    /// Moves a payment's entry in an index.
    fn index<T: PartialEq>(&mut self, transition: &Transition<T>, key: impl Fn(&T) -> Vec<u8>) {
        if let Some(left) = transition.left() {
            self.remove(key(left));
        }
        if let Some(entered) = transition.entered() {
            self.set(key(entered), Vec::new());
        }
    }
}
