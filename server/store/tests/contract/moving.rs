//! Moves a store's values to an empty store, between any two places.

use std::sync::Arc;

use payments_core::{DisputeStatus, RANDOM_BYTES};
use payments_store::{
    Change, ClaimEnd, Contents, Migration, Prunable, Queue, Snapshot, Store, Write,
    bytes::KeyValue,
    domain::{GatewayAttempt, GatewayName, fan_out, new_attempt},
    layout::record_kind,
    postgres::PostgresSnapshot,
};
use tokio::task::spawn_blocking;

use crate::{Embedded, Engine, Postgres, books, changes, payouts, samples::*, settlements};

/// A store that can be read as of one moment, and takes in values.
pub(super) trait Moved: Engine {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T;
    async fn take_in(&self, values: Vec<KeyValue>);
}

impl Moved for Embedded {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T {
        let store = Arc::clone(&self.store);
        spawn_blocking(move || read(&*store)).await.unwrap()
    }

    async fn take_in(&self, values: Vec<KeyValue>) {
        self.store.take_in(values).await.unwrap();
    }
}

impl Moved for Postgres {
    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&dyn Snapshot) -> T + Send + 'static) -> T {
        let snapshot = PostgresSnapshot::open(&self.target).await.unwrap();
        spawn_blocking(move || read(&snapshot)).await.unwrap()
    }

    async fn take_in(&self, values: Vec<KeyValue>) {
        self.store.take_in(values).await.unwrap();
    }
}

/// Writes records of every kind.
pub(super) async fn fill(store: Arc<Store>) {
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
    let created = new_payment(5, at(3));
    let mut paid = paid(&created.session, at(3));
    paid.session.attempt = Some(GatewayAttempt { gateway: GatewayName::of("bkash"), ..new_attempt("a") });
    let disputed = reported(&paid.session, DisputeStatus::NeedsResponse, 4_000);
    commit(&store, [created, paid, disputed].map(payment).into()).await.unwrap();
    let at_gateway = settlements::paid_at_gateway(6);
    let session = at_gateway[3].session.clone();
    let (matched, foreign) = (settlements::row("a", 9_900).of(&session), settlements::row("b", 500));
    let matched_payment = settlements::settled(&session, &matched);
    let rows = [matched, foreign].map(|row| Write::SettledRow(Box::new(row)));
    commit(&store, at_gateway.into_iter().chain([matched_payment]).map(payment).chain(rows).collect()).await.unwrap();
    let unsettled = settlements::paid_at_gateway(7).into_iter().map(payment).collect();
    commit(&store, unsettled).await.unwrap();
    payouts::fill(&store).await;
    books::fill(&store).await;
    let waiting = ping(4, at(4), &endpoint(1));
    commit(&store, vec![fanned_out, delivery(&made), delivery(&waiting)]).await.unwrap();
    commit(&store, vec![wait(&waiting, at(DAY)), end(&ping(1, at(0), &endpoint(1)))]).await.unwrap();
    assert_eq!(store.prune(Prunable::DeliveryBodies, at(2), 9).await.unwrap(), 1);
}

/// All values after a key, read `at_a_time` at a time.
pub(super) fn values(store: &dyn Snapshot, mut after: Option<Vec<u8>>, at_a_time: usize) -> Vec<KeyValue> {
    let mut all = Vec::new();
    loop {
        let page = store.values_after(after.as_deref(), at_a_time).unwrap();
        let Some((last, _)) = page.last() else { return all };
        assert!(page.len() <= at_a_time);
        after = Some(last.clone());
        all.extend(page);
    }
}

async fn move_all<S: Moved, T: Moved>() {
    let (source, target) = (S::new().await, T::new().await);
    fill(source.store()).await;
    let begun = Migration {
        version: 0,
        id: "1".into(),
        from: "/data".into(),
        after: None,
        records: 1,
        moved: Some(Contents::default()),
    };
    commit(&source.store(), vec![Write::Migration(Box::new(begun))]).await.unwrap();
    let all = source.read(|store| values(store, None, 5)).await;
    assert!(all.is_sorted() && all.windows(2).all(|two| two[0].0 != two[1].0));
    let kinds = [
        "workspace",
        "api-key",
        "app",
        "gateway-token",
        "gateway-pause",
        "platform-key",
        "audit",
        "notices",
        "person-session",
        "endpoint",
        "payment",
        "event",
        "booking",
        "delivery",
        "response",
        "claim",
        "log",
        "settled-row",
        "payout",
        "destination",
        "books",
        "coverage",
    ];
    for kind in kinds {
        assert!(all.iter().any(|(key, _)| record_kind(key) == Some(kind)), "{kind}");
    }
    // The progress of a migration into the source stays there, even if it alone would fill a page.
    assert!(all.iter().all(|(key, _)| record_kind(key) != Some("migration")));
    assert_eq!(source.read(|store| values(store, None, 1)).await, all);
    // A reader that goes on after any value reads those after it.
    let expected = all.clone();
    source
        .read(move |store| {
            for (nth, (key, _)) in expected.iter().enumerate() {
                let (page, after) = (store.values_after(Some(key), 3).unwrap(), &expected[nth + 1..]);
                assert!(after.starts_with(&page) && page.is_empty() == after.is_empty(), "{}", key.escape_ascii());
            }
        })
        .await;
    // A migration that was killed moves its last values again.
    for some in all.chunks(5).chain(all.chunks(7)) {
        target.take_in(some.to_vec()).await;
    }
    assert_eq!(target.read(|store| values(store, None, 100)).await, all);
    assert_eq!(target.findings().await, []);
    assert_eq!(changes::read(target.store()).await, changes::read(source.store()).await);
    let gauges = target.store().gauges().await.unwrap();
    assert_eq!(gauges, source.store().gauges().await.unwrap());
    let due = target.store().claim(Queue::Retries, &lease(1, DAY + 2 * SECOND), 9).await.unwrap();
    assert_eq!(due.len(), 1, "what waits is handed out there");
    source.end().await;
    target.end().await;
}

#[tokio::test]
async fn values_move_between_two_directories() {
    move_all::<Embedded, Embedded>().await;
}

#[tokio::test]
async fn values_move_from_a_directory_to_a_database() {
    move_all::<Embedded, Postgres>().await;
}

#[tokio::test]
async fn values_move_from_a_database_to_a_directory() {
    move_all::<Postgres, Embedded>().await;
}
