//! The lists of transactions.
//!
//! A line is the event's id, its payment, the currency, the amount and the fee in minor units, and the balance in each currency
//! after it. Commits follow one another, so the last line has the present balances.

use payments_core::{EventId, PaymentId};

use super::{
    codec::Records,
    events,
    keys::{self, List},
    lists::first_leaf_from,
    packed,
    view::View,
};
use crate::{
    domain::{BothBalances, MoneyMove, Scope},
    store::{StoreError, TransactionEntry, TransactionsFrom},
};

/// A line of a list.
pub(super) struct Listed {
    pub(super) entry: TransactionEntry,
    /// After the entry.
    pub(super) balances: BothBalances,
}

fn line(event: &EventId, payment: &PaymentId, money: &MoneyMove, balances: BothBalances) -> String {
    let (MoneyMove { currency, amount, fee }, BothBalances { bdt, usd }) = (money, balances);
    format!("{event} {payment} {currency} {amount} {fee} {bdt} {usd}")
}

/// The transaction of a line of a list.
pub(super) fn of_line(line: &str) -> Option<Listed> {
    let mut parts = line.split(' ');
    let mut next = || parts.next();
    let (event, payment) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let currency = next()?.parse().ok()?;
    let money = MoneyMove { currency, amount: next()?.parse().ok()?, fee: next()?.parse().ok()? };
    let balances = BothBalances { bdt: next()?.parse().ok()?, usd: next()?.parse().ok()? };
    let entry = TransactionEntry { event, payment, money, balance_minor: balances.of(money.currency) };
    Some(Listed { entry, balances })
}

/// The transaction at a position of a scope's list.
pub(super) fn at(records: &impl Records, scope: &Scope, position: u64) -> Result<Option<Listed>, StoreError> {
    let leaf = records.bytes(&List::transactions(scope).leaf(position))?;
    let nth = usize::try_from(position % keys::LEAF).unwrap_or(usize::MAX);
    Ok(packed::lines(&leaf).nth(nth).and_then(of_line))
}

/// A part of a scope's list, newest first; `None` if it has no such event to begin with.
pub(super) fn page(
    records: &impl Records,
    scope: &Scope,
    from: &TransactionsFrom,
    at_most: usize,
) -> Result<Option<Vec<TransactionEntry>>, StoreError> {
    let list = List::transactions(scope);
    let count: u64 = records.read(&list.count())?.unwrap_or_default();
    // The position after the newest entry of the part.
    let end = match from {
        TransactionsFrom::Newest => count,
        TransactionsFrom::Event(id) => match events::place_of(records, id)?.filter(|place| place.scope == *scope) {
            Some(place) if place.transaction.is_some() => place.transaction.map_or(0, |position| position + 1),
            _ => return Ok(None),
        },
        TransactionsFrom::Before(time) => {
            let leaves = first_leaf_from(records, &list, count, TransactionsFrom::margin(*time))?;
            count.min(leaves * keys::LEAF)
        }
    };
    let mut entries = Vec::new();
    for number in (0..end.div_ceil(keys::LEAF)).rev() {
        let leaf = records.bytes(&list.leaf(number * keys::LEAF))?;
        let wanted = usize::try_from(end - number * keys::LEAF).unwrap_or(usize::MAX);
        let lines: Vec<_> = packed::lines(&leaf).take(wanted).collect();
        let listed = lines.into_iter().rev().filter_map(of_line).map(|it| it.entry);
        entries.extend(listed.take(at_most - entries.len()));
        if entries.len() == at_most {
            break;
        }
    }
    Ok(Some(entries))
}

impl View<'_, '_> {
    /// Adds what an event adds to the balance to the end of its scope's list. Returns its position.
    pub(super) fn add_transaction(
        &mut self,
        scope: &Scope,
        event: &EventId,
        payment: &PaymentId,
        money: MoneyMove,
    ) -> Result<u64, StoreError> {
        let list = List::transactions(scope);
        let count: u64 = self.read(&list.count())?.unwrap_or_default();
        let before = match count.checked_sub(1) {
            None => BothBalances::default(),
            Some(last) => {
                let missing = || StoreError::corrupt(&list.leaf(last), "the last transaction cannot be read");
                at(&**self, scope, last)?.ok_or_else(missing)?.balances
            }
        };
        self.append(&list, &line(event, payment, &money, before.after(&money)))
    }
}
