//! Claims on work.

use std::slice;
use std::sync::Arc;

use payments_core::Environment;
use payments_store::{Change, Claim, OutboxHead, PaymentWrite, Queue, Store, Work, Write, domain::Outgoing};

use crate::samples::*;

async fn claim(store: &Arc<Store>, queue: Queue, server: u8, millis: i64) -> Vec<Claim> {
    store.claim(queue, &lease(server, millis), 9).await.unwrap()
}

/// Puts a delivery into an endpoint's outbox.
async fn fill_lane(store: &Arc<Store>, nth: u8) -> Work {
    commit(store, vec![delivery(&ping(nth, at(0), &endpoint(nth)))]).await.unwrap();
    Work::Lane(endpoint(nth).endpoint.id)
}

fn works(claims: &[Claim]) -> Vec<Work> {
    claims.iter().map(|claim| claim.work.clone()).collect()
}

pub(super) async fn work_has_one_holder_until_it_is_released_or_its_lease_ends(store: Arc<Store>) {
    assert_eq!(claim(&store, Queue::Lanes, 1, 0).await, []);
    let lanes = [fill_lane(&store, 1).await, fill_lane(&store, 2).await];
    let first = store.claim(Queue::Lanes, &lease(1, 0), 1).await.unwrap();
    assert_eq!(first.len(), 1);
    let second = claim(&store, Queue::Lanes, 2, 0).await;
    assert_eq!(second.len(), 1);
    let mut both = works(&[first[0].clone(), second[0].clone()]);
    both.sort_by_key(|work| lanes.iter().position(|lane| lane == work));
    assert_eq!(both, lanes);
    assert_eq!(claim(&store, Queue::Lanes, 1, 9_999).await, [], "nobody else's and not one's own");
    store.release(slice::from_ref(&second[0])).await.unwrap();
    let third = claim(&store, Queue::Lanes, 3, 5_000).await;
    assert_eq!(third.len(), 1);
    assert_ne!(third[0], second[0], "an epoch is never used again");
    // The first lease ends after ten seconds, the third one after fifteen.
    assert_eq!(works(&claim(&store, Queue::Lanes, 3, 10_000).await), works(&first));
    commit(&store, vec![end(&ping(1, at(0), &endpoint(1))), end(&ping(2, at(0), &endpoint(2)))]).await.unwrap();
    assert_eq!(claim(&store, Queue::Lanes, 1, DAY).await, [], "nothing is left to do");
}

pub(super) async fn a_renewed_claim_lasts_longer_and_one_that_was_taken_over_is_not_renewed(store: Arc<Store>) {
    fill_lane(&store, 1).await;
    let first = claim(&store, Queue::Lanes, 1, 0).await.remove(0);
    assert!(store.renew(&first, &lease(1, 9_000)).await.unwrap());
    assert_eq!(claim(&store, Queue::Lanes, 2, 18_999).await, []);
    let second = claim(&store, Queue::Lanes, 2, 19_000).await.remove(0);
    assert!(!store.renew(&first, &lease(1, 19_000)).await.unwrap());
    store.release(slice::from_ref(&first)).await.unwrap();
    assert!(store.renew(&second, &lease(2, 20_000)).await.unwrap(), "the first one's release does nothing");
    store.release(slice::from_ref(&second)).await.unwrap();
    assert!(!store.renew(&second, &lease(2, 20_000)).await.unwrap());
}

pub(super) async fn a_claim_that_was_released_or_taken_over_finishes_nothing(store: Arc<Store>) {
    fill_lane(&store, 1).await;
    let finish = async |claim: &Claim| {
        let change = Change { under: vec![claim.clone()], ..Change::of(end(&ping(1, at(0), &endpoint(1)))) };
        outcome(store.commit(change).await)
    };
    let released = claim(&store, Queue::Lanes, 1, 0).await.remove(0);
    store.release(slice::from_ref(&released)).await.unwrap();
    assert_eq!(finish(&released).await, WORK_LOST);
    let taken_over = claim(&store, Queue::Lanes, 1, 0).await.remove(0);
    let holder = claim(&store, Queue::Lanes, 2, 10_000).await.remove(0);
    for lost in [&released, &taken_over] {
        assert_eq!(finish(lost).await, WORK_LOST);
    }
    assert_eq!(store.outbox(&endpoint(1).endpoint.id, 9).await.unwrap().ids.len(), 1);
    assert_eq!(finish(&holder).await, COMMITTED);
    assert_eq!(store.outbox(&endpoint(1).endpoint.id, 9).await.unwrap().ids.len(), 0);
}

