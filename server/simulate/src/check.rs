//! Checks a world at its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::once_with,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use gateway_fakes::Entry;
use hyper::StatusCode;
use payments_core::{Currency, DeliveryStatus, Environment, PaymentId, RefundSource, Timestamp};
use payments_store::{
    EventWrite, Snapshot as _,
    domain::{GatewayName, Outgoing, Session},
    embedded::EmbeddedStore,
};
use tokio::time::sleep;

use super::{
    ask::{Ask, Key},
    coverage::transitions,
    endpoints::{Manners, Received, TEST_EVENT},
    merchant::Merchant,
    node::PERMITS,
    payouts,
    world::World,
};

/// How often to look whether a world has come to its end.
const INTERVAL: Duration = Duration::from_secs(120);
/// How late an attempt may be.
const OVERDUE_MILLIS: i64 = 60_000;

/// Returns when nothing is left to do.
pub(super) async fn until_quiet(world: &World) {
    loop {
        sleep(INTERVAL).await;
        if unfinished(world, 1).is_empty() {
            // Wait for events that became pending meanwhile.
            sleep(INTERVAL).await;
            if unfinished(world, 1).is_empty() {
                return;
            }
        }
    }
}

/// Reports unfinished things as violations.
pub(super) fn name_unfinished(world: &World) {
    unfinished(world, 10).into_iter().for_each(|what| world.violation(what));
}

fn sessions(store: &EmbeddedStore) -> impl Iterator<Item = Session> {
    store.each_session().filter_map(Result::ok)
}

/// At most `at_most` things that are not finished.
fn unfinished(world: &World, at_most: usize) -> Vec<String> {
    let Some((store, _)) = world.around.database.current() else { return vec!["the database is down".to_owned()] };
    let decided = sessions(&store).filter(|session| !session.needs_manual_review());
    let open = decided.filter_map(|Session { payment, pending_refund, check_at, .. }| match pending_refund {
        _ if payment.raw_status.is_open() => Some(format!("{} is still {:?}", payment.id, payment.raw_status)),
        Some(pending) => Some(format!(
            "{} of {} is still pending after {} tries; the next is due at {check_at:?}",
            pending.id, payment.id, pending.tries
        )),
        None => None,
    });
    let now = world.around.clock_millis();
    let is_overdue = |until: Timestamp| until.as_millis() + OVERDUE_MILLIS < now;
    let is_held_up = |it: &Outgoing| Timestamp::from_millis(now).is_ok_and(|now| it.clone().unheld(now).is_some());
    let deliveries = store.each_delivery().filter_map(Result::ok);
    let unsent =
        deliveries.filter(|it| it.is_in_outbox() || it.waits_until().is_some_and(is_overdue) || is_held_up(it));
    let unsent = unsent.map(|it| format!("{} still has to be sent", it.delivery.id));
    let money = once_with(|| money(world, &sessions(&store).collect::<Vec<_>>())).flatten();
    let payouts = once_with(|| payouts::unfinished(world, &store)).flatten();
    open.chain(unsent).chain(money).chain(payouts).take(at_most).collect()
}

