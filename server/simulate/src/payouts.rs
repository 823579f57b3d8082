//! Payouts: merchants ask for them, the operator approves and sends them with every command twice, and the bank pays some.

use std::sync::Arc;

use futures_util::future::join_all;
use hyper::StatusCode;
use payments_core::{Amount, Currency, Environment, Payout, PayoutStatus, Timestamp};
use payments_server::parts::{AdminReply, AdminRequest, PayoutOutcome, PayoutReply, PayoutRequest, PayoutRow, Service};
use payments_store::{
    Change, Snapshot as _, Write,
    domain::{PayoutRecord, Scope},
    embedded::EmbeddedStore,
};
use serde_json::json;

use super::{
    ask::{Ask, Key, amount, text},
    merchant::Merchant,
    notes::{Asked, Banked},
    operator::administer,
    world::World,
};

/// How often the operator repeats a command.
const TRIES: u32 = 60;

/// Gives a merchant a wallet in the environment of a key, old enough for live payouts.
pub(super) async fn set_destination(world: &World, service: &Service, workspace: &str, key: &Key, number: &str) {
    let wallet = json!({"holder": "Karim", "provider": "bkash", "number": number});
    let ask = Ask::post("/api/v1/payouts/destinations", json!({"currency": "BDT", "wallet": wallet})).by(key);
    if world.ask(ask).await.is_none_or(|answer| answer.status != StatusCode::OK) {
        return world.violation("a destination was not set");
    }
    let Ok(Some(workspace)) = service.store.workspace(workspace).await else { return };
    let scope = Scope { developer_id: workspace.developer_id, environment: Environment::Live };
    if let Ok(Some(mut set)) = service.store.destination(&scope, Currency::Bdt).await
        && set.destination.created_at != Timestamp::UNIX_EPOCH
    {
        (set.version, set.destination.created_at) = (set.version + 1, Timestamp::UNIX_EPOCH);
        if service.store.commit(Change::of(Write::Destination(Box::new(set)))).await.is_err() {
            world.violation("a destination is not old");
        }
    }
}

/// Asks for a payout of all that is available or of a part, now and then for another at the same time. Cancels some at once.
pub(super) async fn ask(world: &World, merchant: &Merchant) {
    let (is_live, first) = (!world.fate.one_in(3), merchant.payouts().len());
    let new = |nth| {
        let body = match world.fate.one_in(2) {
            true => json!({"currency": "BDT"}),
            false => json!({"currency": "BDT", "amount": amount(world.fate.number(1..=100_000))}),
        };
        Asked { key: format!("payout-{}-{nth}", merchant.number), is_live, body, payout: None }
    };
    let count = if world.fate.one_in(2) { 2 } else { 1 };
    merchant.payouts().extend((first..first + count).map(new));
    join_all((first..first + count).map(|nth| request(world, merchant, nth))).await;
    let made = merchant.payouts()[first].payout.clone();
    if let Some(id) = made.filter(|_| world.fate.one_in(8)) {
        let cancel = Ask::post(format!("/api/v1/payouts/{id}/cancel"), json!({}));
        let _ = world.ask(cancel.by(merchant.key(is_live))).await;
    }
}

/// Sends an earlier request again, with the same key.
pub(super) async fn ask_again(world: &World, merchant: &Merchant) {
    let count = merchant.payouts().len();
    if let Some(nth) = world.fate.choose(&(0..count).collect::<Vec<_>>()) {
        request(world, merchant, *nth).await;
    }
}

async fn request(world: &World, merchant: &Merchant, nth: usize) {
    let Asked { key, is_live, body, payout } = merchant.payouts()[nth].clone();
    let ask = Ask::post("/api/v1/payouts", body).by(merchant.key(is_live)).once(&key);
    let Some(answer) = world.ask(ask).await else { return };
    let made = Some(text(&answer.json(), "id"));
    match answer.status {
        StatusCode::CREATED if payout.is_none() || payout == made => merchant.payouts()[nth].payout = made,
        StatusCode::CONFLICT if payout.is_none() => {}
        status => world.violation(format!("{key} ({payout:?}) is answered with {status}: {}", answer.json())),
    }
}

/// Approves, sends and records payouts until the world ends.
pub(super) async fn work(world: Arc<World>) {
    for nth in 0_u64.. {
        world.fate.wait(20_000..=120_000).await;
        approve(&world).await;
        // The name of an earlier batch gets the earlier file.
        let nth = if world.fate.one_in(4) { world.fate.number(0..=nth) } else { nth };
        send(&world, &format!("batch-{nth}")).await;
        answer(&world).await;
    }
}

async fn payouts(world: &World, request: PayoutRequest) -> Option<PayoutReply> {
    for _ in 0..TRIES {
        match administer(world, AdminRequest::Payouts(request.clone())).await {
            Some(AdminReply::Payouts { payouts }) => return Some(payouts),
            _ => world.fate.wait(500..=5_000).await,
        }
    }
    None
}

