//! Checks that each stored sum equals the sum over the records.

use std::{collections::BTreeMap, fmt::Arguments, ops::RangeInclusive};

use payments_core::Currency;

use super::super::{
    booking::StoredMoney,
    entry::{Entry, day_of},
    head::Head,
    keys,
};
use crate::domain::{BothBalances, DayTotals, Scope};

/// The key of a head, and the name of a sum or of a list in it.
type Name = (Vec<u8>, String);

/// The stored sums, and those that follow from the records.
#[derive(Default)]
pub(super) struct Sums {
    stored: BTreeMap<Name, i128>,
    derived: BTreeMap<Name, i128>,
    stored_days: BTreeMap<Vec<u8>, DayTotals>,
    derived_days: BTreeMap<Vec<u8>, DayTotals>,
    /// The money moves of each scope by their positions: BDT, USD, and the stored balances afterwards.
    moves: BTreeMap<(Vec<u8>, u64), (i128, i128, BothBalances)>,
    /// The statements of payouts, by the keys of the payouts.
    statements: Vec<(Vec<u8>, StatementOf)>,
}

/// What a payout's statement says of the transactions in its range.
pub(super) struct StatementOf {
    pub(super) scope: Scope,
    pub(super) positions: RangeInclusive<u64>,
    pub(super) currency: Currency,
    pub(super) net: i128,
    /// Whether the next statement begins after it.
    pub(super) ends: bool,
}

impl Sums {
    /// Adds an entry to the sums that follow from the records.
    pub(super) fn derive(&mut self, entry: Entry) {
        match entry {
            Entry::Sum { head, name, amount } => *self.derived.entry((head, name)).or_default() += amount,
            Entry::Item { list, .. } | Entry::Found { list, .. } => {
                *self.derived.entry((list.head, length_of(list.name))).or_default() += 1;
            }
            Entry::Lane { scope, endpoint } => {
                *self.derived.entry((keys::head_of_endpoint(&scope, &endpoint), "outbox".to_owned())).or_default() += 1;
            }
            Entry::Day { scope, currency, day, added } => {
                *self.derived_days.entry(keys::day(&scope, currency, day_of(day))).or_default() += added;
            }
            Entry::Key { .. } | Entry::At { .. } | Entry::Owner { .. } | Entry::Bit { .. } => {}
        }
    }

    pub(super) fn head(&mut self, key: Vec<u8>, head: &Head) {
        for (name, sum) in &head.sums {
            self.stored.insert((key.clone(), name.clone()), *sum);
        }
        for (name, tail) in &head.lists {
            self.stored.insert((key.clone(), length_of(name)), tail.count().into());
        }
        let scope = keys::rest_of(&key).and_then(keys::scope_of);
        for (currency, (day, totals)) in &head.days {
            let key = scope.as_ref().map(|scope| keys::day(scope, *currency, day_of(*day)));
            key.into_iter().for_each(|key| self.day(key, *totals));
        }
    }

    pub(super) fn day(&mut self, key: Vec<u8>, totals: DayTotals) {
        *self.stored_days.entry(key).or_default() += totals;
    }

    /// Adds a booking's move of the balance.
    pub(super) fn money(&mut self, scope: &Scope, money: &StoredMoney) {
        let (Some(moved), Some(listed)) = (money.moved(), money.listed) else { return };
        let net = match moved.currency {
            Currency::Bdt => (moved.net(), 0),
            Currency::Usd => (0, moved.net()),
            Currency::Other(_) => (0, 0),
        };
        self.moves.insert((keys::head_of_scope(scope), listed.position), (net.0, net.1, listed.balances()));
    }

    pub(super) fn statement(&mut self, payout: &[u8], of: StatementOf) {
        self.statements.push((payout.to_vec(), of));
    }

    pub(super) fn compare(self, mut expect: impl FnMut(bool, &[u8], Arguments<'_>)) {
        let Self { stored, derived, stored_days, derived_days, moves, mut statements } = self;
        for ((key, name), sum) in &derived {
            let found = stored.get(&(key.clone(), name.clone())).copied().unwrap_or_default();
            expect(found == *sum, key, format_args!("says {found} for {name}, and the records come to {sum}"));
        }
        for ((key, name), found) in stored.iter().filter(|(name, _)| !derived.contains_key(*name)) {
            expect(*found == 0, key, format_args!("says {found} for {name}, and the records come to 0"));
        }
        let days: std::collections::BTreeSet<_> = stored_days.keys().chain(derived_days.keys()).collect();
        for key in days {
            let of = |days: &BTreeMap<Vec<u8>, DayTotals>| days.get(key).copied().unwrap_or_default();
            let (found, sum) = (of(&stored_days), of(&derived_days));
            expect(found == sum, key, format_args!("says {found:?}, and the records come to {sum:?}"));
        }
        statements.sort_by_key(|(_, it)| *it.positions.end());
        let mut begins = BTreeMap::new();
        for (payout, StatementOf { scope, positions, currency, net, ends }) in &statements {
            let head = keys::head_of_scope(scope);
            let begins = begins.entry((head.clone(), *currency)).or_insert(0);
            expect(
                positions.start() == begins,
                payout,
                format_args!("has a statement that does not begin after the last one"),
            );
            if *ends {
                *begins = positions.end() + 1;
            }
            let range = (head.clone(), *positions.start())..=(head, *positions.end());
            let of_currency = |(bdt, usd): (i128, i128)| if *currency == Currency::Bdt { bdt } else { usd };
            let moved = || moves.range(range.clone()).map(|(_, (bdt, usd, _))| of_currency((*bdt, *usd))).sum::<i128>();
            let is_closed = positions.start() <= positions.end() && moved() == *net;
            expect(is_closed, payout, format_args!("has a statement that its transactions do not close"));
        }
        let mut running: Option<(&[u8], BothBalances)> = None;
        for ((scope, position), (bdt, usd, after)) in &moves {
            let before = running.filter(|(of, _)| of == scope).map(|(_, balances)| balances).unwrap_or_default();
            let balances = BothBalances { bdt: before.bdt + bdt, usd: before.usd + usd };
            let what = format_args!("has a transaction at position {position} with another balance after it");
            expect(balances == *after, scope, what);
            running = Some((scope, balances));
        }
    }
}

fn length_of(list: &str) -> String {
    format!("length of {list}")
}
