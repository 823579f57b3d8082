//! The list of events.

use std::{sync::Arc, time::Duration};

use payments_core::{Environment, EventId, RANDOM_BYTES, Slot};
use payments_store::{
    DeliveriesFrom, EventEntry, EventWrite, EventsFrom, PaymentWrite, Prunable, Store,
    domain::{Outgoing, Scope, fan_out},
};
use tokio::time::sleep;

use crate::samples::{
    DAY, SECOND, added, at, commit, delivery, end, endpoint, new_payment, paid, payment, ping, scope,
};

/// The part of the list, once it has `expected` events: a place may show an event a little late.
async fn listed(store: &Arc<Store>, from: EventsFrom, at_most: usize, expected: usize) -> Vec<EventEntry> {
    for _ in 0..1000 {
        let found = store.events(&scope(), &from, at_most).await.unwrap().unwrap();
        if found.len() >= expected {
            return found;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the list never had {expected} events from {from:?} on");
}

fn event_of(write: &PaymentWrite) -> EventWrite {
    write.event.clone().unwrap()
}

fn ids(entries: &[EventEntry]) -> Vec<EventId> {
    entries.iter().map(|entry| entry.id.clone()).collect()
}

pub(super) async fn events_are_listed_in_the_order_of_their_commits_in_their_own_scope(store: Arc<Store>) {
    assert_eq!(store.events(&scope(), &EventsFrom::Beginning, 9).await.unwrap().unwrap(), []);
    // The second event is committed later and happened earlier.
    let writes = [new_payment(1, at(SECOND)), new_payment(2, at(0))];
    let completed = paid(&writes[0].session, at(2 * SECOND));
    let mut expected = Vec::new();
    for write in [&writes[0], &writes[1], &completed] {
        let event = event_of(write);
        expected.push(EventEntry { id: event.id, kind: event.kind });
        commit(&store, vec![payment(write.clone())]).await.unwrap();
    }
    assert_eq!(listed(&store, EventsFrom::Beginning, 9, 3).await, expected);
    let ids = [2, 0].map(|nth: usize| expected[nth].id.clone());
    let whole = store.whole_events(&scope(), &ids).await.unwrap();
    assert_eq!(whole, [event_of(&completed), event_of(&writes[0])]);
    assert_eq!(listed(&store, EventsFrom::Last, 9, 1).await, expected[2..]);
    let other = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.events(&other, &EventsFrom::Beginning, 9).await.unwrap().unwrap(), []);
    assert!(store.events(&other, &EventsFrom::After(expected[0].id.clone()), 9).await.unwrap().is_none());
    assert!(store.whole_events(&other, &ids).await.unwrap().is_empty());
    assert!(store.events_of(&other, &[writes[0].session.payment.id.clone()]).await.unwrap().is_empty());
    let unknown = EventId::new(Slot::FIRST, at(0), [9; RANDOM_BYTES]);
    assert!(store.events(&scope(), &EventsFrom::After(unknown), 9).await.unwrap().is_none());
}

pub(super) async fn a_reader_of_the_list_of_events_misses_none_and_reads_none_twice(store: Arc<Store>) {
    let mut expected = Vec::new();
    for nth in 1..=100 {
        let write = new_payment(nth, at(i64::from(nth) * DAY));
        expected.push(event_of(&write).id);
        commit(&store, vec![payment(write)]).await.unwrap();
    }
    let mut found: Vec<EventId> = Vec::new();
    while found.len() < expected.len() {
        let from = found.last().map_or(EventsFrom::Beginning, |last| EventsFrom::After(last.clone()));
        let part = listed(&store, from, 7, 7.min(expected.len() - found.len())).await;
        assert!(part.len() <= 7);
        found.extend(ids(&part));
    }
    assert_eq!(found, expected);
    assert_eq!(listed(&store, EventsFrom::After(found[99].clone()), 7, 0).await, []);
    // A part from a time leaves out no event of that time or later, and does not begin with the first event.
    let from_time = ids(&listed(&store, EventsFrom::Time(at(90 * DAY)), 100, 11).await);
    assert!(from_time.ends_with(&expected[89..]));
}

pub(super) async fn an_event_keeps_its_data_in_the_list_when_its_payment_changes(store: Arc<Store>) {
    let created = new_payment(1, at(0));
    let completed = paid(&created.session, at(SECOND));
    let expected = [event_of(&created), event_of(&completed)];
    let id = created.session.payment.id.clone();
    for write in [created, completed] {
        commit(&store, vec![payment(write)]).await.unwrap();
    }
    let absent = new_payment(2, at(0)).session.payment.id;
    let found = store.events_of(&scope(), &[absent, id.clone()]).await.unwrap();
    assert_eq!(found, [(id, expected.to_vec())]);
}

pub(super) async fn every_delivery_of_a_payments_events_is_listed_with_the_payment(store: Arc<Store>) {
    let hook = endpoint(1);
    commit(&store, vec![added(hook.clone(), 9)]).await.unwrap();
    let created = new_payment(1, at(0));
    let (id, first) = (created.session.payment.id.clone(), event_of(&created).id);
    let completed = paid(&created.session, at(SECOND));
    let second = event_of(&completed).id;
    commit(&store, vec![payment(created)]).await.unwrap();
    commit(&store, vec![payment(completed), payment(new_payment(2, at(0)))]).await.unwrap();
    let mut expected = Vec::new();
    for (nth, event) in [(1, &first), (2, &second)] {
        let (pending, endpoints) = store.pending_event(event, 9).await.unwrap().unwrap();
        let made = fan_out(&pending, &endpoints, || [nth; RANDOM_BYTES]).remove(0);
        commit(&store, vec![delivery(&made)]).await.unwrap();
        expected.push(made);
    }
    // An ended and redacted delivery stays in the list. A ping belongs to no payment.
    commit(&store, vec![end(&expected[0]), delivery(&ping(3, at(0), &hook))]).await.unwrap();
    store.prune(Prunable::DeliveryBodies, at(DAY), 9).await.unwrap();
    let found = store.deliveries_of(&scope(), &id, 9).await.unwrap();
    let ids = |of: &[Outgoing]| of.iter().map(|it| it.delivery.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&found), ids(&expected));
    assert!(!found[0].is_pending() && found[1].is_pending());
    assert_eq!(found[1].delivery.payload, expected[1].delivery.payload, "the payload is that of its event");
    assert_eq!(ids(&store.deliveries_of(&scope(), &id, 1).await.unwrap()), ids(&expected[..1]));
    let other = Scope { environment: Environment::Test, ..scope() };
    assert_eq!(store.deliveries_of(&other, &id, 9).await.unwrap().len(), 0);
}

