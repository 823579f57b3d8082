//! The store on sled by itself.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use payments_core::{Environment, RawJson, Timestamp};

use super::{Closing, SledStore, journal, keys};
use crate::{
    ambient::{Ambient, OperatingSystem},
    domain::{ClaimToken, IdempotencyKey, KeyClaim, Scope},
    metrics::Metrics,
    store::{Change, ClaimEnd, Keep, Store, Write},
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
async fn a_start_voids_the_claims_on_idempotency_keys_and_keeps_the_responses() {
    let directory = tempfile::tempdir().unwrap();
    let claim = async |store: &SledStore, text: &str, nth| {
        let token = ClaimToken::new([nth; 16]);
        let claim = KeyClaim { token, fingerprint: String::new(), claimed_at: at(0), until: at(1) };
        store.commit(Change::of(Write::KeyClaimed(Box::new((key(text), claim))))).await
    };
    let (store, closing) = opened(directory.path());
    claim(&store, "claimed", 1).await.unwrap();
    store.commit(Change { idempotency: Some(keeping("used", at(0))), ..Change::default() }).await.unwrap();
    drop(store);
    closing.wait();
    let (store, _) = opened(directory.path());
    claim(&store, "claimed", 2).await.unwrap();
    assert!(claim(&store, "used", 3).await.is_err());
}
