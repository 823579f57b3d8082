//! Payouts: the conditions of their commits, their list, their statements, and what the check says of damaged ones.

use std::sync::Arc;

use payments_core::{
    Amount, Balance, Currency, DestinationKind, Environment, EventId, NewPayout, PayoutDestination, PayoutId,
    PayoutInterval, PayoutSchedule, PayoutStep, RANDOM_BYTES, RawJson, Slot, TransactionId, UnknownFields,
    decide_payout, request_payout,
};
use payments_store::{
    BookingWrite, CommitError, Conflict, EventWrite, PayoutWrite, Store, TransactionsFrom, Write,
    domain::{
        Actor, Destination, GatewayAttempt, GatewayName, PayoutCondition, PayoutRecord, PayoutRules, held_day,
        new_attempt,
    },
};

use crate::{
    Embedded, Engine, Postgres,
    samples::{at, commit, new_payment, outcome, paid, payment, scope, workspace},
};

/// The write of a decision.
fn write(record: PayoutRecord, decision: payments_core::PayoutDecision, condition: PayoutCondition) -> PayoutWrite {
    let payout = decision.payout;
    let mut random = [0; RANDOM_BYTES];
    (random[0], random[1]) = (payout.id.as_str().as_bytes()[30], u8::try_from(record.version).unwrap());
    let json = RawJson::of(&payout).unwrap();
    let event = decision.event.map(|kind| EventWrite {
        id: EventId::new(Slot::FIRST, payout.updated_at, random),
        kind,
        created_at: payout.updated_at,
        data: json,
    });
    let booking = decision.booking.map(|booking| BookingWrite {
        id: TransactionId::new(Slot::FIRST, payout.updated_at, random),
        created_at: payout.updated_at,
        booking,
    });
    PayoutWrite { record: PayoutRecord { payout, ..record }, event, booking, condition }
}

fn destination() -> PayoutDestination {
    PayoutDestination {
        kind: DestinationKind::Wallet,
        holder: "Karim".into(),
        institution: "bkash".into(),
        last4: "5678".into(),
        created_at: at(0),
        unknown: UnknownFields::default(),
    }
}

/// A request of a payout of so many taka of a balance.
pub(super) async fn request(store: &Store, nth: u8, taka: u64, rules: PayoutRules) -> PayoutWrite {
    let next = store.next_statement(&scope(), Currency::Bdt).await.unwrap();
    let funds = store.funds(&scope(), Currency::Bdt, &rules).await.unwrap();
    let now = at(10_000 * i64::from(nth));
    let new = NewPayout {
        id: PayoutId::new(Slot::FIRST, now, [nth; RANDOM_BYTES]),
        environment: Environment::Live,
        currency: Currency::Bdt,
        destination: destination(),
        opening_balance: next.opening_balance,
        balance: Balance::from_minor(funds.balance),
        now,
    };
    let amount = Amount::from_minor(taka * 100);
    let decision = request_payout(Some(amount), amount, new).unwrap();
    let record = PayoutRecord {
        version: 0,
        scope: scope(),
        payout: decision.payout.clone(),
        sealed_number: "sealed".into(),
        requested_by: Actor::Key("key_1".parse().unwrap()),
        approved_by: None,
        destination_by: Actor::Key("key_1".parse().unwrap()),
        from: next.from,
        ends_statement: false,
        batch: None,
    };
    write(record, decision, PayoutCondition::Available(rules))
}

pub(super) fn step(before: &PayoutRecord, step: PayoutStep, condition: PayoutCondition) -> PayoutWrite {
    let decision = decide_payout(&before.payout, step.clone(), before.payout.updated_at).unwrap();
    let mut record = before.next();
    match step {
        PayoutStep::Approved => record.approved_by = Some(Actor::Person("Rahima".into())),
        PayoutStep::Paid { .. } => record.ends_statement = before.payout.status != payments_core::PayoutStatus::Failed,
        _ => {}
    }
    write(record, decision, condition)
}

fn steps() -> [PayoutStep; 3] {
    [PayoutStep::Approved, PayoutStep::Sent, PayoutStep::Paid { reference: "FT-1".into() }]
}