pub(super) async fn a_lane_can_be_claimed_if_it_has_a_pending_delivery_and_no_holder(store: Arc<Store>) {
    let lane = endpoint(1).endpoint.id;
    let claim_lane = async |server, millis| store.claim_lane(&lane, &lease(server, millis)).await.unwrap();
    assert_eq!(claim_lane(1, 0).await, None);
    fill_lane(&store, 1).await;
    let first = claim_lane(1, 0).await.unwrap();
    assert_eq!((claim_lane(2, 9_999).await, claim(&store, Queue::Lanes, 2, 9_999).await), (None, vec![]));
    let second = claim_lane(2, 10_000).await.unwrap();
    assert_ne!(first, second);
    commit(&store, vec![end(&ping(1, at(0), &endpoint(1)))]).await.unwrap();
    store.release(slice::from_ref(&second)).await.unwrap();
    assert_eq!(claim_lane(1, 0).await, None);
}

pub(super) async fn a_later_event_of_a_payment_waits_while_an_earlier_one_is_claimed(store: Arc<Store>) {
    let (new, other) = (new_payment(1, at(0)), new_payment(2, at(SECOND)));
    let paid = paid(&new.session, at(2 * SECOND));
    let of = |write: &PaymentWrite| vec![Work::FanOut(write.event.as_ref().unwrap().id.clone())];
    let (first, second, others) = (of(&new), of(&paid), of(&other));
    commit(&store, vec![added(endpoint(1), 9), payment(new)]).await.unwrap();
    commit(&store, vec![payment(paid), payment(other)]).await.unwrap();
    let claimed = store.claim(Queue::FanOut, &lease(1, 0), 1).await.unwrap();
    assert_eq!(works(&claimed), first, "the oldest");
    assert_eq!(works(&claim(&store, Queue::FanOut, 2, 0).await), others);
    // The server may have lost the answer to its first claim.
    assert_eq!(works(&claim(&store, Queue::FanOut, 1, 0).await), []);
    store.release(slice::from_ref(&claimed[0])).await.unwrap();
    let both = store.claim(Queue::FanOut, &lease(1, 0), 9).await.unwrap();
    assert_eq!(works(&both), [first.clone(), second.clone()].concat(), "together");
    // All leases end together. Now the second server has the earlier event.
    let claimed = store.claim(Queue::FanOut, &lease(2, 10_000), 1).await.unwrap();
    assert_eq!(works(&claimed), first);
    assert_eq!(works(&claim(&store, Queue::FanOut, 1, 10_000).await), others);
    store.release(slice::from_ref(&claimed[0])).await.unwrap();
    assert_eq!(works(&claim(&store, Queue::FanOut, 1, 10_000).await), [first, second].concat());
}

pub(super) async fn an_endpoint_committed_before_a_payments_change_receives_its_event(store: Arc<Store>) {
    let new = new_payment(1, at(0));
    let paid = paid(&new.session, at(SECOND));
    let event = paid.event.as_ref().unwrap().id.clone();
    let became_pending = async |write| commit(&store, vec![write]).await.unwrap().has_pending_event;
    assert!(!became_pending(payment(new)).await);
    assert!(!became_pending(added(endpoint(1), 9)).await);
    assert!(became_pending(payment(paid)).await);
    assert_eq!(works(&claim(&store, Queue::FanOut, 1, 0).await), [Work::FanOut(event.clone())], "only the later event");
    let (_, endpoints) = store.pending_event(&event, 9).await.unwrap().unwrap();
    assert_eq!(endpoints[0].endpoint.id, endpoint(1).endpoint.id);
}

