//! The platform's own accounts, and what covers the merchants' money.

use std::{collections::BTreeMap, sync::Arc};

use payments_core::{Amount, Currency, DisputeStatus, PayoutStep};
use payments_store::{
    Store, Write,
    domain::{
        BooksChange, BooksEntry, Cover, Coverage, GatewayAttempt, GatewayName, PayoutCondition, PayoutRules,
        new_attempt,
    },
};

use crate::{
    payouts,
    samples::{COMMITTED, STALE, at, commit, new_payment, outcome, paid, payment, reported, scope},
};

fn entry(change: BooksChange, reference: &str, taka: u64) -> Write {
    let developer_id = (change == BooksChange::FeesTaken).then(|| scope().developer_id);
    let (reference, amount) = (reference.to_owned(), Amount::from_minor(taka * 100));
    Write::Books(Box::new(BooksEntry {
        change,
        reference,
        amount,
        currency: Currency::Bdt,
        developer_id,
        recorded_at: at(5),
    }))
}

fn day(covers: BTreeMap<Currency, Cover>) -> Write {
    Write::Coverage(Box::new(Coverage { day: "2026-03-01".parse().unwrap(), taken_at: at(5), covers }))
}

pub(super) async fn fill(store: &Arc<Store>) {
    let covers = store.gauges().await.unwrap().covers;
    commit(store, vec![entry(BooksChange::PaidIn, "FT/1", 70), day(covers)]).await.unwrap();
}

/// What is owed to merchants, in payouts, owed by merchants, at the bank and at gateways, in taka.
async fn taka(store: &Store) -> [i64; 5] {
    let cover = store.gauges().await.unwrap().covers.remove(&Currency::Bdt).unwrap_or_default();
    let Cover { owed_to_merchants, in_transit, owed_by_merchants, bank, gateways } = cover;
    [owed_to_merchants, in_transit, owed_by_merchants, bank, gateways].map(|minor| minor / 100)
}

pub(super) async fn what_merchants_are_owed_and_owe_is_known_after_each_change(store: Arc<Store>) {
    assert_eq!(store.gauges().await.unwrap().covers, BTreeMap::new());
    payouts::earned(&store).await;
    // Each payment is of 100, with a fee of 2.50.
    assert_eq!(taka(&store).await, [97, 0, 0, 0, 100]);
    let requested = payouts::request(&store, 1, 60, PayoutRules::default()).await;
    let mut record = payouts::committed(&store, requested).await.unwrap();
    assert_eq!(taka(&store).await, [37, 60, 0, 0, 100]);
    for step in [PayoutStep::Approved, PayoutStep::Sent, PayoutStep::Paid { reference: "FT-1".into() }] {
        record = payouts::committed(&store, payouts::step(&record, step, PayoutCondition::None)).await.unwrap();
    }
    assert_eq!(taka(&store).await, [37, 0, 0, -60, 100]);
    let created = new_payment(2, at(2));
    let mut paid = paid(&created.session, at(3));
    paid.session.attempt = Some(GatewayAttempt { gateway: GatewayName::of("bkash"), ..new_attempt("a") });
    let withdrawn = reported(&paid.session, DisputeStatus::NeedsResponse, 4_000);
    commit(&store, vec![payment(created), payment(paid)]).await.unwrap();
    assert_eq!(taka(&store).await, [135, 0, 0, -60, 200]);
    payouts::paid_out(&store, 2, 135).await;
    commit(&store, vec![payment(withdrawn)]).await.unwrap();
    assert_eq!(taka(&store).await, [0, 0, 40, -195, 160]);
    let cover = store.gauges().await.unwrap().covers[&Currency::Bdt];
    assert_eq!((cover.owed_by_merchants, cover.surplus()), (4_000, -3_500), "the balance was 0");
    commit(&store, vec![entry(BooksChange::PaidIn, "FT1", 100)]).await.unwrap();
    assert_eq!(taka(&store).await, [0, 0, 40, -95, 160]);
}

pub(super) async fn an_entry_of_an_operator_is_recorded_once_and_takes_no_more_fees_than_there_are(store: Arc<Store>) {
    payouts::earned(&store).await;
    let write = async |entry| outcome(commit(&store, vec![entry]).await);
    assert_eq!(write(entry(BooksChange::FeesTaken, "FT1", 2)).await, COMMITTED);
    assert_eq!(write(entry(BooksChange::FeesTaken, "FT1", 2)).await, STALE);
    assert_eq!(
        write(entry(BooksChange::FeesTaken, "FT2", 1)).await,
        "the merchant's balance is negative: -50 in minor units"
    );
    for (change, bank) in [(BooksChange::PaidIn, 10), (BooksChange::TakenOut, -12), (BooksChange::BankCharge, -17)] {
        let amount = match change {
            BooksChange::PaidIn => 12,
            BooksChange::TakenOut => 22,
            _ => 5,
        };
        assert_eq!(write(entry(change, "FT/1", amount)).await, COMMITTED);
        assert_eq!(taka(&store).await[3], bank, "{change:?}");
    }
    let found = store.books_entry(None, BooksChange::TakenOut, "FT/1").await.unwrap().unwrap();
    assert_eq!(found.amount, Amount::from_minor(2_200));
    assert_eq!(store.books_entry(Some(&scope().developer_id), BooksChange::TakenOut, "FT/1").await.unwrap(), None);
    let covers = store.gauges().await.unwrap().covers;
    assert_eq!(write(day(covers.clone())).await, COMMITTED);
    assert_eq!(write(day(BTreeMap::new())).await, STALE, "a figure is kept for good");
    let kept = store.coverage("2026-03-01".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(kept.covers, covers);
}