pub(super) async fn committed(store: &Arc<Store>, write: PayoutWrite) -> Result<PayoutRecord, CommitError> {
    let record = write.record.clone();
    commit(store, vec![Write::Payout(Box::new(write))]).await.map(|_| record)
}

/// A workspace with a paid payment, which brought 97.50.
pub(super) async fn earned(store: &Arc<Store>) {
    let created = new_payment(1, at(0));
    let mut paid = paid(&created.session, at(1));
    paid.session.attempt = Some(GatewayAttempt { gateway: GatewayName::of("bkash"), ..new_attempt("a") });
    commit(store, vec![Write::Workspace(workspace(0))]).await.unwrap();
    commit(store, vec![payment(created)]).await.unwrap();
    commit(store, vec![payment(paid)]).await.unwrap();
}

/// A payout of so many taka that was paid.
pub(super) async fn paid_out(store: &Arc<Store>, nth: u8, taka: u64) -> PayoutRecord {
    let mut record = committed(store, request(store, nth, taka, PayoutRules::default()).await).await.unwrap();
    for next in steps() {
        record = committed(store, step(&record, next, PayoutCondition::NotOverdrawn)).await.unwrap();
    }
    record
}

/// A destination, a payout that was paid, and one that is open.
pub(super) async fn fill(store: &Arc<Store>) {
    let destination = Destination {
        version: 0,
        scope: scope(),
        currency: Currency::Bdt,
        destination: destination(),
        sealed_number: "sealed".into(),
        set_by: Actor::Platform,
        schedule: PayoutSchedule::new(PayoutInterval::Daily, Amount::ZERO, at(0)),
    };
    let due = destination.schedule.next_at.unwrap();
    let schedules = async |at| store.due_schedules(at, 9).await.unwrap();
    commit(store, vec![Write::Destination(Box::new(destination.clone()))]).await.unwrap();
    assert_eq!(schedules(due).await, [destination]);
    assert_eq!(schedules(at(0)).await, []);
    paid_out(store, 1, 20).await;
    committed(store, request(store, 2, 10, PayoutRules::default()).await).await.unwrap();
}

pub(super) async fn a_payout_takes_only_what_is_available_and_only_one_is_open(store: Arc<Store>) {
    earned(&store).await;
    let today = held_day(at(1));
    for (rules, taka, expected) in [
        (PayoutRules::default(), 98, "97.5 is available for a payout"),
        (PayoutRules { reserve_minor: 5_000, ..PayoutRules::default() }, 48, "47.5 is available for a payout"),
        (
            PayoutRules { holds: vec![(GatewayName::of("bkash"), today..=today)], reserve_minor: 0 },
            1,
            "0 is available for a payout",
        ),
        (
            PayoutRules { holds: vec![(GatewayName::of("stripe"), today..=today)], reserve_minor: 0 },
            98,
            "97.5 is available for a payout",
        ),
    ] {
        let refused = commit(&store, vec![Write::Payout(Box::new(request(&store, 1, taka, rules).await))]).await;
        assert_eq!(outcome(refused), expected);
    }
    let first = request(&store, 1, 60, PayoutRules::default()).await;
    // Two requests at once cannot take the same money.
    let second = request(&store, 2, 60, PayoutRules::default()).await;
    let record = committed(&store, first).await.unwrap();
    let refused = commit(&store, vec![Write::Payout(Box::new(second))]).await;
    assert_eq!(outcome(refused), "another payout in this currency is open");
    let cancelled = step(&record, PayoutStep::Cancelled { reason: None }, PayoutCondition::None);
    committed(&store, cancelled).await.unwrap();
    let again = request(&store, 3, 97, PayoutRules::default()).await;
    committed(&store, again).await.unwrap();
}

