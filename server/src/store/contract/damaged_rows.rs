//! The check of a database finds and names damaged rows.

use std::sync::Arc;

use payments_core::RANDOM_BYTES;
use tokio::task::spawn_blocking;
use tokio_postgres::Client;

use super::{Engine, Postgres, changes, client_of, cluster_url, samples::*};
use crate::{
    domain::fan_out,
    store::{
        Change, Checked, ClaimEnd, NewResponse, Prunable, Queue, Snapshot, Store, TransactionsFrom,
        postgres::{PostgresSnapshot, Target},
    },
};

const TABLES: [&str; 16] = [
    "record",
    "endpoint_count",
    "payment",
    "payment_lookup",
    "event",
    "posting",
    "total",
    "day_total",
    "idempotency",
    "pending_event",
    "delivery",
    "redaction",
    "lease",
    "payment_block",
    "payment_block_sum",
    "balance_checkpoint",
];

/// A damage, the beginning of a record that a finding names, and a part of what it says.
const DAMAGES: [(&str, &str, &str); 83] = [
    ("UPDATE payment_block_sum SET payments = payments + 1", "payment_block/dev_1/live/1/", "records come to 1"),
    ("DELETE FROM payment_block_sum", "payment_block/dev_1/live/1/", "is missing"),
    ("UPDATE payment_block SET up_to = 'pay'", "payment_block/dev_1/live/1/", "is stored as 1"),
    (
        "UPDATE total SET value = value + 1 WHERE name = 'payments'",
        "total/dev_1/live/payments",
        "the records come to 2",
    ),
    ("UPDATE total SET value = value - 1 WHERE name LIKE 'payments/%'", "total/dev_1/live/payments/", "come to 1"),
    ("UPDATE total SET value = 7 WHERE name = 'deliveries'", "total/dev_1/live/deliveries", "the records come to 2"),
    ("UPDATE total SET value = 7 WHERE name LIKE 'deliveries/%'", "total/dev_1/live/deliveries/wh_", "come to 2"),
    ("UPDATE total SET value = -value WHERE name LIKE 'balance/%'", "total/dev_1/live/balance/BDT/", "is stored as"),
    ("UPDATE total SET value = 1 WHERE name LIKE 'volume/%'", "total/dev_1/live/volume/BDT", "records come to 10000"),
    ("UPDATE total SET value = 2 WHERE name LIKE 'paid/%'", "total/dev_1/live/paid/BDT", "is stored as 2"),
    ("UPDATE total SET value = 0.5 WHERE name = 'payments'", "total/dev_1/live/payments", "cannot be read"),
    ("DELETE FROM total WHERE name LIKE 'balance/%'", "total/dev_1/live/balance/BDT/", "is missing"),
    ("DELETE FROM total WHERE name = 'payments'", "total/dev_1/live/payments", "is missing"),
    ("INSERT INTO total VALUES ('dev_1', 'live', 'surprise', 0, 1)", "total/dev_1/live/surprise", "come to 0"),
    ("UPDATE day_total SET created = created + 1", "day_total/dev_1/live/BDT/2023-11-14", "is stored as"),
    ("UPDATE day_total SET volume = 1", "day_total/dev_1/live/BDT/2023-11-14", "volume_minor: 10000"),
    ("UPDATE day_total SET volume = 0.5", "day_total/dev_1/live/BDT/2023-11-14", "cannot be read"),
    ("UPDATE day_total SET day = '2023-11-15'", "day_total/dev_1/live/BDT/2023-11-14", "is missing"),
    ("DELETE FROM posting", "day_total/dev_1/live/BDT/2023-11-14", "paid: 0"),
    ("DELETE FROM posting", "payment/", "its postings are not those of that"),
    ("DELETE FROM posting", "total/dev_1/live/balance/", "records come to 0"),
    ("UPDATE posting SET body = replace(body, '9750', '9751')", "posting/", "sum to 1, not to zero"),
    ("UPDATE posting SET body = '{'", "posting/", "cannot be read"),
    ("UPDATE posting SET payment = 'pay_none'", "posting/pay_none/1", "belongs to a payment that is not there"),
    ("UPDATE payment SET body = '{'", "payment/", "cannot be read"),
    ("UPDATE payment SET body = '{'", "pending_event/", "names an event that does not exist"),
    ("DELETE FROM payment", "posting/", "belongs to a payment that is not there"),
    ("DELETE FROM payment", "delivery/", "sends an event that is not there"),
    ("DELETE FROM payment", "idempotency/", "tells of an effect that is not there"),
    ("UPDATE payment SET id = id || 'x'", "payment/", "holds another payment"),
    ("UPDATE payment SET developer = 'dev_2'", "payment/", "\"dev_2\" in its column developer"),
    ("UPDATE payment SET developer = 'dev_2'", "payment/", "belongs to a developer that is not there"),
    ("UPDATE payment SET environment = 'test'", "payment/", "in its column environment"),
    ("UPDATE payment SET status = 'failed'", "payment/", "in its column status"),
    ("UPDATE payment SET status = 'failed'", "total/dev_1/live/payments/failed", "is missing"),
    ("UPDATE payment SET version = 9", "payment/", "has 9 in its column version"),
    ("UPDATE payment SET expires_at = NULL", "payment/", "has None in its column expires_at"),
    ("UPDATE payment SET check_at = 1", "payment/", "in its column check_at"),
    ("UPDATE payment SET needs_settlement = true", "payment/", "in its column needs_settlement"),
    ("UPDATE payment SET needs_review = true", "payment/", "in its column needs_review"),
    ("UPDATE payment SET body = replace(body, '\"version\"', '\"x\"')", "payment/", "cannot be read"),
    ("UPDATE payment SET body = replace(body, '\"status\":\"', '\"status\":\"x')", "payment/", "public status"),
    ("UPDATE payment SET body = replace(body, 'payment.created', 'payment.refunded')", "payment/", "has 0 events"),
    (
        "UPDATE payment SET body = replace(body, '\"data\":{\"id\":\"', '\"data\":{\"id\":\"x')",
        "payment/",
        "about another",
    ),
    ("DELETE FROM event", "payment/", "which is not in the list of events"),
    ("UPDATE event SET kind = 'payment.refunded'", "event/", "its payment does not have it"),
    ("DELETE FROM payment_lookup", "payment/", "is not found by its reference"),
    ("UPDATE payment_lookup SET value = 'B-1'", "payment/", "is found by a reference that it does not have"),
    ("UPDATE delivery SET body = '{'", "delivery/", "cannot be read"),
    ("UPDATE delivery SET id = id || 'x'", "delivery/", "holds another delivery"),
    ("UPDATE delivery SET endpoint = 'wh_2'", "delivery/", "in its column endpoint"),
    ("UPDATE delivery SET payment = NULL", "delivery/", "in its column payment"),
    ("UPDATE delivery SET version = 9", "delivery/", "has 9 in its column version"),
    ("UPDATE delivery SET is_pending = false", "delivery/", "it will never be sent"),
    ("UPDATE delivery SET is_pending = true", "delivery/", "is in the outbox, and has ended"),
    ("UPDATE delivery SET retry_at = 1", "delivery/", "in its column retry_at"),
    ("DELETE FROM delivery", "total/dev_1/live/deliveries", "records come to 0"),
    ("UPDATE pending_event SET payment = 'pay_none'", "pending_event/", "names an event that does not exist"),
    ("UPDATE pending_event SET after = '/'", "pending_event/", "an endpoint whose id cannot be read"),
    ("UPDATE idempotency SET response = '{' WHERE response IS NOT NULL", "idempotency/", "cannot be read"),
    ("UPDATE idempotency SET responded_at = 1", "idempotency/", "has Some(1) in its column responded_at"),
    ("UPDATE idempotency SET payment = NULL", "idempotency/", "tells of an effect that is not there"),
    ("UPDATE idempotency SET response = replace(response, '\"wh_1\"', '\"del_1\"')", "idempotency/", "not there"),
    ("UPDATE idempotency SET claim = '{' WHERE claim IS NOT NULL", "idempotency/", "cannot be read"),
    ("UPDATE idempotency SET claimed_until = 1", "idempotency/", "has Some(1) in its column claimed_until"),
    ("UPDATE idempotency SET claim = NULL, claimed_until = NULL", "idempotency/", "was used and has no response"),
    ("UPDATE idempotency SET environment = 'moon'", "idempotency/dev_1/moon/", "is on no idempotency key"),
    (
        "UPDATE idempotency i SET claim = c.claim FROM idempotency c WHERE c.claim IS NOT NULL",
        "idempotency/",
        "claims a key that has its response",
    ),
    ("UPDATE record SET body = '{'", "record/gateway-token/bkash", "cannot be read"),
    ("UPDATE record SET version = 9", "record/app/", "has 9 in its column version"),
    ("UPDATE record SET parent = 'x'", "record/endpoint/", "has \"x\" in its column parent"),
    ("UPDATE record SET id = id || 'x' WHERE kind = 'endpoint'", "record/endpoint/", "in its column id"),
    ("UPDATE record SET kind = 'x' WHERE kind = 'app'", "record/x/", "is of no kind that this version writes"),
    ("DELETE FROM record WHERE kind = 'workspace'", "record/api-key/", "a workspace that is not its developer's"),
    ("DELETE FROM record WHERE kind = 'workspace'", "record/app/", "belongs to a developer that is not there"),
    ("DELETE FROM record WHERE kind = 'endpoint'", "endpoint_count/dev_1/live", "the records come to 0"),
    ("DELETE FROM endpoint_count", "endpoint_count/dev_1/live", "is missing, and the records come to 1"),
    ("UPDATE redaction SET up_to = '/'", "redaction", "cannot be read"),
    ("UPDATE event SET fee = 0 WHERE amount IS NOT NULL", "payment/", "and its postings say"),
    ("UPDATE event SET amount = NULL", "payment/", "and its postings say"),
    ("UPDATE event SET amount = NULL", "balance_checkpoint/dev_1/live/", "follows no transaction"),
    ("UPDATE balance_checkpoint SET usd = 1", "balance_checkpoint/dev_1/live/", "the transactions come to"),
    ("UPDATE lease SET queue = 'x'", "lease/x/", "is on work that cannot be read"),
];

