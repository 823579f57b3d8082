//! The list of transactions: the changes of the merchant's balance, newest first.
//!
//! The store lists bookings. Each is one or two transactions: the amount, and then the fee on it, if there is one.

use std::ops::Range;

use payments_core::{
    Balance, BookingKind, ErrorCode, Invalid, Timestamp, Transaction, TransactionId, TransactionKind, TransactionPage,
    TransactionQuery, UnknownFields,
};

use super::{Caller, Result, Service, ServiceError};
use crate::store::{TransactionEntry, TransactionsFrom, earliest_in_list};

/// How many bookings a request examines at most, even if few match its filter.
const MAX_EXAMINED: usize = 1000;
/// The prefix of a fee's id.
const FEE: &str = "txn_fee_";

impl Service {
    /// A part of the list, newest first.
    pub async fn transactions(&self, caller: &Caller, query: &TransactionQuery) -> Result<TransactionPage> {
        self.transactions_within(caller, query, 0..u64::MAX).await
    }

    /// A part of the transactions that a payout pays, newest first.
    pub async fn payout_transactions(
        &self,
        caller: &Caller,
        id: &str,
        mut query: TransactionQuery,
    ) -> Result<TransactionPage> {
        let payout = self.own_payout(caller, id).await?.payout;
        let within = self.store.statement_of(&payout.id).await?.unwrap_or_default();
        query.currency = Some(payout.currency);
        self.transactions_within(caller, &query, within).await
    }

    async fn transactions_within(
        &self,
        caller: &Caller,
        query: &TransactionQuery,
        within: Range<u64>,
    ) -> Result<TransactionPage> {
        let from = match (&query.after, query.created_before) {
            (Some(after), _) => TransactionsFrom::Transaction(booking_of(after).ok_or_else(no_such_transaction)?),
            (None, Some(time)) => TransactionsFrom::Before(time),
            (None, None) => TransactionsFrom::Newest,
        };
        let has_filter = query.currency.is_some() || query.created_after.is_some() || query.created_before.is_some();
        // One more for the booking of `after` itself. The store reads another, which tells whether the list goes on.
        let examined = if has_filter { query.limit().max(MAX_EXAMINED) } else { query.limit() } + 1;
        let entries = self.store.transactions(&caller.scope, &from, within, examined + 1).await?;
        Ok(choose(&entries.ok_or_else(no_such_transaction)?, query, examined))
    }
}

/// The first transactions after the cursor that match the filters, out of the first `examined` bookings.
fn choose(entries: &[TransactionEntry], query: &TransactionQuery, examined: usize) -> TransactionPage {
    let mut page = TransactionPage {
        items: Vec::new(),
        has_more: false,
        next: query.after.clone(),
        unknown: UnknownFields::new(),
    };
    let is_over = |entry: &TransactionEntry| query.created_after.is_some_and(|from| at(entry) < earliest_in_list(from));
    // The first booking includes the transaction `after`.
    let mut is_passed = query.after.is_none();
    for (nth, entry) in entries.iter().enumerate() {
        // This booking and all older ones are too early for the filter.
        if is_over(entry) {
            break;
        }
        if nth == examined {
            page.has_more = true;
            break;
        }
        for transaction in of_entry(entry) {
            if !is_passed {
                is_passed = query.after.as_ref() == Some(&transaction.id);
                continue;
            }
            if page.items.len() == query.limit() {
                page.has_more = true;
                return page;
            }
            page.next = Some(transaction.id.clone());
            if query.includes(transaction.currency, transaction.created_at) {
                page.items.push(transaction);
            }
        }
        // The cursor's booking is passed even if its fee was zero, which makes no transaction.
        is_passed = true;
    }
    page
}

