//! The list of transactions.

use std::{sync::Arc, time::Duration};

use payments_core::{BookingKind, Cause, Environment, EventId, NewRefund, RANDOM_BYTES, RefundId, Slot, TransactionId};
use payments_store::{
    BookingWrite, PaymentWrite, Store, TransactionEntry, TransactionsFrom,
    domain::{GatewayCost, MoneyMove, Scope},
};
use tokio::time::sleep;

use crate::samples::{DAY, SECOND, at, changed, commit, new_payment, paid, payment, scope, try_moved, without_event};

/// The part of the list, once it has `expected` transactions: a place may show one a little late.
async fn listed(store: &Arc<Store>, from: TransactionsFrom, at_most: usize, expected: usize) -> Vec<TransactionEntry> {
    for _ in 0..1000 {
        let found = store.transactions(&scope(), &from, 0..u64::MAX, at_most).await.unwrap().unwrap();
        if found.len() >= expected {
            return found;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the list never had {expected} transactions from {from:?} on");
}

/// The entry of a change, after which the balance is this one.
fn entry(write: &PaymentWrite, balance_minor: i128) -> TransactionEntry {
    TransactionEntry {
        id: transaction_of(&write.event.clone().unwrap().id),
        subject: write.session.payment.id.clone().into(),
        money: MoneyMove::of(write.session.payment.currency, write.booking.unwrap()).unwrap(),
        balance_minor,
    }
}

fn transaction_of(event: &EventId) -> TransactionId {
    event.as_str().replace(EventId::PREFIX, TransactionId::PREFIX).parse().unwrap()
}

/// A payment of 100.00 that is made and paid, of which the merchant gets 97.50.
async fn pay(store: &Arc<Store>, nth: u8, millis: i64) -> PaymentWrite {
    let created = new_payment(nth, at(millis));
    let completed = paid(&created.session, at(millis + 1));
    for write in [created, completed.clone()] {
        commit(store, vec![payment(write)]).await.unwrap();
    }
    completed
}

pub(super) async fn each_booking_of_a_merchant_is_a_transaction_with_the_balance_after_it(store: Arc<Store>) {
    assert_eq!(store.transactions(&scope(), &TransactionsFrom::Newest, 0..u64::MAX, 9).await.unwrap().unwrap(), []);
    // The second transaction is committed later and happened earlier.
    let (first, second) = (pay(&store, 1, SECOND).await, pay(&store, 2, 0).await);
    let refund = Cause::Refunded(NewRefund::by_hand(RefundId::new(Slot::FIRST, at(DAY), [3; RANDOM_BYTES])));
    let refunded = try_moved(&first.session, refund, at(DAY)).unwrap();
    commit(&store, vec![payment(refunded.clone())]).await.unwrap();
    let expected = [entry(&refunded, 9_750), entry(&second, 19_500), entry(&first, 9_750)];
    let kind = BookingKind::Refunded;
    assert_eq!(expected[0].money, MoneyMove { kind, amount: -10_000, fee: 250, ..expected[1].money });
    assert_eq!(listed(&store, TransactionsFrom::Newest, 9, 3).await, expected);
    let from_second = TransactionsFrom::Transaction(expected[1].id.clone());
    assert_eq!(listed(&store, from_second.clone(), 9, 2).await, expected[1..]);
    let other = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.transactions(&other, &TransactionsFrom::Newest, 0..u64::MAX, 9).await.unwrap().unwrap(), []);
    assert!(store.transactions(&other, &from_second, 0..u64::MAX, 9).await.unwrap().is_none());
    // An event without a booking is no transaction, and neither is a booking that leaves the balance.
    let created = new_payment(4, at(0));
    let event = transaction_of(&created.event.clone().unwrap().id);
    let id = refunded.session.payment.refunds[0].id.clone();
    let sent = payments_core::settle_refund(&refunded.session.payment, &id, at(2 * DAY)).unwrap();
    let sent = without_event(&refunded.session, sent);
    let booking = sent.without_event[0].id.clone();
    commit(&store, vec![payment(created), payment(sent)]).await.unwrap();
    assert_eq!(listed(&store, TransactionsFrom::Newest, 9, 3).await, expected);
    for unknown in [event, booking, TransactionId::new(Slot::FIRST, at(0), [9; RANDOM_BYTES])] {
        assert!(
            store
                .transactions(&scope(), &TransactionsFrom::Transaction(unknown), 0..u64::MAX, 9)
                .await
                .unwrap()
                .is_none()
        );
    }
}

pub(super) async fn a_booking_without_an_event_is_a_transaction_too(store: Arc<Store>) {
    let paid = pay(&store, 1, 0).await;
    let cost = GatewayCost { row: "txn_1".into(), minor: 117, is_of_merchant: true };
    let booking = cost.booking();
    let write = changed(&paid.session, |session| session.costs.push(cost));
    let id = TransactionId::new(Slot::FIRST, at(SECOND), [7; RANDOM_BYTES]);
    let write =
        PaymentWrite { without_event: vec![BookingWrite { id: id.clone(), created_at: at(SECOND), booking }], ..write };
    commit(&store, vec![payment(write)]).await.unwrap();
    pay(&store, 2, DAY).await;
    let found = listed(&store, TransactionsFrom::Newest, 9, 3).await;
    assert_eq!((&found[1].id, found[1].balance_minor), (&id, 9_633));
    assert_eq!((found[1].money.kind, found[1].money.amount), (BookingKind::MerchantCost, -117));
    assert_eq!(listed(&store, TransactionsFrom::Transaction(id), 9, 2).await, found[1..]);
}

pub(super) async fn a_reader_of_older_transactions_misses_none_and_reads_none_twice(store: Arc<Store>) {
    let mut expected = Vec::new();
    for nth in 1..=70 {
        let write = pay(&store, nth, i64::from(nth) * DAY).await;
        expected.insert(0, entry(&write, i128::from(nth) * 9_750));
    }
    let mut found = listed(&store, TransactionsFrom::Newest, 70, 70).await;
    assert_eq!(found, expected);
    found.truncate(7);
    while found.len() < expected.len() {
        let from = TransactionsFrom::Transaction(found.pop().unwrap().id);
        // Later transactions arrive meanwhile.
        pay(&store, 100 + u8::try_from(found.len()).unwrap(), 100 * DAY).await;
        found.extend(listed(&store, from, 7, 1).await);
    }
    assert_eq!(found, expected);
    // A part before a time leaves out no earlier transaction, and does not begin with the newest.
    let before = listed(&store, TransactionsFrom::Before(at(10 * DAY)), 200, 9).await;
    assert!(before.ends_with(&expected[61..]));
}
