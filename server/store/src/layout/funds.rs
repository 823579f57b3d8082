//! What a merchant has in a currency: read for an answer, and decided on in a commit.

use std::{collections::BTreeMap, ops::RangeInclusive};

use payments_core::{Currency, LedgerAccount};

use super::{
    Store,
    booking::{HELD, balance_of, under_way_in},
    draft::Draft,
    keys,
    reads::head_of,
};
use crate::{
    CommitError, StoreError,
    domain::{Funds, GatewayName, PayoutRules, Scope},
};

type Holds = [(GatewayName, RangeInclusive<u32>)];

impl Store {
    /// A merchant's money in a currency.
    pub async fn funds(&self, scope: &Scope, currency: Currency, rules: &PayoutRules) -> Result<Funds, StoreError> {
        let days = rules.holds.iter().flat_map(|(gateway, days)| days.clone().map(move |day| (*gateway, day)));
        let mut keys: Vec<_> = days.map(|(gateway, day)| keys::held(scope, currency, gateway, day)).collect();
        keys.push(keys::head_of_scope(scope));
        let values = self.of_scope(scope).get(keys.clone()).await?;
        let heads =
            keys.into_iter().zip(values).map(|(key, value)| head_of(&key, value.as_deref()).map(|it| (key, it)));
        let heads: BTreeMap<_, _> = heads.collect::<Result<_, StoreError>>()?;
        funds(scope, currency, &rules.holds, |key, name| Ok(heads.get(key).map_or(0, |head| head.sum(name))))
    }
}

impl Draft<'_> {
    pub(super) fn funds(&mut self, scope: &Scope, currency: Currency, holds: &Holds) -> Result<Funds, CommitError> {
        funds(scope, currency, holds, |key, name| Ok(self.head(key)?.sum(name)))
    }
}

/// The rule. `sum` returns a sum of the head under a key.
fn funds<E>(
    scope: &Scope,
    currency: Currency,
    holds: &Holds,
    mut sum: impl FnMut(&[u8], &str) -> Result<i128, E>,
) -> Result<Funds, E> {
    let head = keys::head_of_scope(scope);
    let balance = sum(&head, &balance_of(currency, LedgerAccount::Merchant))?;
    let under_way = sum(&head, &under_way_in(currency))?;
    let mut held = Vec::new();
    for (gateway, days) in holds {
        let mut of_days = days.clone().map(|day| sum(&keys::held(scope, currency, *gateway, day), HELD));
        held.push(of_days.try_fold(0, |all, of_day| Ok(all + of_day?))?);
    }
    Ok(Funds::new(balance, under_way, &held))
}