fn at(entry: &TransactionEntry) -> Timestamp {
    entry.id.created_at().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The transactions of a booking, newest first: the fee, if there is one, and then the amount.
fn of_entry(entry: &TransactionEntry) -> impl Iterator<Item = Transaction> {
    let TransactionEntry { id, subject, money, balance_minor } = entry;
    let of = |id, kind, minor: i64, balance: i128| Transaction {
        id,
        created_at: at(entry),
        payment_id: subject.payment().cloned(),
        payout_id: subject.payout().cloned(),
        kind,
        amount: Balance::from_minor(minor.into()),
        currency: money.currency,
        balance: Balance::from_minor(balance),
        unknown: UnknownFields::new(),
    };
    let fee_kind = if money.fee < 0 { TransactionKind::Fee } else { TransactionKind::FeeReturned };
    let fee_id = id.as_str().replacen(TransactionId::PREFIX, FEE, 1).parse().ok();
    let fee = fee_id.filter(|_| money.fee != 0).map(|id| of(id, fee_kind, money.fee, *balance_minor));
    let amount = of(id.clone(), kind_of(money.kind), money.amount, balance_minor - i128::from(money.fee));
    fee.into_iter().chain([amount])
}

/// The kind of the transaction that a booking is for its merchant.
fn kind_of(kind: BookingKind) -> TransactionKind {
    match kind {
        BookingKind::Refunded => TransactionKind::Refund,
        BookingKind::RefundFailed => TransactionKind::RefundFailed,
        BookingKind::MerchantCost => TransactionKind::GatewayCost,
        BookingKind::DisputeWithdrawn => TransactionKind::Dispute,
        BookingKind::DisputeReinstated => TransactionKind::DisputeReversed,
        BookingKind::PayoutRequested | BookingKind::PayoutPaidLate => TransactionKind::Payout,
        BookingKind::PayoutFailed | BookingKind::PayoutReturned => TransactionKind::PayoutReversed,
        _ => TransactionKind::Payment,
    }
}

/// The booking that a transaction belongs to.
fn booking_of(id: &TransactionId) -> Option<TransactionId> {
    match id.as_str().strip_prefix(FEE) {
        Some(name) => format!("{}{name}", TransactionId::PREFIX).parse().ok(),
        None => Some(id.clone()),
    }
}

fn no_such_transaction() -> ServiceError {
    let error = "is the id of no transaction of yours; without it the list begins with the newest";
    Invalid::field("after", ErrorCode::FieldInvalid, error).into()
}

#[cfg(test)]
mod tests {
    use payments_core::{Currency, PaymentId, RANDOM_BYTES, Slot};

    use super::*;
    use crate::domain::MoneyMove;

    /// Three payments of 100.00, newest first. The second has no fee, the others 2.50.
    fn entries() -> Vec<TransactionEntry> {
        let entry = |nth: u8, fee: i64, balance_minor: i128| {
            let at = Timestamp::from_millis(1_700_000_000_000 + i64::from(nth) * 3_600_000).unwrap();
            TransactionEntry {
                id: TransactionId::new(Slot::FIRST, at, [nth; RANDOM_BYTES]),
                subject: PaymentId::new(Slot::FIRST, at, [nth; RANDOM_BYTES]).into(),
                money: MoneyMove { kind: BookingKind::Paid, currency: Currency::Bdt, amount: 10_000, fee },
                balance_minor,
            }
        };
        vec![entry(3, -250, 29_500), entry(2, 0, 19_750), entry(1, -250, 9_750)]
    }

    fn query(pairs: &[(&str, &str)]) -> TransactionQuery {
        TransactionQuery::from_query(|name| pairs.iter().find(|it| it.0 == name).map(|it| it.1.to_owned())).unwrap()
    }

    fn read(page: &TransactionPage) -> Vec<(i128, i128)> {
        page.items.iter().map(|it| (it.amount.as_minor(), it.balance.as_minor())).collect()
    }

    #[test]
    fn each_booking_is_a_payment_and_its_fee_with_the_balance_after_each() {
        let all = choose(&entries(), &query(&[]), 9);
        let expected = [(-250, 29_500), (10_000, 29_750), (10_000, 19_750), (-250, 9_750), (10_000, 10_000)];
        assert_eq!((read(&all).as_slice(), all.has_more), (expected.as_slice(), false));
    }

    #[test]
    fn a_page_goes_on_between_a_payment_and_its_fee() {
        let all = choose(&entries(), &query(&[]), 9).items;
        for limit in ["1", "2", "3"] {
            let (mut found, mut after) = (Vec::new(), None::<TransactionId>);
            loop {
                let mut asked = query(&[("limit", limit)]);
                asked.after = after;
                let first = asked.after.as_ref().and_then(booking_of);
                let rest = entries().into_iter().skip_while(|it| first.as_ref().is_some_and(|id| it.id != *id));
                let page = choose(&rest.collect::<Vec<_>>(), &asked, 9);
                found.extend(page.items);
                after = page.next;
                if !page.has_more {
                    break;
                }
            }
            assert_eq!(found, all, "{limit} at a time");
        }
    }

    #[test]
    fn a_part_without_a_matching_transaction_still_says_where_the_next_begins() {
        let page = choose(&entries(), &query(&[("currency", "USD")]), 2);
        assert_eq!((page.items.len(), page.has_more), (0, true));
        assert_eq!(page.next.as_ref().and_then(booking_of), Some(entries()[1].id.clone()));
        let from = at(&entries()[0]).to_string();
        let page = choose(&entries(), &query(&[("createdAfter", &from)]), 9);
        assert_eq!((page.items.len(), page.has_more), (2, false), "what is older is not looked at");
    }
}
