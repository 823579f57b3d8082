//! Random steps have the same outcomes in two places for bytes, and leave the same records.

use std::{slice, sync::Arc};

use payments_core::{Currency, Day, RANDOM_BYTES, Status};
use payments_store::{
    Change, Claim, ClaimEnd, PaymentWrite, Prunable, Queue, Store, Work, Write,
    domain::{Outgoing, Place, Session, StoredToken, fan_out},
    layout::MemoryStore,
};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::{
    Embedded, Engine, Memory, Postgres,
    changes::api_key,
    check,
    moving::{Moved, values},
    samples::*,
};

/// How many payments, endpoints and pings there are at most.
const FEW: u8 = 6;
/// How long the samples' leases run, in milliseconds.
const LEASE: i64 = 10 * SECOND;
const STATUSES: [Status; 6] =
    [Status::Pending, Status::Completed, Status::Failed, Status::Cancelled, Status::Expired, Status::Refunded];

/// A step. Times are in tenths of a second.
#[derive(Debug, Clone)]
enum Step {
    Create(u8, i64),
    /// A transition of a payment: payment, cause, how many versions ago its session was read, time.
    Move(u8, u8, u64, i64),
    CheckAt(u8, Option<i64>),
    Review(u8, bool),
    NewResponse(u8, u8, i64),
    ClaimKey(u8, u8, i64),
    ReleaseKey(u8, u8),
    AddEndpoint(u8),
    RemoveEndpoint(u8),
    Ping(u8, i64),
    End(u8),
    /// Makes a delivery wait after a failed attempt, or changes the time until which it waits.
    Wait(u8, i64),
    Claim(u8, u8, i64),
    Release(u8),
    Renew(u8, i64),
    /// Does the work of a claim, if it still counts.
    Finish(u8),
    Prune(u8, i64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (nth, time) = (0..FEW, 0..1_500_i64);
    let days = prop_oneof![Just(0), Just(DAY / 100), Just(2 * DAY / 100)];
    let any_time = (time.clone(), days).prop_map(|(time, days)| time + days);
    prop_oneof![
        4 => (nth.clone(), time.clone()).prop_map(|(nth, time)| Step::Create(nth, time)),
        6 => (nth.clone(), 0..8_u8, 0..5_u64, time.clone())
            .prop_map(|(nth, cause, back, time)| Step::Move(nth, cause, back.saturating_sub(3), time)),
        2 => (nth.clone(), prop::option::of(time.clone())).prop_map(|(nth, time)| Step::CheckAt(nth, time)),
        2 => (nth.clone(), any::<bool>()).prop_map(|(nth, is_needed)| Step::Review(nth, is_needed)),
        3 => (0..3_u8, 0..5_u8, any_time.clone()).prop_map(|(key, end, time)| Step::NewResponse(key, end, time)),
        2 => (0..3_u8, 0..3_u8, any_time.clone()).prop_map(|(key, token, time)| Step::ClaimKey(key, token, time)),
        1 => (0..3_u8, 0..3_u8).prop_map(|(key, token)| Step::ReleaseKey(key, token)),
        3 => nth.clone().prop_map(Step::AddEndpoint),
        1 => nth.clone().prop_map(Step::RemoveEndpoint),
        2 => (nth.clone(), time.clone()).prop_map(|(nth, time)| Step::Ping(nth, time)),
        2 => nth.clone().prop_map(Step::End),
        2 => (nth.clone(), time.clone()).prop_map(|(nth, time)| Step::Wait(nth, time)),
        6 => (0..5_u8, 0..2_u8, time.clone()).prop_map(|(queue, server, time)| Step::Claim(queue, server, time)),
        2 => nth.clone().prop_map(Step::Release),
        1 => (nth.clone(), time).prop_map(|(nth, time)| Step::Renew(nth, time)),
        6 => nth.prop_map(Step::Finish),
        2 => (0..3_u8, any_time, 1..4_usize).prop_map(|(what, time, at_most)| Step::Prune(what, time, at_most)),
    ]
}

/// A store, and what the steps need to know of it.
struct Side {
    store: Arc<Store>,
    /// Claims and the ends of their leases.
    claims: Vec<(Claim, i64)>,
    /// The latest time of any claim. A lease that has ended by then may or may not count, so no claim is earlier.
    latest: i64,
    /// Every version of every payment.
    sessions: Vec<Vec<Session>>,
    pings: Vec<Option<Outgoing>>,
    /// How many deliveries of events were made.
    made: u8,
}

impl Side {
    fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            claims: vec![],
            latest: 0,
            sessions: vec![vec![]; FEW.into()],
            pings: vec![None; FEW.into()],
            made: 100,
        }
    }

    /// Takes a step. Returns its outcome.
    async fn step(&mut self, step: Step) -> String {
        let of = |nth: u8| usize::from(nth);
        match step {
            Step::Create(nth, time) => {
                // No two payments are due at one time, because they could be handed out in either order.
                let created_at = at(time * 100 + i64::from(nth) * 10);
                self.payment(nth, Some(new_payment(nth, created_at))).await
            }
            Step::Move(nth, cause, back, time) => {
                let versions = &self.sessions[of(nth)];
                let before = versions.iter().rev().nth(usize::try_from(back).unwrap());
                let write = before.and_then(|before| try_moved(before, cause_of(cause, nth, time), at(time * 100)));
                self.payment(nth, write).await
            }
            Step::CheckAt(nth, time) => {
                let write = self.sessions[of(nth)].last().map(|before| asked(before, time));
                self.payment(nth, write).await
            }
            Step::Review(nth, is_needed) => {
                let write = self.sessions[of(nth)].last().map(|before| reviewed(before, is_needed));
                self.payment(nth, write).await
            }
            Step::NewResponse(name, end, time) => {
                let (name, end) = match end {
                    // Nobody claims this key.
                    0 => ("3".to_owned(), ClaimEnd::NotClaimed),
                    1 => (name.to_string(), ClaimEnd::Any),
                    nth => (name.to_string(), ClaimEnd::Held(token(nth - 2))),
                };
                outcome(self.store.commit(keeping(&name, time, at(time * 100), end)).await)
            }
            Step::ClaimKey(name, nth, time) => {
                let write = claiming(&name.to_string(), nth, at(time * 100), at(time * 100 + 20 * SECOND));
                self.commit(write).await
            }
            Step::ReleaseKey(name, nth) => self.commit(Write::KeyReleased(key(&name.to_string()), token(nth))).await,
            Step::AddEndpoint(nth) => self.commit(added(endpoint(nth), 4)).await,
            Step::RemoveEndpoint(nth) => self.commit(Write::EndpointRemoved(Box::new(endpoint(nth)))).await,
            Step::Ping(nth, time) => {
                let ping = self.pings[of(nth)].get_or_insert_with(|| ping(nth, at(time * 100), &endpoint(nth % 2)));
                let write = delivery(ping);
                self.commit(write).await
            }
            Step::End(nth) => match &self.pings[of(nth)] {
                Some(ping) => {
                    let write = end(ping);
                    self.commit(write).await
                }
                None => String::new(),
            },
            Step::Wait(nth, time) => {
                let Some(ping) = &self.pings[of(nth)] else { return String::new() };
                match self.store.outgoing(&ping.delivery.id).await.unwrap().filter(Outgoing::is_pending) {
                    Some(stored) => self.commit(wait(&stored, at(time * 100))).await,
                    None => String::new(),
                }
            }
            Step::Claim(queue, server, time) => {
                let queue =
                    [Queue::FanOut, Queue::Lanes, Queue::Retries, Queue::Expiry, Queue::GatewayChecks][of(queue)];
                self.latest = self.latest.max(time * 100);
                let claimed = self.store.claim(queue, &lease(server, self.latest), 2).await.unwrap();
                let works = format!("{:?}", claimed.iter().map(|claim| &claim.work).collect::<Vec<_>>());
                self.claims.extend(claimed.into_iter().map(|claim| (claim, self.latest + LEASE)));
                works
            }
            Step::Release(nth) => {
                let Some((claim, _)) = self.claims.iter().rev().nth(of(nth)) else { return String::new() };
                format!("{:?}", self.store.release(slice::from_ref(claim)).await.unwrap())
            }
            Step::Renew(nth, time) => {
                let now = self.latest.max(time * 100);
                let running = self.claims.iter_mut().rev().nth(of(nth)).filter(|(_, until)| *until > self.latest);
                let Some((claim, until)) = running else { return String::new() };
                *until = now + LEASE;
                format!("{:?}", self.store.renew(claim, &lease(0, now)).await.unwrap())
            }
            Step::Finish(nth) => self.finish(of(nth)).await,
            Step::Prune(what, time, at_most) => {
                // Stores drop ended leases with old claims on keys.
                self.latest = if what == 1 { self.latest.max(time * 100) } else { self.latest };
                let what = [Prunable::StoredResponses, Prunable::KeyClaims, Prunable::DeliveryBodies][of(what)];
                format!("{:?}", self.store.prune(what, at(time * 100), at_most).await.unwrap())
            }
        }
    }

    async fn commit(&self, write: Write) -> String {
        outcome(commit(&self.store, vec![write]).await)
    }

    async fn payment(&mut self, nth: u8, write: Option<PaymentWrite>) -> String {
        let Some(write) = write else { return String::new() };
        let session = write.session.clone();
        let outcome = self.commit(payment(write)).await;
        if outcome == COMMITTED {
            self.sessions[usize::from(nth)].push(session);
        }
        outcome
    }

    async fn finish(&mut self, nth: usize) -> String {
        let running = self.claims.iter().rev().nth(nth).filter(|(_, until)| *until > self.latest);
        let Some((claim, _)) = running else { return String::new() };
        let writes = match &claim.work {
            Work::FanOut(event) => {
                let Some((pending, endpoints)) = self.store.pending_event(event, 2).await.unwrap() else {
                    return "no event".into();
                };
                let after = endpoints.get(1).map(|last| last.endpoint.id.clone());
                let made = fan_out(&pending, &endpoints, || {
                    self.made += 1;
                    [self.made; RANDOM_BYTES]
                });
                let mut writes: Vec<_> = made.iter().map(delivery).collect();
                writes.push(Write::FannedOut { scope: scope(), event: event.clone(), after });
                writes
            }
            Work::Lane(endpoint) => {
                let mut writes = Vec::new();
                for id in self.store.outbox(endpoint, 2).await.unwrap().ids {
                    writes.push(end(&self.store.outgoing(&id).await.unwrap().unwrap()));
                }
                writes
            }
            Work::Retry(delivery) => {
                let waiting = self.store.outgoing(delivery).await.unwrap();
                let due = waiting.and_then(Outgoing::due);
                due.into_iter().map(|due| Write::DeliveryChanged(Box::new(due))).collect()
            }
            Work::Expiry(_) | Work::GatewayCheck(_) => Vec::new(),
        };
        outcome(self.store.commit(Change { under: vec![claim.clone()], writes, ..Change::default() }).await)
    }

    /// Everything that can be read.
    async fn read(&self) -> serde_json::Value {
        let store = &self.store;
        let mut read = Vec::new();
        read.push(unordered(&payment_page(store, None, page_of(1, 99)).await));
        read.push(unordered(&store.deliveries(&scope(), None, page_of(1, 99)).await.unwrap()));
        for status in STATUSES {
            let by_status = store.gauges().await.unwrap().payments.into_iter().filter(|row| row.1 == status);
            read.push(json!(by_status.map(|row| row.2).sum::<u64>()));
            read.push(unordered(&payment_page(store, Some(&status), page_of(1, 99)).await));
        }
        for session in self.sessions.iter().filter_map(|versions| versions.last()) {
            read.push(json!(store.session(&session.payment.id).await.unwrap()));
        }
        for nth in 0..FEW {
            let id = endpoint(nth).endpoint.id;
            read.push(json!(store.endpoint(&id).await.unwrap()));
            read.push(unordered(&store.deliveries(&scope(), Some(&id), page_of(1, 99)).await.unwrap()));
            let head = store.outbox(&id, 3).await.unwrap();
            read.push(json!((head.ids, head.is_all)));
            let response = store.stored_response(&key(&nth.to_string())).await.unwrap();
            read.push(json!(response.map(|response| (response.body, response.created_at))));
        }
        read.push(json!((store.oldest_in_outbox().await.unwrap(), store.endpoints(&scope(), None, 9).await.unwrap())));
        read.push(json!(store.log_part(&scope(), Place::Open).await.unwrap()));
        read.push(json!(store.gauges().await.unwrap().waiting));
        read.push(json!((store.manual_reviews().await.unwrap(), store.manual_settlements().await.unwrap())));
        read.push(json!(store.totals(&scope(), Currency::Bdt).await.unwrap()));
        read.push(json!(store.days(&scope(), Currency::Bdt, Day::of(at(0))..=Day::of(at(DAY))).await.unwrap()));
        // Claimed by another server, after every lease has ended.
        for queue in [Queue::FanOut, Queue::Retries, Queue::Expiry, Queue::GatewayChecks] {
            let claims = store.claim(queue, &lease(9, 3 * DAY), 99).await.unwrap();
            read.push(json!(claims.iter().map(|claim| format!("{:?}", claim.work)).collect::<Vec<_>>()));
        }
        json!(read)
    }
}