pub(super) async fn an_event_of_a_scope_without_endpoints_is_never_pending(store: Arc<Store>) {
    let mut elsewhere = endpoint(1);
    elsewhere.environment = Environment::Test;
    let new = new_payment(1, at(0));
    let (paid, event) = (paid(&new.session, at(SECOND)), new.event.as_ref().unwrap().id.clone());
    commit(&store, vec![added(elsewhere, 9), payment(new), added(endpoint(2), 9)]).await.unwrap();
    assert!(store.pending_event(&event, 9).await.unwrap().is_none(), "the endpoint came after it");
    let removed = Write::EndpointRemoved(Box::new(endpoint(2)));
    let committed = commit(&store, vec![removed, payment(paid)]).await.unwrap();
    assert!(!committed.has_pending_event);
    assert_eq!(claim(&store, Queue::FanOut, 1, DAY).await, []);
}

pub(super) async fn an_event_is_handed_out_until_all_its_endpoints_are_handled(store: Arc<Store>) {
    let new = new_payment(1, at(0));
    let (event, id) = (new.event.as_ref().unwrap().id.clone(), new.session.payment.id.clone());
    commit(&store, vec![added(endpoint(1), 9), added(endpoint(3), 9), payment(new)]).await.unwrap();
    let look = async |after: Option<u8>| {
        let claim = claim(&store, Queue::FanOut, 1, 0).await.remove(0);
        let after = after.map(|nth| endpoint(nth).endpoint.id);
        let fanned_out = Write::FannedOut { scope: scope(), event: event.clone(), after };
        store.commit(Change { under: vec![claim.clone()], ..Change::of(fanned_out) }).await.unwrap();
        store.release(slice::from_ref(&claim)).await.unwrap();
    };
    let (pending, endpoints) = store.pending_event(&event, 1).await.unwrap().unwrap();
    assert_eq!((pending.subject, pending.after, endpoints.len()), (id.into(), None, 1));
    look(Some(1)).await;
    commit(&store, vec![added(endpoint(2), 9), added(endpoint(0), 9)]).await.unwrap();
    let (pending, endpoints) = store.pending_event(&event, 9).await.unwrap().unwrap();
    assert_eq!(pending.after, Some(endpoint(1).endpoint.id.clone()));
    let found: Vec<_> = endpoints.into_iter().map(|found| found.endpoint.id).collect();
    assert_eq!(found, [endpoint(2).endpoint.id, endpoint(3).endpoint.id]);
    look(None).await;
    assert_eq!(claim(&store, Queue::FanOut, 1, 0).await, []);
    assert!(store.pending_event(&event, 9).await.unwrap().is_none());
}

pub(super) async fn sessions_and_gateway_checks_are_handed_out_when_due_the_earliest_first(store: Arc<Store>) {
    // The sessions live for a minute, and their gateway is queried a minute after they expire.
    let mut ids = Vec::new();
    for (nth, created_at) in [(1, 3 * SECOND), (2, SECOND), (3, 2 * SECOND)] {
        let new = new_payment(nth, at(created_at));
        let asked = changed(&new.session, |session| session.check_at = Some(at(created_at + 120 * SECOND)));
        ids.push(new.session.payment.id.clone());
        commit(&store, vec![payment(new)]).await.unwrap();
        commit(&store, vec![payment(asked)]).await.unwrap();
    }
    let [last, first, second] = &ids[..] else { panic!() };
    for (queue, due, work) in [
        (Queue::Expiry, 60 * SECOND, Work::Expiry as fn(_) -> _),
        (Queue::GatewayChecks, 120 * SECOND, Work::GatewayCheck as fn(_) -> _),
    ] {
        assert_eq!(claim(&store, queue, 1, due + SECOND).await, [], "never early");
        let one = store.claim(queue, &lease(1, due + 3 * SECOND), 1).await.unwrap();
        assert_eq!(works(&one), [work(first.clone())]);
        // Timed work may be a few milliseconds late.
        let all = claim(&store, queue, 2, due + 3 * SECOND + 10).await;
        assert_eq!(works(&all), [work(second.clone()), work(last.clone())]);
    }
    let before = store.session(first).await.unwrap().unwrap();
    let paid = paid(&before, at(4 * SECOND));
    let unasked = changed(&paid.session, |session| session.check_at = None);
    commit(&store, vec![payment(paid), payment(unasked)]).await.unwrap();
    for queue in [Queue::Expiry, Queue::GatewayChecks] {
        let left = works(&claim(&store, queue, 3, DAY).await);
        assert!(left.len() == 2 && !left.contains(&Work::Expiry(first.clone())), "{left:?}");
    }
}

