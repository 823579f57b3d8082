//! What covers the money that merchants are owed.

use std::collections::BTreeMap;

use payments_core::{Currency, Day, Environment, LedgerAccount, Slot};

use super::{
    Store,
    booking::{IN_TRANSIT, OWED, OWING, books_of, total_of},
    head::Head,
    keys,
};
use crate::{
    Result,
    domain::{Cover, Coverage},
};

impl Store {
    /// The coverage of a day, if it was kept.
    pub async fn coverage(&self, day: Day) -> Result<Option<Coverage>> {
        self.of(Slot::FIRST).json(keys::coverage(day)).await
    }
}

/// What the heads of the cells' gauges say of each currency.
pub(super) fn covers(heads: &[Head]) -> BTreeMap<Currency, Cover> {
    let covers = Currency::ALL.into_iter().map(|currency| (currency, cover(heads, currency)));
    covers.filter(|(_, cover)| *cover != Cover::default()).collect()
}

fn cover(heads: &[Head], currency: Currency) -> Cover {
    let live = Environment::Live;
    let minor = |sum: i128| i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX });
    let total = |name| {
        let name = total_of(live, currency, name);
        minor(heads.iter().map(|head| head.sum(&name)).sum())
    };
    // The accounts of what others owe are negative. Each gateway has one, whose name goes on.
    let account = |account| {
        let name = books_of(live, currency, account, None);
        let sums =
            heads.iter().flat_map(|head| head.sums.range(name.clone()..).take_while(|(it, _)| it.starts_with(&name)));
        minor(-sums.map(|(_, sum)| sum).sum::<i128>())
    };
    Cover {
        owed_to_merchants: total(OWED),
        in_transit: total(IN_TRANSIT),
        owed_by_merchants: total(OWING),
        bank: account(LedgerAccount::Bank),
        gateways: account(LedgerAccount::GatewayClearing),
    }
}