/// Differences between the gateways' books and the sessions.
fn money(world: &World, sessions: &[Session]) -> Vec<String> {
    let mut found = Vec::new();
    let mut books: BTreeMap<String, Entry> = BTreeMap::new();
    for entry in world.around.books() {
        if entry.taken > 1 {
            found.push(format!("the money of {} was taken {} times", entry.id, entry.taken));
        }
        books.insert(entry.id.clone(), entry);
    }
    let all = books.clone();
    for session in sessions.iter().filter(|session| session.payment.environment == Environment::Live) {
        let payment = &session.payment;
        let was_paid = payment.was_paid();
        let attempts = session.attempt.iter().chain(session.ended_attempts.iter().map(|ended| &ended.attempt));
        let taken: Vec<Entry> =
            attempts.filter_map(|attempt| books.remove(&attempt.external_id)).filter(|entry| entry.taken > 0).collect();
        let failed = session.attempt.iter().chain(session.ended_attempts.iter().map(|ended| &ended.attempt));
        for attempt in failed.filter(|it| it.gateway == GatewayName::of("bkash") && it.failure.is_some()) {
            if all.get(&attempt.external_id).is_none_or(|entry| !entry.is_refused) {
                found.push(format!(
                    "{} failed, and its gateway never said so: {:?}",
                    attempt.external_id, attempt.failure
                ));
            }
        }
        // Money that came twice waits for a person.
        let is_reviewed = session.review.is_some();
        if taken.len() != usize::from(was_paid) && !is_reviewed {
            found.push(format!("{} is {:?}, and the gateway took {taken:?}", payment.id, payment.raw_status));
        }
        if taken.iter().any(|entry| entry.amount_minor != payment.amount.as_minor()) {
            found.push(format!("{} and the gateway disagree about the amount: {taken:?}", payment.id));
        }
        let at_portal = session.attempt.as_ref().is_some_and(|it| it.gateway == GatewayName::of("sslcommerz"));
        let names_fees = payment.currency == Currency::Usd || at_portal;
        let kept: i64 = session.costs.iter().map(|cost| cost.minor).sum();
        let fees: u64 = taken.iter().map(|entry| entry.kept_minor).sum();
        if names_fees && was_paid && kept != fees.cast_signed() && !is_reviewed {
            found.push(format!("the gateway kept {fees} of {}, and {kept} are booked", payment.id));
        }
        let disputed: u64 = payment.disputes.iter().map(|dispute| dispute.amount_taken().as_minor()).sum();
        let withdrawn: u64 = match payment.currency {
            Currency::Usd | Currency::Other(_) => {
                let paid_by = session.attempt.as_ref().map(|attempt| &attempt.external_id);
                taken.iter().filter(|entry| Some(&entry.id) == paid_by).map(|entry| entry.disputed_minor).sum()
            }
            Currency::Bdt => {
                let recorded = world.recorded_disputes.lock();
                recorded.iter().filter(|it| it.payment == payment.id).map(|it| it.taken).sum()
            }
        };
        if disputed != withdrawn {
            found.push(format!("disputes took {withdrawn} of {}, and {disputed} are booked", payment.id));
        }
        let sent_back: u64 = taken.iter().map(|entry| entry.refunded_minor).sum();
        // After a lost answer a person looks whether the refund was made, and records it as sent by hand.
        let standing = payment.refunds.iter().filter(|refund| refund.stands());
        let by_gateway = standing.filter(|refund| refund.is_by_gateway()).map(|refund| refund.amount.as_minor()).sum();
        let all = payment.amount_refunded().as_minor();
        if at_portal && !(by_gateway..=all).contains(&sent_back) && !is_reviewed {
            found.push(format!("the gateway gave {sent_back} of {} back, where {by_gateway} are booked", payment.id));
        }
        if payment.currency == Currency::Usd && sent_back != payment.amount_refunded().as_minor() && !is_reviewed {
            found.push(format!("{} gave {} back, the gateway {sent_back}", payment.id, payment.amount_refunded()));
        }
    }
    // Attempts that no session has must never be paid.
    found.extend(books.values().filter(|entry| entry.taken > 0).map(|entry| format!("nobody knows of {entry:?}")));
    found
}

/// Checks that each merchant's keys work and its replaced keys do not.
pub(super) async fn check_keys(world: &Arc<World>) {
    for merchant in world.merchants() {
        for is_live in [true, false] {
            let answer = world.ask(Ask::get("/api/v1/account").by(merchant.key(is_live))).await;
            if answer.is_none_or(|answer| answer.status != StatusCode::OK) {
                world.violation(format!("a key of {} does not work", merchant.workspace));
            }
        }
        let revoked = merchant.revoked.lock().clone();
        for key in revoked {
            let answer = world.try_once(&Ask::get("/api/v1/account").by(&Key::new(key))).await;
            if answer.is_none_or(|answer| answer.status != StatusCode::UNAUTHORIZED) {
                world.violation(format!("a revoked key of {} still works", merchant.workspace));
            }
        }
    }
}