pub(super) async fn a_delivery_that_waits_is_in_no_outbox_and_is_handed_out_when_due_the_earliest_first(
    store: Arc<Store>,
) {
    let to = endpoint(1);
    let head = async || store.outbox(&to.endpoint.id, 9).await.unwrap();
    let waiting = async || store.gauges().await.unwrap().waiting;
    let pings: Vec<_> = (0..3).map(|nth| ping(nth, at(0), &to)).collect();
    commit(&store, pings.iter().map(delivery).collect()).await.unwrap();
    let untils = [3 * SECOND, SECOND, 2 * SECOND];
    for (ping, until) in pings.iter().zip(untils) {
        commit(&store, vec![wait(ping, at(until))]).await.unwrap();
    }
    assert_eq!((head().await, waiting().await), (OutboxHead { ids: vec![], is_all: true }, 3));
    assert_eq!(store.oldest_in_outbox().await.unwrap(), None);
    assert_eq!(claim(&store, Queue::Lanes, 1, DAY).await, [], "who waits makes no lane");
    assert_eq!(store.claim_lane(&to.endpoint.id, &lease(1, DAY)).await.unwrap(), None);
    let [last, first, second] = &pings[..] else { panic!() };
    let retry = |ping: &Outgoing| Work::Retry(ping.delivery.id.clone());
    assert_eq!(claim(&store, Queue::Retries, 1, SECOND).await, [], "never early");
    let one = store.claim(Queue::Retries, &lease(1, 4 * SECOND), 1).await.unwrap();
    assert_eq!(works(&one), [retry(first)]);
    assert_eq!(works(&claim(&store, Queue::Retries, 2, 4 * SECOND).await), [retry(second), retry(last)]);

    let put_back = async |claim: &Claim| {
        let due = store.outgoing(&first.delivery.id).await.unwrap().unwrap().due().unwrap();
        let change = Change { under: vec![claim.clone()], ..Change::of(Write::DeliveryChanged(Box::new(due))) };
        outcome(store.commit(change).await)
    };
    store.release(slice::from_ref(&one[0])).await.unwrap();
    assert_eq!(put_back(&one[0]).await, WORK_LOST);
    let one = claim(&store, Queue::Retries, 1, 4 * SECOND).await.remove(0);
    assert_eq!(put_back(&one).await, COMMITTED);
    store.release(slice::from_ref(&one)).await.unwrap();
    assert_eq!(head().await, OutboxHead { ids: vec![first.delivery.id.clone()], is_all: true });
    let due_since = Some(at(SECOND));
    assert_eq!((waiting().await, store.oldest_in_outbox().await.unwrap()), (2, due_since), "not since it was made");
    assert_eq!(works(&claim(&store, Queue::Retries, 3, DAY).await), [retry(second), retry(last)]);
    let again = store.outgoing(&first.delivery.id).await.unwrap().unwrap();
    commit(&store, vec![end(&again)]).await.unwrap();
    assert_eq!((head().await.ids, waiting().await), (vec![], 2));
}

pub(super) async fn a_delivery_that_waits_is_handed_out_once_if_the_time_of_its_attempt_changed(store: Arc<Store>) {
    let to = endpoint(1);
    let ping = ping(1, at(0), &to);
    commit(&store, vec![delivery(&ping)]).await.unwrap();
    commit(&store, vec![wait(&ping, at(9 * SECOND))]).await.unwrap();
    let read = async || store.outgoing(&ping.delivery.id).await.unwrap().unwrap();
    let sooner = read().await.sooner(8, at(0)).unwrap();
    let write = |it: &Outgoing| vec![Write::DeliveryChanged(Box::new(it.clone()))];
    commit(&store, write(&sooner)).await.unwrap();
    assert_eq!(outcome(commit(&store, write(&sooner)).await), STALE);
    assert_eq!(read().await.waits_until(), Some(at(SECOND)));
    assert_eq!((store.gauges().await.unwrap().waiting, store.oldest_in_outbox().await.unwrap()), (1, None));
    assert_eq!(store.outbox(&to.endpoint.id, 9).await.unwrap().ids, []);
    assert_eq!(claim(&store, Queue::Retries, 1, SECOND).await, [], "never early");
    let claims = claim(&store, Queue::Retries, 1, 2 * SECOND).await;
    assert_eq!(works(&claims), [Work::Retry(ping.delivery.id.clone())]);

    commit(&store, write(&sooner.due().unwrap())).await.unwrap();
    store.release(&claims).await.unwrap();
    assert_eq!(claim(&store, Queue::Retries, 1, DAY).await, [], "not at its first time");
    assert_eq!(store.outbox(&to.endpoint.id, 9).await.unwrap().ids, [read().await.delivery.id]);
    assert_eq!(store.gauges().await.unwrap().waiting, 0);
}

