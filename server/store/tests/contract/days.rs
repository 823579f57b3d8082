//! The totals of days.

use std::sync::Arc;

use futures_util::future::join_all;
use payments_core::{Cause, Currency, Day, Environment, NewRefund, RANDOM_BYTES, RefundId, Slot};
use payments_store::{
    Store,
    domain::{DayTotals, Scope},
};

use crate::samples::*;

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

/// The totals of days in November in taka: the day of the month, payments created and paid, and their volume.
async fn days(store: &Arc<Store>, first: &str, last: &str) -> Vec<(i8, u64, u64, i128)> {
    let found = store.days(&scope(), Currency::Bdt, day(first)..=day(last)).await.unwrap();
    let row =
        |(day, DayTotals { created, paid, volume_minor }): (Day, _)| (day.of_month(), created, paid, volume_minor);
    found.into_iter().map(row).collect()
}

pub(super) async fn a_payment_counts_on_the_day_of_its_creation_in_its_own_scope_and_currency(store: Arc<Store>) {
    assert_eq!(days(&store, "2023-11-01", "2023-11-30").await, []);
    // The first day is the 14th. The second has no payment, and on the third all are paid.
    let new = [(1, 0), (2, SECOND), (3, 2 * DAY), (4, 3 * DAY)].map(|(nth, millis)| new_payment(nth, at(millis)));
    let sessions = new.clone().map(|new| new.session);
    commit(&store, new.map(payment).into()).await.unwrap();
    let created = [(14, 2, 0, 0), (16, 1, 0, 0), (17, 1, 0, 0)];
    assert_eq!(days(&store, "2023-11-01", "2023-11-30").await, created);
    let first = paid(&sessions[0], at(2 * DAY));
    let after = first.session.clone();
    commit(&store, vec![payment(first), payment(paid(&sessions[2], at(2 * DAY)))]).await.unwrap();
    let both = [(14, 2, 1, 10_000), (16, 1, 1, 10_000)];
    assert_eq!(days(&store, "2023-11-14", "2023-11-16").await, both);
    assert_eq!(days(&store, "2023-11-15", "2023-11-16").await, both[1..]);
    assert_eq!(days(&store, "2023-11-15", "2023-11-15").await, []);
    // A failed payment and a refund change no day.
    let refund = Cause::Refunded(NewRefund::made(RefundId::new(Slot::FIRST, at(3 * DAY), [1; RANDOM_BYTES])));
    let refunded = try_moved(&after, refund, at(3 * DAY)).unwrap();
    let failed = try_moved(&sessions[1], Cause::GatewayFailed, at(3 * DAY)).unwrap();
    commit(&store, vec![payment(refunded), payment(failed)]).await.unwrap();
    assert_eq!(days(&store, "2023-11-14", "2023-11-16").await, both);
    let all = || day("2023-11-01")..=day("2023-11-30");
    assert_eq!(store.days(&scope(), Currency::Usd, all()).await.unwrap(), []);
    let elsewhere = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.days(&elsewhere, Currency::Bdt, all()).await.unwrap(), []);
}

pub(super) async fn simultaneous_payments_add_up_on_their_day(store: Arc<Store>) {
    let pay = async |nth: u8| {
        let new = new_payment(nth, at(nth.into()));
        let before = new.session.clone();
        commit(&store, vec![payment(new)]).await.unwrap();
        commit(&store, vec![payment(paid(&before, at(SECOND)))]).await.unwrap();
    };
    join_all((1..=20).map(pay)).await;
    assert_eq!(days(&store, "2023-11-14", "2023-11-14").await, [(14, 20, 20, 200_000)]);
}