/// Writes every kind of row.
async fn fill(store: Arc<dyn Store>) {
    changes::written(Arc::clone(&store)).await;
    let open = new_payment_with(2, at(2), r#""merchantTransactionId": "A-17","#);
    let event = open.event.clone().unwrap();
    // The event is the response's body too.
    let response = NewResponse {
        key: key("two"),
        fingerprint: "v2:1".into(),
        created_at: at(2),
        body: event.data,
        claim: ClaimEnd::NotClaimed,
    };
    store.commit(Change { idempotency: Some(response), ..Change::of(payment(open)) }).await.unwrap();
    let (pending, endpoints) = store.pending_event(&event.id, 9).await.unwrap().unwrap();
    let sent = fan_out(&pending, &endpoints, || [2; RANDOM_BYTES]).remove(0);
    commit(&store, vec![delivery(&sent)]).await.unwrap();
    commit(&store, vec![end(&sent), claiming("three", 1, at(2), at(9))]).await.unwrap();
    assert_eq!(store.claim(Queue::Lanes, &lease(1, 0), 9).await.unwrap().len(), 1);
    assert_eq!(store.prune(Prunable::DeliveryBodies, at(DAY), 1).await.unwrap(), 1);
}

/// The schema of a test: its name, the way to it, and a client that writes to it.
async fn schema(name: &str) -> (Target, Client) {
    let url = cluster_url().await;
    let client = client_of(&url).await;
    client.batch_execute(&format!("SET search_path = {name}")).await.unwrap();
    (Target::new(&url.into(), None).unwrap().with_schema(name), client)
}

/// Checks the database, and counts its rows.
async fn check(target: &Target) -> (Checked, u64) {
    let snapshot = PostgresSnapshot::open(target).await.unwrap();
    let checking = spawn_blocking(move || (snapshot.check(&mut |_| ()).unwrap(), snapshot.records().unwrap()));
    checking.await.unwrap()
}

#[tokio::test]
async fn a_sound_database_has_no_findings_and_every_damage_is_named() {
    let (target, client) = schema("damaged").await;
    let engine = Postgres::open(target.clone()).await;
    fill(engine.store()).await;
    engine.store.count_blocks_of(1).await.unwrap();
    let transactions = engine.store().transactions(&scope(), &TransactionsFrom::Newest, 1).await.unwrap().unwrap();
    engine.store.balances_after(&scope(), &transactions[0].event, 1).await.unwrap();
    engine.end().await;
    let each = |sql: fn(&str) -> String| TABLES.map(sql).concat();
    client.batch_execute(&each(|table| format!("CREATE TABLE sound_{table} AS TABLE {table};"))).await.unwrap();
    let repair = each(|table| {
        format!("TRUNCATE {table}; INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM sound_{table};")
    });

    let (sound, records) = check(&target).await;
    assert_eq!((sound.findings, sound.payments, sound.records), (vec![], 2, records));
    for table in TABLES {
        let rows = client.query(&format!("SELECT FROM {table}"), &[]).await.unwrap();
        assert!(!rows.is_empty(), "{table} is empty");
    }
    for (damage, named, what) in DAMAGES {
        client.batch_execute(damage).await.unwrap();
        let findings = check(&target).await.0.findings;
        let is_named = findings.iter().any(|it| it.record.starts_with(named) && it.what.contains(what));
        assert!(is_named, "after {damage}, expected {named} {what}: {findings:#?}");
        client.batch_execute(&repair).await.unwrap();
    }
    assert_eq!(check(&target).await.0.findings, []);
}

#[tokio::test]
async fn a_snapshot_reads_any_number_of_rows_in_order_and_no_later_change() {
    let (target, _client) = schema("snapshot").await;
    let engine = Postgres::open(target.clone()).await;
    let mut ids = Vec::new();
    for nth in 0..=255 {
        let new = new_payment(nth, at(nth.into()));
        let session = new.session.clone();
        let paid = paid(&session, at(SECOND));
        ids.push(session.payment.id);
        commit(&engine.store(), vec![payment(new), payment(paid)]).await.unwrap();
    }
    let snapshot = PostgresSnapshot::open(&target).await.unwrap();
    commit(&engine.store(), vec![payment(new_payment(1, at(SECOND)))]).await.unwrap();
    let read = spawn_blocking(move || {
        let sessions: Vec<_> = snapshot.each_session().map(|session| session.unwrap().payment.id).collect();
        let posted: Vec<_> = snapshot.each_session_with_postings().map(Result::unwrap).collect();
        assert!(posted.iter().all(|(_, changes)| changes.len() == 1 && changes[0].len() == 3));
        assert_eq!(snapshot.each_delivery().count(), 0);
        (sessions, posted.into_iter().map(|(session, _)| session.payment.id).collect::<Vec<_>>())
    });
    assert_eq!(read.await.unwrap(), (ids.clone(), ids));
    engine.end().await;
}