pub(super) async fn a_claim_that_was_made_before_the_clock_went_back_ends(store: Arc<Store>) {
    fill_lane(&store, 1).await;
    let lane = endpoint(1).endpoint.id;
    let first = claim(&store, Queue::Lanes, 1, 0).await.remove(0);
    // The clocks of two servers may differ by the length of a lease.
    assert_eq!(claim(&store, Queue::Lanes, 2, -10 * SECOND).await, []);
    assert_eq!(store.claim_lane(&lane, &lease(2, -10 * SECOND)).await.unwrap(), None);
    let second = claim(&store, Queue::Lanes, 2, -10 * SECOND - 1).await;
    assert_eq!(works(&second), std::slice::from_ref(&first.work));
    assert!(!store.renew(&first, &lease(1, 0)).await.unwrap());
    assert!(store.claim_lane(&lane, &lease(3, -DAY)).await.unwrap().is_some());

    let new = new_payment(1, at(0));
    let (paid, of) = (paid(&new.session, at(SECOND)), |write: &PaymentWrite| write.event.as_ref().unwrap().id.clone());
    let events = [of(&new), of(&paid)].map(Work::FanOut);
    commit(&store, vec![added(endpoint(1), 9), payment(new)]).await.unwrap();
    commit(&store, vec![payment(paid)]).await.unwrap();
    assert_eq!(works(&store.claim(Queue::FanOut, &lease(1, DAY), 1).await.unwrap()), events[..1]);
    assert_eq!(works(&claim(&store, Queue::FanOut, 2, DAY).await), []);
    assert_eq!(works(&claim(&store, Queue::FanOut, 2, 0).await), events, "the first holds up the second no more");
}

pub(super) async fn planned_work_is_listed_by_its_time_and_work_of_the_same_time_together(store: Arc<Store>) {
    let planned = async |queue, after, at_most| store.planned(queue, at(after), at_most).await.unwrap();
    let (mut expiries, mut checks, mut retries) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, created_at) in [(1, 3 * SECOND), (2, SECOND), (3, 3 * SECOND)] {
        let new = new_payment(nth, at(created_at));
        let asked = changed(&new.session, |session| session.check_at = Some(at(created_at)));
        let id = new.session.payment.id.clone();
        let ping = ping(nth, at(0), &endpoint(1));
        expiries.push((at(created_at + 60 * SECOND), Work::Expiry(id.clone())));
        checks.push((at(created_at), Work::GatewayCheck(id)));
        retries.push((at(created_at), Work::Retry(ping.delivery.id.clone())));
        commit(&store, vec![payment(new), delivery(&ping)]).await.unwrap();
        commit(&store, vec![payment(asked), wait(&ping, at(created_at))]).await.unwrap();
    }
    for (queue, mut all, delay) in
        [(Queue::Expiry, expiries, 60 * SECOND), (Queue::GatewayChecks, checks, 0), (Queue::Retries, retries, 0)]
    {
        all.swap(0, 1);
        assert_eq!(planned(queue, 0, 1).await, all[..1], "{queue:?}");
        let mut found = planned(queue, 0, 2).await;
        assert_eq!((found.len(), &found[0]), (3, &all[0]), "{queue:?}: two have one time");
        found.sort_by_key(|it| all.iter().position(|other| other == it));
        assert_eq!(found, all);
        assert_eq!(planned(queue, delay + SECOND, 9).await.len(), 2, "{queue:?}: not what lies at the time");
        assert_eq!(planned(queue, delay + 3 * SECOND, 9).await, [], "{queue:?}");
        claim(&store, queue, 1, delay + 2 * SECOND).await;
        assert_eq!(planned(queue, 0, 9).await.len(), 3, "{queue:?}: claimed or not");
    }
    for queue in [Queue::Lanes, Queue::FanOut] {
        assert_eq!(planned(queue, 0, 9).await, []);
    }
}