/// Checks everything.
pub(super) fn check(world: &Arc<World>) {
    let Some((store, _)) = world.around.database.current() else { return world.violation("the database is down") };
    match store.check(&mut |_| ()) {
        Ok(checked) => {
            for finding in checked.findings.iter().take(10) {
                world.violation(format!("check: {}: {}", finding.record, finding.what));
            }
        }
        Err(error) => world.violation(format!("the check failed: {error}")),
    }
    let sessions: Vec<Session> = sessions(&store).collect();
    money(world, &sessions).into_iter().for_each(|what| world.violation(what));
    world.fate.count(|counts| {
        counts.payments = sessions.len() as u64;
        counts.transitions = transitions(&sessions);
        for step in sessions.iter().flat_map(|session| &session.moves) {
            *counts.moves.entry(format!("{:?}", step.kind)).or_default() += 1;
        }
    });
    orders(world, &sessions);
    payouts::check(world, &store);
    deliveries(world, &store, &sessions);
    for node in &world.nodes {
        let (permits, effects) = node.in_flight();
        if !(0..=PERMITS as i64).contains(&permits) || effects != 0 {
            world.violation(format!("server {} has {permits} permits and {effects} effects in progress", node.name));
        }
    }
    for receiver in world.hosts().values() {
        receiver.faults().into_iter().take(3).for_each(|fault| world.violation(fault));
    }
}

/// Checks that each order has one payment, and each request for a refund one refund. Nobody else makes refunds but people in the
/// dashboard.
fn orders(world: &World, sessions: &[Session]) {
    let asked = world.refunds_asked();
    let mut in_dashboard = 0;
    for refund in sessions.iter().flat_map(|session| session.payment.refunds.iter()) {
        in_dashboard += usize::from(refund.source == Some(RefundSource::Gateway));
        let is_asked = refund.reason.as_ref().is_some_and(|reason| asked.contains(reason));
        if refund.source.is_none() && !is_asked {
            world.violation(format!("nobody asked for {refund:?}"));
        }
    }
    let made = world.dashboard_refunds.lock().len();
    if in_dashboard > made {
        world.violation(format!("{in_dashboard} refunds were found in the dashboard, where {made} were made"));
    }
    for lost in world.recorded_disputes.lock().iter() {
        let session = sessions.iter().find(|session| session.payment.id == lost.payment);
        if let Some(asked_before) = &lost.asked_before
            && let Some(payment) = session.map(|session| &session.payment)
            && payment.refunds.iter().any(|it| it.reason.as_ref().is_some_and(|reason| !asked_before.contains(reason)))
            && payment.amount_refunded().as_minor() + lost.taken > payment.amount.as_minor()
        {
            world.violation(format!("{} was refunded after a lost dispute had taken the money", payment.id));
        }
    }
    let mut by_number: BTreeMap<&str, Vec<&Session>> = BTreeMap::new();
    for session in sessions {
        by_number.entry(&session.payment.merchant_transaction_id).or_default().push(session);
    }
    for merchant in world.merchants() {
        for order in merchant.orders().iter() {
            let found = by_number.get(order.number.as_str()).map_or(&[][..], |found| found);
            let ids: Vec<&str> = found.iter().map(|session| session.payment.id.as_str()).collect();
            match (&order.payment, ids.as_slice()) {
                (None, [] | [_]) => {}
                (Some(payment), [id]) if payment == id => {}
                (known, ids) => world.violation(format!("{} has {ids:?}, and was told {known:?}", order.number)),
            }
            for (key, _, is_acknowledged) in &order.refunds {
                let refunds = found.iter().flat_map(|session| session.payment.refunds.iter());
                let made = refunds.filter(|refund| refund.reason.as_deref() == Some(key)).count();
                if made > 1 || (made == 0 && *is_acknowledged) {
                    world.violation(format!("{key} was made {made} times, acknowledged: {is_acknowledged}"));
                }
            }
        }
    }
}

