//! The totals of days.

use std::sync::Arc;

use futures_util::future::join_all;
use payments_core::{Cause, Currency, Day, Environment, RANDOM_BYTES, RefundId};

use super::{Engine, Postgres, changes, check, client_of, cluster_url, samples::*};
use crate::{
    domain::{DayTotals, Scope},
    store::{Store, postgres::Target},
};

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

/// The totals of days in November in taka: the day of the month, payments created and paid, and their volume.
async fn days(store: &Arc<dyn Store>, first: &str, last: &str) -> Vec<(i8, u64, u64, i128)> {
    let found = store.days(&scope(), Currency::Bdt, day(first)..=day(last)).await.unwrap();
    let row =
        |(day, DayTotals { created, paid, volume_minor }): (Day, _)| (day.of_month(), created, paid, volume_minor);
    found.into_iter().map(row).collect()
}

pub(super) async fn a_payment_counts_on_the_day_of_its_creation_in_its_own_scope_and_currency(store: Arc<dyn Store>) {
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
    // What ends without money, and what is given back, changes no day.
    let refund = Cause::Refunded { id: RefundId::new(at(3 * DAY), [1; RANDOM_BYTES]), reason: None };
    let refunded = try_moved(&after, refund, at(3 * DAY)).unwrap();
    let failed = try_moved(&sessions[1], Cause::GatewayFailed, at(3 * DAY)).unwrap();
    commit(&store, vec![payment(refunded), payment(failed)]).await.unwrap();
    assert_eq!(days(&store, "2023-11-14", "2023-11-16").await, both);
    let all = || day("2023-11-01")..=day("2023-11-30");
    assert_eq!(store.days(&scope(), Currency::Usd, all()).await.unwrap(), []);
    let elsewhere = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.days(&elsewhere, Currency::Bdt, all()).await.unwrap(), []);
}

pub(super) async fn payments_made_and_paid_at_once_add_up_on_their_day(store: Arc<dyn Store>) {
    let pay = async |nth: u8| {
        let new = new_payment(nth, at(nth.into()));
        let before = new.session.clone();
        commit(&store, vec![payment(new)]).await.unwrap();
        commit(&store, vec![payment(paid(&before, at(SECOND)))]).await.unwrap();
    };
    join_all((1..=20).map(pay)).await;
    assert_eq!(days(&store, "2023-11-14", "2023-11-14").await, [(14, 20, 20, 200_000)]);
}

/// A database that an earlier version left, and one that it still writes to.
#[tokio::test]
async fn payments_of_earlier_versions_are_counted_on_their_days() {
    let url = cluster_url().await;
    let client = client_of(&url).await;
    client.batch_execute("SET search_path = counted; SET payments.lists_events = 'on'").await.unwrap();
    let target = Target::new(&url.into(), None).unwrap().with_schema("counted");
    let engine = Postgres::open(target.clone()).await;
    changes::written(engine.store()).await;
    let nul = new_payment_with(9, at(SECOND), r#""description": "\u0000","#);
    let before = nul.session.clone();
    commit(&engine.store(), vec![payment(nul), payment(new_payment(8, at(DAY)))]).await.unwrap();
    let paid = paid(&before, at(DAY));
    let after = paid.session.clone();
    let refund = Cause::Refunded { id: RefundId::new(at(2 * DAY), [1; RANDOM_BYTES]), reason: None };
    commit(&engine.store(), vec![payment(paid)]).await.unwrap();
    commit(&engine.store(), vec![payment(try_moved(&after, refund, at(2 * DAY)).unwrap())]).await.unwrap();
    let counted = days(&engine.store(), "2023-11-01", "2023-11-30").await;
    assert_eq!(counted.last(), Some(&(15, 1, 0, 0)));
    engine.end().await;

    let back = "DROP TABLE day_total; DROP FUNCTION count_day_of_payment CASCADE; DROP FUNCTION count_day_of_posting CASCADE; \
        DROP FUNCTION volume_of; UPDATE schema_version SET version = 7";
    client.batch_execute(back).await.unwrap();
    let engine = check(Postgres::open(target).await).await;
    assert_eq!(days(&engine.store(), "2023-11-01", "2023-11-30").await, counted, "by the change of the schema");

    let again = "CREATE TEMP TABLE payments AS TABLE payment; CREATE TEMP TABLE postings AS TABLE posting; \
        TRUNCATE payment, posting, day_total, payment_block_sum; INSERT INTO payment SELECT * FROM payments; \
        INSERT INTO posting SELECT * FROM postings";
    client.batch_execute(again).await.unwrap();
    assert_eq!(days(&engine.store(), "2023-11-01", "2023-11-30").await, counted, "by an earlier server");
    check(engine).await.end().await;
}
