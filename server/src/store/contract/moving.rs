//! A store's records move to an empty one, whatever the engines.

use std::{collections::BTreeSet, sync::Arc};

use payments_core::RANDOM_BYTES;
use tokio::task::spawn_blocking;

use super::{Embedded, Engine, Postgres, changes, samples::*};
use crate::{
    domain::fan_out,
    store::{
        Change, ClaimEnd, Prunable, Queue, Record, RecordDigest, RecordKey, RecordKind, Records, Snapshot, Store,
        Write, postgres::PostgresSnapshot,
    },
};

/// A store that can be read as of one moment.
trait Read: Engine {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T;
}

impl Read for Embedded {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T {
        let store = Arc::clone(&self.store);
        spawn_blocking(move || read(&*store)).await.unwrap()
    }
}

impl Read for Postgres {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T {
        let snapshot = PostgresSnapshot::open(&self.target).await.unwrap();
        spawn_blocking(move || read(&snapshot)).await.unwrap()
    }
}

/// Writes records of every kind.
pub(super) async fn fill(store: Arc<dyn Store>) {
    changes::written(Arc::clone(&store)).await;
    commit(&store, vec![claiming("two", 1, at(0), at(DAY)), Write::LogPart(Box::new(log_part(0)))]).await.unwrap();
    let new = new_payment(3, at(3));
    let event = new.event.as_ref().unwrap().id.clone();
    // The response is the data of the payment's event.
    let mut keep = keeping("three", 1, at(3), ClaimEnd::NotClaimed).idempotency;
    keep.iter_mut().for_each(|keep| keep.body = new.json.clone());
    store.commit(Change { idempotency: keep, ..Change::of(payment(new)) }).await.unwrap();
    let (pending, endpoints) = store.pending_event(&event, 9).await.unwrap().unwrap();
    let made = fan_out(&pending, &endpoints, || [3; RANDOM_BYTES]).remove(0);
    let after = Some(endpoints[0].endpoint.id.clone());
    let fanned_out = Write::FannedOut { scope: scope(), event, after };
    let waiting = ping(4, at(4), &endpoint(1));
    commit(&store, vec![fanned_out, delivery(&made), delivery(&waiting)]).await.unwrap();
    commit(&store, vec![wait(&waiting, at(DAY)), end(&ping(1, at(0), &endpoint(1)))]).await.unwrap();
    assert_eq!(store.prune(Prunable::DeliveryBodies, at(2), 9).await.unwrap(), 1);
}

/// The keys of all records after one, how many there are of each kind, and their digest.
fn contents(store: &dyn Snapshot, after: Option<RecordKey>) -> (Vec<RecordKey>, Vec<u64>, String) {
    let (mut keys, mut digest) = (Vec::new(), RecordDigest::default());
    for record in Records::of(store, after) {
        let record = record.unwrap();
        let json = record.json().unwrap();
        assert!(json.starts_with(['{', '[', '"']), "{json}");
        digest.add(&record.key(), &json);
        keys.push(record.key());
    }
    let counts = RecordKind::ALL.iter().map(|kind| store.count(*kind).unwrap());
    (keys, counts.collect(), digest.finish())
}

async fn move_all<S: Read, T: Read>() {
    let (source, target) = (S::new().await, T::new().await);
    fill(source.store()).await;
    let before = source.read(|store| contents(store, None)).await;
    let (keys, counts, digest) = &before;
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!((keys.len() as u64, digest.len()), (counts.iter().sum(), 64));
    assert!(keys.is_sorted() && keys.windows(2).all(|two| two[0] != two[1]));
    // Whoever reads on after any record reads the rest.
    let all = keys.clone();
    let first = keys.first().cloned();
    assert_ne!(source.read(|store| contents(store, first)).await.2, *digest, "it is that of fewer records");
    source
        .read(move |store| {
            for (nth, key) in all.iter().enumerate() {
                assert_eq!(contents(store, Some(key.clone())).0, all[nth + 1..], "after {key:?}");
            }
        })
        .await;
    let records: Vec<Record> = source.read(|store| Records::of(store, None).map(Result::unwrap).collect()).await;
    for some in records.chunks(5) {
        let writes = some.iter().map(|record| Write::Moved(Box::new(record.clone())));
        commit(&target.store(), writes.collect()).await.unwrap();
    }
    assert_eq!(target.read(|store| contents(store, None)).await, before);
    assert_eq!(target.findings().await, []);
    assert_eq!(changes::read(target.store()).await, changes::read(source.store()).await);
    let due = target.store().claim(Queue::Retries, &lease(1, DAY + 2 * SECOND), 9).await.unwrap();
    assert_eq!(due.len(), 1, "what waits is handed out there");
    // A record that is there is not written over.
    for record in records {
        if !matches!(record.key().0, RecordKind::PendingEvent | RecordKind::Event | RecordKind::RedactedUpTo) {
            let kind = record.key().0;
            let again = outcome(commit(&target.store(), vec![Write::Moved(Box::new(record))]).await);
            assert_ne!(again, COMMITTED, "{kind}");
        }
    }
    source.end().await;
    target.end().await;
}

#[test]
fn each_kind_of_record_has_its_own_name() {
    let names: BTreeSet<_> = RecordKind::ALL.iter().map(RecordKind::to_string).collect();
    assert!(names.len() == RecordKind::ALL.len() && !names.contains(""), "{names:?}");
}

#[tokio::test]
async fn records_move_between_two_directories() {
    move_all::<Embedded, Embedded>().await;
}

#[tokio::test]
async fn records_move_from_a_directory_to_a_database() {
    move_all::<Embedded, Postgres>().await;
}

#[tokio::test]
async fn records_move_from_a_database_to_a_directory() {
    move_all::<Postgres, Embedded>().await;
}
