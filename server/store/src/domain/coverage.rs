//! Coverage: whether the platform's money covers what merchants are owed.

use std::collections::BTreeMap;

use payments_core::{Currency, Day, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// The live money of a currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cover {
    /// The balances of merchants that are positive.
    pub owed_to_merchants: i64,
    /// Reserved for payouts.
    pub in_transit: i64,
    /// The balances of merchants that are negative, without their sign.
    pub owed_by_merchants: i64,
    /// What the bank holds.
    pub bank: i64,
    /// What gateways owe.
    pub gateways: i64,
}

impl Cover {
    /// What bank and gateways hold beyond what merchants are owed. It is negative if they do not cover that. What merchants owe
    /// covers nothing.
    pub fn surplus(&self) -> i64 {
        let Self { owed_to_merchants, in_transit, bank, gateways, .. } = *self;
        [gateways, -owed_to_merchants, -in_transit].into_iter().fold(bank, i64::saturating_add)
    }
}

/// The coverage of a day in Dhaka, kept for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    pub day: Day,
    /// When the books said so: soon after the day, or when the next server started.
    pub taken_at: Timestamp,
    #[serde(deserialize_with = "known_currencies")]
    pub covers: BTreeMap<Currency, Cover>,
}

fn known_currencies<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Currency, Cover>, D::Error> {
    let covers = BTreeMap::<Currency, Cover>::deserialize(deserializer)?;
    match covers.keys().all(Currency::is_known) {
        true => Ok(covers),
        false => Err(D::Error::custom("a currency is unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bank_and_gateways_cover_balances_and_payouts_but_debts_of_merchants_cover_nothing() {
        let cover = |owed_to_merchants, in_transit, owed_by_merchants, bank, gateways| Cover {
            owed_to_merchants,
            in_transit,
            owed_by_merchants,
            bank,
            gateways,
        };
        assert_eq!(cover(900, 100, 0, 600, 400).surplus(), 0);
        assert_eq!(cover(900, 100, 50, 600, 399).surplus(), -1);
        assert_eq!(cover(900, 0, 0, -100, 1_050).surplus(), 50);
        assert_eq!(cover(i64::MAX, i64::MAX, 0, 0, 0).surplus(), i64::MIN);
    }
}