async fn approve(world: &World) {
    let Some(PayoutReply::Listed { listed }) = payouts(world, PayoutRequest::List { status: None }).await else {
        return;
    };
    for it in listed.iter().filter(|it| it.status == PayoutStatus::Requested) {
        let outcome = match world.fate.one_in(6) {
            true => PayoutOutcome::Cancelled { reason: "asked by telephone".to_owned() },
            false => PayoutOutcome::Approved { by: "Asha".to_owned() },
        };
        record(world, it.payout.as_str(), outcome).await;
    }
}

/// Records an outcome twice.
async fn record(world: &World, payout: &str, outcome: PayoutOutcome) {
    for _ in 0..2 {
        let rows = vec![PayoutRow { payout: payout.to_owned(), outcome: outcome.clone() }];
        // Refused if the merchant was faster.
        let _ = payouts(world, PayoutRequest::Record { rows, is_check: false }).await;
    }
}

/// Sends a batch, and brings its file to the bank.
async fn send(world: &World, batch: &str) {
    let request = PayoutRequest::Send { batch: batch.to_owned(), payout_key: None };
    let Some(PayoutReply::Sent { sent, .. }) = payouts(world, request).await else { return };
    for it in sent {
        let minor = it.amount.parse::<Amount>().map_or(0, Amount::as_minor);
        let mut bank = world.bank.lock();
        let known = bank.get(&it.payout).cloned();
        match known {
            Some(known) if known.batch != batch || known.minor != minor => {
                world.violation(format!("{} is sent again in {batch}, after {known:?}", it.payout));
            }
            Some(_) => {}
            None => {
                let is_paid = !world.fate.one_in(3);
                world.fate.note(format_args!("the bank gets {} in {batch}; it pays it: {is_paid}", it.payout));
                let banked = Banked { batch: batch.to_owned(), minor, is_paid, is_returned: false };
                bank.insert(it.payout, banked);
            }
        }
    }
}

/// Records the bank's answers, some of them late or wrong at first, and returns some payouts.
async fn answer(world: &World) {
    let all: Vec<_> = world.bank.lock().clone().into_iter().collect();
    for (id, banked) in all {
        let reason = || "no such account".to_owned();
        let paid = PayoutOutcome::Paid { reference: format!("FT-{id}") };
        let now = match world.fate.number(0..=5) {
            0 => PayoutOutcome::Unknown { reason: "the bank is silent".to_owned() },
            1 if banked.is_paid && !world.fate.one_in(4) => PayoutOutcome::Failed { reason: reason() },
            1 if banked.is_paid => {
                world.bank.lock().entry(id.clone()).and_modify(|banked| banked.is_returned = true);
                paid
            }
            2 if banked.is_returned => PayoutOutcome::Returned { reason: reason() },
            2 | 3 if banked.is_paid => paid,
            2 | 3 => PayoutOutcome::Failed { reason: reason() },
            _ => continue,
        };
        record(world, id.as_str(), now).await;
    }
}

fn records(store: &EmbeddedStore) -> impl Iterator<Item = PayoutRecord> {
    store.each_payout_with_bookings().filter_map(Result::ok).map(|(record, _)| record)
}

/// Payouts whose outcome the platform does not know yet as the bank knows it.
pub(super) fn unfinished(world: &World, store: &EmbeddedStore) -> Vec<String> {
    let mut found = Vec::new();
    let bank = world.bank.lock();
    for PayoutRecord { payout: Payout { id, status, amount, environment, .. }, .. } in records(store) {
        if environment == Environment::Test {
            if status.is_open() {
                found.push(format!("the test payout {id} is still {status}"));
            }
            continue;
        }
        let expected = match bank.get(&id) {
            None if matches!(status, PayoutStatus::Requested | PayoutStatus::Approved | PayoutStatus::Cancelled) => {
                continue;
            }
            None => {
                found.push(format!("the bank knows nothing of {id}, which is {status}"));
                continue;
            }
            Some(Banked { is_returned: true, .. }) => PayoutStatus::Returned,
            Some(Banked { is_paid: true, .. }) => PayoutStatus::Paid,
            Some(_) => PayoutStatus::Failed,
        };
        let minor = bank.get(&id).map_or(0, |banked| banked.minor);
        if status != expected || minor != amount.as_minor() {
            found.push(format!(
                "{id} of {amount} is {status}; for the bank it is {expected}, of {minor} in minor units"
            ));
        }
    }
    found
}

/// Checks that each payout is as the bank knows it, and that each request made one at most.
pub(super) fn check(world: &World, store: &EmbeddedStore) {
    unfinished(world, store).into_iter().for_each(|what| world.violation(what));
    let ids: Vec<String> = records(store).map(|record| record.payout.id.to_string()).collect();
    let asked: Vec<_> = world.merchants().iter().flat_map(|merchant| merchant.payouts().clone()).collect();
    if ids.len() > asked.len() {
        world.violation(format!("{} payouts are there, and {} were asked for", ids.len(), asked.len()));
    }
    for asked in asked {
        if let Some(payout) = asked.payout.filter(|payout| !ids.contains(payout)) {
            world.violation(format!("{payout}, which was acknowledged, is not there"));
        }
    }
    world.fate.count(|counts| {
        for record in records(store) {
            *counts.payouts.entry(record.payout.status.to_string()).or_default() += 1;
        }
    });
}