/// A page, sorted by the ids of its items: if the clock steps back, one place lists by time and another by commit.
fn unordered(page: &impl Serialize) -> serde_json::Value {
    let mut page = json!(page);
    let items = page["items"].as_array_mut().unwrap();
    items.sort_by_key(|item| item["id"].to_string());
    page
}

/// Takes the same steps in a store and in one in memory, and compares them.
fn same<E: Engine>(first: Option<Step>, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (memory, engine) = (Memory::new().await, E::new().await);
        {
            let (mut one, mut other) = (Side::new(memory.store()), Side::new(engine.store()));
            for step in first.into_iter().chain(steps) {
                prop_assert_eq!(one.step(step.clone()).await, other.step(step.clone()).await, "{:?}", step);
            }
            prop_assert_eq!(one.read().await, other.read().await);
        }
        check(engine).await.end().await;
        Ok(())
    })
}

/// Takes steps in an embedded store, moves it to a database, and moves that to another directory.
fn moved_there_and_back(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Embedded::new().await;
        let mut side = Side::new(engine.store());
        side.commit(Write::Workspace(workspace(0))).await;
        let (hash, key) = api_key(1, 0);
        side.commit(Write::ApiKey(hash, Box::new(key))).await;
        side.commit(Write::LogPart(Box::new(log_part(0)))).await;
        side.commit(Write::GatewayToken("bkash".into(), StoredToken { token: Some(vec![1]), ..Default::default() }))
            .await;
        for step in steps {
            side.step(step).await;
        }
        let read = side.read().await;
        side.store = MemoryStore::default().into_store();
        let there: Postgres = moved(engine).await;
        side.store = there.store();
        prop_assert_eq!(&side.read().await, &read);
        side.store = MemoryStore::default().into_store();
        let back: Embedded = moved(check(there).await).await;
        side.store = back.store();
        prop_assert_eq!(side.read().await, read);
        drop(side);
        check(back).await.end().await;
        Ok(())
    })
}

/// Moves a store's values to a new store, and closes the old one.
async fn moved<T: Moved>(from: impl Moved) -> T {
    let all = from.read(|store| values(store, None, 256)).await;
    let to = T::new().await;
    for some in all.chunks(256) {
        to.take_in(some.to_vec()).await;
    }
    assert_eq!(to.read(|store| values(store, None, 256)).await, all);
    from.end().await;
    to
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_are_the_same_after_a_migration_to_the_other_place_and_back(
        steps in prop::collection::vec(step(), 20..80),
    ) {
        moved_there_and_back(steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_changes_have_the_same_outcomes_and_leave_the_same_records(
        first in prop::option::of(Just(Step::AddEndpoint(0))),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        same::<Embedded>(first.clone(), steps.clone())?;
        same::<Postgres>(first, steps)?;
    }
}