/// Checks that every endpoint got every event, and nothing else.
fn deliveries(world: &Arc<World>, store: &EmbeddedStore, sessions: &[Session]) {
    let merchants = world.merchants();
    let mut owners: BTreeMap<String, &Arc<Merchant>> = BTreeMap::new();
    for merchant in &merchants {
        owners.extend(merchant.orders().iter().map(|order| (order.number.clone(), merchant)));
    }
    let hosts = world.hosts();
    let received: BTreeMap<&str, BTreeMap<String, Received>> =
        hosts.iter().map(|(host, receiver)| (host.as_str(), receiver.received())).collect();
    let mut events: BTreeMap<PaymentId, Vec<EventWrite>> = BTreeMap::new();
    for session in sessions {
        let (scope, id) = (session.scope(), session.payment.id.clone());
        let of = store.events_of(&scope, std::slice::from_ref(&id)).now_or_never().and_then(Result::ok);
        events.insert(id, of.into_iter().flatten().flat_map(|(_, events)| events).collect());
    }
    let mut made: BTreeMap<(String, String), Vec<Outgoing>> = BTreeMap::new();
    for delivery in store.each_delivery().filter_map(Result::ok) {
        if let Some(event) = &delivery.event {
            let key = (event.to_string(), delivery.delivery.webhook_id.to_string());
            made.entry(key).or_default().push(delivery);
        }
    }
    for session in sessions {
        let of = events.get(&session.payment.id).map_or(&[][..], |events| events);
        let Some(merchant) = owners.get(&session.payment.merchant_transaction_id) else { continue };
        let is_live = session.payment.environment == Environment::Live;
        for (endpoint, _, receiver) in merchant.endpoints.iter().filter(|(_, of, _)| *of == is_live) {
            let Some(received) = received.get(receiver.host.as_str()) else { continue };
            let mut is_ordered = true;
            for event in of {
                let key = (event.id.to_string(), endpoint.clone());
                let first: Vec<&Outgoing> =
                    made.get(&key).into_iter().flatten().filter(|it| it.resend_of.is_none()).collect();
                let [delivery] = first.as_slice() else {
                    world.violation(format!("{} has {} deliveries to {endpoint}", event.id, first.len()));
                    continue;
                };
                let is_received = received.contains_key(event.id.as_str());
                if delivery.delivery.status == DeliveryStatus::Success && !is_received {
                    world.violation(format!("{} counts as delivered to {endpoint}, which did not get it", event.id));
                }
                is_ordered &= delivery.delivery.status == DeliveryStatus::Success && delivery.delivery.attempts == 1;
            }
            if is_ordered && receiver.first_manners() == Manners::Good {
                in_order(world, &receiver.host, received, of, &session.payment.id);
            }
        }
    }
    let known: BTreeSet<&str> = events.values().flatten().map(|event| event.id.as_str()).collect();
    for (host, received) in &received {
        let foreign = received.iter().filter(|(event, it)| {
            it.kind != TEST_EVENT && !it.kind.starts_with("payout.") && !known.contains(event.as_str())
        });
        for (event, it) in foreign {
            world.violation(format!("{host} got {} {event}, which no payment has", it.kind));
        }
    }
}

/// Checks that the events of a payment were first received in their order.
fn in_order(
    world: &World,
    host: &str,
    received: &BTreeMap<String, Received>,
    events: &[EventWrite],
    payment: &PaymentId,
) {
    let places: Vec<_> = events.iter().map(|event| received.get(event.id.as_str()).map(|it| it.place)).collect();
    if !places.is_sorted() {
        world.violation(format!("{host} got the events of {payment} out of order: {places:?}"));
    }
}