pub(super) async fn payouts_are_listed_and_each_statement_begins_after_the_last_one(store: Arc<Store>) {
    earned(&store).await;
    let first = paid_out(&store, 1, 40).await;
    let failed = committed(&store, request(&store, 2, 10, PayoutRules::default()).await).await.unwrap();
    let cancelled = step(&failed, PayoutStep::Cancelled { reason: Some("no".into()) }, PayoutCondition::None);
    committed(&store, cancelled).await.unwrap();
    let last = paid_out(&store, 3, 20).await;
    let statements: Vec<_> = [&first, &failed, &last]
        .map(|it| {
            (it.from, it.payout.statement.opening_balance.as_minor(), it.payout.statement.closing_balance.as_minor())
        })
        .into();
    // The payment is at 0, and the payouts are at 1, at 2 and 3, and at 4.
    assert_eq!(statements, [(0, 0, 5_750), (2, 5_750, 4_750), (2, 5_750, 3_750)]);
    let listed = store.payouts(&scope(), None, 9).await.unwrap().unwrap();
    let ids = |listed: &[PayoutRecord]| listed.iter().map(|it| it.payout.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&listed), [&last, &failed, &first].map(|it| it.payout.id.clone()));
    let after = store.payouts(&scope(), Some(&last.payout.id), 1).await.unwrap().unwrap();
    assert_eq!(ids(&after), std::slice::from_ref(&failed.payout.id));
    assert_eq!(store.statement_of(&last.payout.id).await.unwrap(), Some(2..5));
    assert!(store.open_payouts().await.unwrap().is_empty());
    let balances: Vec<_> =
        store.transactions(&scope(), &TransactionsFrom::Newest, 0..u64::MAX, 9).await.unwrap().unwrap();
    assert_eq!(balances.iter().map(|it| it.balance_minor).collect::<Vec<_>>(), [3_750, 5_750, 4_750, 5_750, 9_750]);
}

pub(super) async fn a_statement_that_was_written_before_the_last_one_ended_is_written_again(store: Arc<Store>) {
    earned(&store).await;
    let mut record = committed(&store, request(&store, 1, 40, PayoutRules::default()).await).await.unwrap();
    let early = request(&store, 2, 10, PayoutRules::default()).await;
    for next in steps() {
        record = committed(&store, step(&record, next, PayoutCondition::None)).await.unwrap();
    }
    let refused = commit(&store, vec![Write::Payout(Box::new(early))]).await;
    assert_eq!(outcome(refused), Conflict::Stale.to_string());
    let second = committed(&store, request(&store, 2, 10, PayoutRules::default()).await).await.unwrap();
    assert_eq!(second.from, 2);
}

async fn damaged_payouts_are_found<E: Engine>() {
    type Damage = fn(&mut PayoutWrite);
    let cases: [(&str, Damage); 6] = [
        ("takes more than there was", |it| {
            it.record.payout.statement.closing_balance = Balance::from_minor(-1);
        }),
        ("has a statement that does not begin after the last one", |it| it.record.from += 1),
        ("has a statement that its transactions do not close", |it| it.record.from += 1),
        ("has other bookings than its state requires", |it| it.booking = None),
        ("has other events than its state requires", |it| it.event = None),
        ("was approved by who may not", |it| it.record.approved_by = Some(it.record.requested_by.clone())),
    ];
    for (expected, damage) in cases {
        let engine = E::new().await;
        let store = engine.store();
        earned(&store).await;
        let mut record = committed(&store, request(&store, 1, 40, PayoutRules::default()).await).await.unwrap();
        for next in steps() {
            let is_last = matches!(next, PayoutStep::Paid { .. });
            let mut write = step(&record, next, PayoutCondition::None);
            if is_last {
                damage(&mut write);
            }
            record = committed(&store, write).await.unwrap();
        }
        drop(store);
        let engine = engine.restarted().await;
        let found: Vec<_> = engine.findings().await.into_iter().map(|it| it.what).collect();
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
        engine.end().await;
    }
}

#[tokio::test]
async fn the_check_of_a_directory_finds_damaged_payouts() {
    damaged_payouts_are_found::<Embedded>().await;
}

#[tokio::test]
async fn the_check_of_a_database_finds_damaged_payouts() {
    damaged_payouts_are_found::<Postgres>().await;
}
