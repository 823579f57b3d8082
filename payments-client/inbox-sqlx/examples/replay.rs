//! Measures how many replayed events a second the inbox applies to a database. The argument is its URL:
//! `sqlite:/tmp/replay.db?mode=rwc`, or that of a PostgreSQL database.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use payments_client::{
    Client, Event,
    inbox::{Handler, Inbox, Start, Store},
    testing::Script,
};
use payments_inbox_sqlx::{PgTx, PostgresStore, SqliteStore, SqliteTx};
use sqlx::{
    PgPool, SqlitePool, query,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

const EVENTS: usize = 5_000;
const EFFECTS: &str = "CREATE TABLE IF NOT EXISTS effects (event TEXT NOT NULL)";
const EFFECT: &str = "INSERT INTO effects (event) VALUES ($1)";
const ACCOUNT: &str = r#"{"workspace":{"id":"ws_1","name":"Shop","slug":"shop","status":"active"},
    "balance":{"bdt":0,"usd":0,"bdt_balance":0,"usd_balance":0},"volume":{"bdt":0,"usd":0,"total_payments":0}}"#;

struct Effect;

impl Handler<SqliteTx> for Effect {
    type Error = sqlx::Error;

    async fn handle(&self, tx: &mut SqliteTx, event: &Event) -> Result<(), sqlx::Error> {
        query(EFFECT).bind(event.id().as_str()).execute(&mut **tx).await.map(drop)
    }
}

impl Handler<PgTx> for Effect {
    type Error = sqlx::Error;

    async fn handle(&self, tx: &mut PgTx, event: &Event) -> Result<(), sqlx::Error> {
        query(EFFECT).bind(event.id().as_str()).execute(&mut **tx).await.map(drop)
    }
}

/// The list of events, in pages of 100.
fn source() -> Script {
    let mut script = Script::new().answer(200, ACCOUNT);
    for page in 0..EVENTS / 100 {
        let event = |nth: usize| {
            format!(r#"{{"id":"evt_{nth}","event":"test.ping","created_at":"2026-03-01T00:00:00Z","data":{{}}}}"#)
        };
        let items: Vec<_> = (page * 100..page * 100 + 100).map(event).collect();
        let has_more = page + 1 < EVENTS / 100;
        script = script.answer(200, format!(r#"{{"items":[{}],"hasMore":{has_more},"next":null}}"#, items.join(",")));
    }
    script
}

async fn measure<S: Store + Clone>(store: &S)
where
    Effect: Handler<S::Tx>,
{
    for batch in [1, 100] {
        let client = Client::builder("sk_test_demo").script(source()).build().unwrap();
        let name = format!("{:?}", Instant::now());
        let inbox = Inbox::new(client, store.clone()).name(name).start(Start::Beginning).batch(batch);
        let begun = Instant::now();
        inbox.run_once_with(&Effect).await.unwrap();
        println!("batches of {batch}: {:.0} events a second", EVENTS as f64 / begun.elapsed().as_secs_f64());
    }
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    if url.starts_with("sqlite:") {
        let options: SqliteConnectOptions = url.parse().unwrap();
        let pool = SqlitePool::connect_with(options.journal_mode(SqliteJournalMode::Wal)).await.unwrap();
        query(EFFECTS).execute(&pool).await.unwrap();
        measure(&SqliteStore::new(pool)).await;
    } else {
        let pool = PgPool::connect(&url).await.unwrap();
        query(EFFECTS).execute(&pool).await.unwrap();
        measure(&PostgresStore::new(pool)).await;
    }
}
