//! The store on sled by itself.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use payments_core::{
    Delivery, DeliveryId, DeliveryStatus, Environment, EventId, EventKind, RANDOM_BYTES, RawJson, Timestamp,
    aliased::UnknownFields,
};

use super::{Closing, SledStore, journal, keys};
use crate::{
    ambient::{Ambient, OperatingSystem},
    domain::{IdempotencyKey, KeptResponse, Outgoing, Scope},
    metrics::Metrics,
    store::{Change, ClaimEnd, Keep, Maintenance, Prunable, Store, Write},
};

fn at(hours: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + hours * 3_600_000).unwrap()
}

/// A new store, whose outbox nobody sees to.
fn opened(directory: &Path) -> (SledStore, Closing) {
    SledStore::open(directory, Arc::new(OperatingSystem), Metrics::new().commits).unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
    IdempotencyKey::new(&scope, "POST", "/webhooks", text)
}

fn keeping(text: &str, created_at: Timestamp) -> Keep {
    let body = RawJson::of(&serde_json::json!({"id": "wh_1"})).unwrap();
    Keep { key: key(text), fingerprint: String::new(), created_at, body, claim: ClaimEnd::NotClaimed }
}

/// A clock that says what it is told to.
struct Stepping(std::sync::atomic::AtomicI64);

impl Ambient for Stepping {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed)).unwrap()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        OperatingSystem.fill_random(bytes);
    }
}

#[tokio::test]
async fn however_the_clock_steps_the_times_of_entries_never_decrease_after_a_start_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let ambient = Arc::new(Stepping(0.into()));
    for nth in 0..2 {
        let commits = Metrics::new().commits;
        let (store, closing) =
            SledStore::open(directory.path(), Arc::clone(&ambient) as Arc<dyn Ambient>, commits).unwrap();
        for (text, hours) in [("first", 0), ("forward", 9_000), ("back", 1 + nth), ("later", 2 + nth)] {
            ambient.0.store(at(hours).as_millis(), Ordering::Relaxed);
            let keep = keeping(&format!("{text}-{nth}"), at(hours));
            store.commit(Change { idempotency: Some(keep), ..Change::default() }).await.unwrap();
        }
        drop(store);
        closing.wait();
    }
    let mut times = Vec::new();
    journal::read_closed(&directory.path().join("journal"), 0, None, |_, writes| {
        let at = writes.get(keys::COMMITTED_AT).and_then(|at| String::from_utf8(at.clone()?).ok());
        times.extend(at.map(|at| at.parse::<i64>().unwrap()));
        Ok(())
    })
    .unwrap();
    assert_eq!(times.len(), 8);
    assert_eq!(times[0], at(0).as_millis());
    assert!(times[1..].iter().all(|time| *time == at(9_000).as_millis()), "{times:?}");
}

#[tokio::test]
async fn responses_are_forgotten_when_they_no_longer_count_the_oldest_first() {
    let directory = tempfile::tempdir().unwrap();
    let (store, closing) = opened(directory.path());
    for (text, hours) in [("first", 0), ("second", 1), ("third", 2), ("again", 0), ("again", 30)] {
        let change = Change { idempotency: Some(keeping(text, at(hours))), ..Change::default() };
        store.commit(change).await.unwrap();
    }
    let forget = |now, at_most| {
        let kept_before = KeptResponse::stale_before(now);
        store.prune(Prunable::StoredResponses, kept_before, at_most)
    };
    let kept = async || {
        let mut kept = Vec::new();
        for text in ["first", "second", "third", "again"] {
            if store.kept_response(&key(text)).await.unwrap().is_some() {
                kept.push(text);
            }
        }
        kept
    };
    forget(at(24), 10).await.unwrap();
    assert_eq!(kept().await, ["first", "second", "third", "again"], "to the last moment");
    forget(at(26), 1).await.unwrap();
    assert_eq!(kept().await, ["second", "third", "again"]);
    assert_eq!(forget(at(26), 10).await.unwrap(), 1);
    assert_eq!(kept().await, ["third", "again"]);
    forget(at(53), 10).await.unwrap();
    assert_eq!(kept().await, ["again"]);
    let findings = store.check(&mut |_| ()).unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    drop(store);
    closing.wait();
}

/// A ping's delivery of a time.
fn delivered(hours: i64, status: DeliveryStatus) -> Box<Outgoing> {
    let id = EventId::new(at(hours), [7; RANDOM_BYTES]);
    let envelope = serde_json::json!({"id": id, "event": "test.ping", "createdAt": at(hours), "data": {"a": 1}});
    let envelope = RawJson::of(&envelope).unwrap();
    let delivery = Delivery {
        id: DeliveryId::new(at(hours), [7; RANDOM_BYTES]),
        webhook_id: "wh_1".parse().unwrap(),
        developer_id: "dev_1".parse().unwrap(),
        event: EventKind::TestPing,
        payload: envelope,
        response_status: Some(200),
        response_body: Some("thanks".into()),
        error: None,
        duration_ms: Some(7),
        attempts: 1,
        status,
        delivered_at: Some(at(hours)),
        created_at: at(hours),
        unknown: UnknownFields::default(),
    };
    Box::new(Outgoing { version: 0, environment: Environment::Test, payment: None, event: None, delivery })
}

#[tokio::test]
async fn deliveries_that_have_ended_are_redacted_the_oldest_first_and_one_that_is_pending_holds_up_none() {
    let directory = tempfile::tempdir().unwrap();
    let (store, closing) = opened(directory.path());
    let (over, pending) = (DeliveryStatus::Success, DeliveryStatus::Pending);
    for (hours, status) in [(0, &over), (1, &over), (2, &pending), (3, &over), (9, &over)] {
        store.commit(Change::of(Write::Delivery(delivered(hours, status.clone())))).await.unwrap();
    }
    let forget = |hours, at_most| store.prune(Prunable::DeliveryBodies, at(hours), at_most);
    let remember = || {
        let deliveries = store.each_delivery().map(|outgoing| outgoing.unwrap().delivery);
        let full = deliveries.filter(|delivery| delivery.response_body.is_some());
        full.map(|delivery| (delivery.created_at.as_millis() - at(0).as_millis()) / 3_600_000).collect::<Vec<_>>()
    };
    forget(5, 1).await.unwrap();
    assert_eq!(remember(), [1, 2, 3, 9]);
    assert_eq!(forget(5, 10).await.unwrap(), 3, "one is passed over");
    assert_eq!(forget(5, 10).await.unwrap(), 0);
    assert_eq!(remember(), [2, 9], "what is pending is still to be sent");
    let first = store.each_delivery().next().unwrap().unwrap().delivery;
    assert!(first.payload.as_str().ends_with(r#""data":{}}"#), "{}", first.payload.as_str());

    let ended = Box::new(Outgoing { version: 1, ..*delivered(2, over) });
    store.commit(Change::of(Write::DeliveryEnded(ended))).await.unwrap();
    assert_eq!(remember(), [9], "its time was over when it ended");
    let findings = store.check(&mut |_| ()).unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    drop(store);
    closing.wait();
}
