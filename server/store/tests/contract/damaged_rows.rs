//! The check of a database finds each row that is missing.

use payments_store::{
    Checked, Snapshot,
    postgres::{PostgresSnapshot, Target},
};
use tokio::task::spawn_blocking;

use crate::{Engine, Postgres, moving, samples::*, schema};

/// Checks the database, and counts its rows.
async fn check(target: &Target) -> (Checked, u64) {
    let snapshot = PostgresSnapshot::open(target).await.unwrap();
    let checking = spawn_blocking(move || (snapshot.check(&mut |_| ()).unwrap(), snapshot.records().unwrap()));
    checking.await.unwrap()
}

#[tokio::test]
async fn a_sound_database_has_no_findings_and_each_missing_row_is_found() {
    let (target, client) = schema("damaged").await;
    let engine = Postgres::open(target.clone()).await;
    moving::fill(engine.store()).await;
    engine.end().await;
    let (sound, records) = check(&target).await;
    assert_eq!((sound.findings, sound.payments, sound.records), (vec![], 5, records));
    // Nothing refers to these.
    let alone = "(app|gateway-token|gateway-pause|platform-key|notices|log|lease|coverage|person-session)/";
    for table in ["record", "entry"] {
        let all = format!("SELECT key, encode(key, 'escape') FROM {table} WHERE encode(key, 'escape') !~ '{alone}'");
        let rows = client.query(&all, &[]).await.unwrap();
        assert!(rows.len() > 10, "{table}");
        for row in rows {
            let (key, text): (&[u8], &str) = (row.get(0), row.get(1));
            let take =
                format!("WITH gone AS (DELETE FROM {table} WHERE key = $1 RETURNING *) SELECT cell, body FROM gone");
            let gone = client.query_one(&take, &[&key]).await.unwrap();
            assert!(!check(&target).await.0.findings.is_empty(), "{text} is missing");
            let back = format!("INSERT INTO {table} (cell, key, body) VALUES ($1, $2, $3)");
            let cell: i32 = gone.get(0);
            match table {
                "record" => client.execute(&back, &[&cell, &key, &gone.get::<_, String>(1)]).await.unwrap(),
                _ => client.execute(&back, &[&cell, &key, &gone.get::<_, Vec<u8>>(1)]).await.unwrap(),
            };
        }
    }
    assert_eq!(check(&target).await.0.findings, []);
}

#[tokio::test]
async fn a_snapshot_reads_any_number_of_rows_in_order_and_sees_no_later_change() {
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
        let posted: Vec<_> = snapshot.each_session_with_bookings().map(Result::unwrap).collect();
        assert!(posted.iter().all(|(_, bookings)| bookings.len() == 1));
        assert_eq!(snapshot.each_delivery().count(), 0);
        (sessions, posted.into_iter().map(|(session, _)| session.payment.id).collect::<Vec<_>>())
    });
    assert_eq!(read.await.unwrap(), (ids.clone(), ids));
    engine.end().await;
}