pub(super) async fn a_reader_of_the_deliveries_to_an_endpoint_misses_none(store: Arc<Store>) {
    commit(&store, vec![added(endpoint(1), 9), added(endpoint(2), 9)]).await.unwrap();
    let mut expected = Vec::new();
    for nth in 0..100 {
        let made = ping(nth, at(i64::from(nth) * 10 * SECOND), &endpoint(1 + nth % 2));
        if nth % 2 == 0 {
            expected.push(made.delivery.id.clone());
        }
        commit(&store, vec![delivery(&made)]).await.unwrap();
    }
    let to = endpoint(1).endpoint.id;
    for (since, of_them) in [(at(0), 50), (at(600 * SECOND), 20), (at(DAY), 0)] {
        let (mut found, mut from) = (Vec::new(), DeliveriesFrom { since, after: None });
        loop {
            let part = store.deliveries_from(&scope(), &to, &from, 7).await.unwrap();
            let Some(last) = part.last() else { break };
            assert!(part.len() <= 7);
            from.after = Some(last.delivery.id.clone());
            found.extend(part.into_iter().map(|it| it.delivery.id));
        }
        assert!(found.ends_with(&expected[50 - of_them..]), "since {since}: {found:?}");
        assert!(expected.ends_with(&found), "since {since}: none twice, and only of this endpoint");
    }
    let other = Scope { environment: Environment::Test, ..scope() };
    let from = DeliveriesFrom { since: at(0), after: None };
    assert!(store.deliveries_from(&other, &to, &from, 9).await.unwrap().is_empty());
}
