//! Limits that the operator sets for a workspace. Each environment counts by itself.

use std::collections::BTreeMap;

use payments_core::{Amount, Currency, Timestamp};
use serde::{Deserialize, Serialize};

use super::Edit;

/// The limits of a workspace. Without an entry there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The maximum amount of a payment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payment_at_most: BTreeMap<Currency, Amount>,
    /// The maximum amount of the payments that are created on a day in Dhaka and do not fail.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub day_at_most: BTreeMap<Currency, Amount>,
    /// How many payments may be created within a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payments_a_minute: Option<u32>,
    /// How many API keys may work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// How many webhook endpoints may exist, if the server allows more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<u32>,
}

/// A change of limits. A limit without an entry stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitsChange {
    pub payment_at_most: BTreeMap<Currency, Edit<Amount>>,
    pub day_at_most: BTreeMap<Currency, Edit<Amount>>,
    pub payments_a_minute: Option<Edit<u32>>,
    pub keys: Option<Edit<u32>>,
    pub endpoints: Option<Edit<u32>>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn apply(&mut self, change: &LimitsChange) {
        for (limits, edits) in
            [(&mut self.payment_at_most, &change.payment_at_most), (&mut self.day_at_most, &change.day_at_most)]
        {
            for (currency, edit) in edits {
                match edit {
                    Edit::Set(amount) => drop(limits.insert(*currency, *amount)),
                    Edit::Remove => drop(limits.remove(currency)),
                }
            }
        }
        for (limit, edit) in [
            (&mut self.payments_a_minute, &change.payments_a_minute),
            (&mut self.keys, &change.keys),
            (&mut self.endpoints, &change.endpoints),
        ] {
            edit.iter().cloned().for_each(|edit| edit.apply_to(limit));
        }
    }
}

/// A limit that a new payment exceeds, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    #[error(
        "this workspace takes at most {at_most} {currency} a payment; ask for less, or have the server's operator raise the limit"
    )]
    Payment { at_most: Amount, currency: Currency },
    #[error(
        "{left} {currency} is left of the {at_most} {currency} that this workspace takes on a day in Dhaka; ask for at most that, \
         wait for tomorrow, or have the server's operator raise the limit"
    )]
    Day { at_most: Amount, left: Amount, currency: Currency },
    #[error(
        "this workspace creates at most {at_most} payments a minute; retry after {seconds} s, or have the server's operator raise \
         the limit"
    )]
    Minute { at_most: u32, seconds: u64 },
}

/// How long to wait, in whole seconds, until `at` is a minute ago.
pub fn seconds_of_minute_left(at: Timestamp, now: Timestamp) -> u64 {
    let left = at.plus_seconds(60).as_millis() - now.as_millis();
    u64::try_from(left).unwrap_or_default().div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_sets_and_removes_limits_and_leaves_the_others() {
        let mut limits = Limits { keys: Some(3), ..Limits::default() };
        limits.day_at_most.insert(Currency::Usd, Amount::from_major(9));
        let change = LimitsChange {
            payment_at_most: [(Currency::Bdt, Edit::Set(Amount::from_major(5)))].into(),
            day_at_most: [(Currency::Usd, Edit::Remove)].into(),
            payments_a_minute: Some(Edit::Set(60)),
            endpoints: Some(Edit::Remove),
            ..LimitsChange::default()
        };
        limits.apply(&change);
        let json = serde_json::to_value(&limits).unwrap();
        assert_eq!(json, serde_json::json!({"payment_at_most": {"BDT": 5}, "payments_a_minute": 60, "keys": 3}));
        assert_eq!(serde_json::from_value::<Limits>(json).unwrap(), limits);
    }

    #[test]
    fn the_wait_for_a_minute_is_rounded_up() {
        let at = Timestamp::UNIX_EPOCH;
        for (millis, seconds) in [(0, 60), (1, 60), (59_000, 1), (59_999, 1), (60_000, 0), (90_000, 0)] {
            assert_eq!(seconds_of_minute_left(at, at.plus_millis(millis)), seconds, "{millis}");
        }
    }
}
