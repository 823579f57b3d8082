//! Connections to the database break, or it refuses a batch. Each change has its effect once or not at all, and its caller
//! knows which.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use futures_util::FutureExt;
use payments_store::{
    CommitError, Store, StoreError, Write,
    ambient::OperatingSystem,
    postgres::{PostgresStore, Target},
};
use test_support::{
    cluster::{client_of, run_sql},
    relay::{Fault, Relay},
};
use tokio::{task::spawn_blocking, time::sleep};

use crate::{Engine, Postgres, apart, changes::app, database_apart, samples::*, somebody_waits};

/// A database of one test, which can refuse everything in it and end every connection to it.
struct Database {
    url: String,
}

impl Database {
    async fn new() -> Self {
        Self { url: database_apart().await }
    }

    fn name(&self) -> &str {
        self.url.split(['/', '?']).nth(3).unwrap()
    }

    /// A store on it, or through a relay to it.
    async fn store(&self, relay: Option<&Relay>) -> Postgres {
        let url = relay.map_or(self.url.clone(), |relay| relay.url(self.name()));
        Postgres::open(Target::new(&url.into(), None).unwrap().with_schema("shop")).await
    }

    async fn relay(&self) -> Relay {
        let (_, directory) = self.url.split_once("host=").unwrap();
        Relay::start(Path::new(directory).join(".s.PGSQL.5432"), 1).await
    }

    async fn run(&self, sql: &str) -> String {
        let (url, sql) = (self.url.clone(), format!("SET search_path = shop; {sql}"));
        spawn_blocking(move || run_sql(&url, &sql)).await.unwrap()
    }

    /// The processes of the store's connections, once there are as many as four readers and a writer.
    async fn connected(&self) -> BTreeSet<String> {
        loop {
            let found = self
                .run(
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                AND application_name = 'payments-server'",
                )
                .await;
            let found: BTreeSet<String> = found.lines().map(str::to_owned).collect();
            if found.len() == 5 {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end_connections(&self) {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_ne!(self.run(sql).await, "0");
    }

    /// Refuses new connections, or accepts them again.
    async fn accept(&self, accepts: bool) {
        let sql = format!("ALTER DATABASE {} ALLOW_CONNECTIONS {accepts}", self.name());
        spawn_blocking(move || run_sql(&apart().url("postgres"), &sql)).await.unwrap();
    }

    /// Refuses each workspace with this code from now on.
    async fn refuse_workspaces(&self, code: &str) {
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM nextval('refused'); RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$; \
             CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON record FOR EACH ROW \
             WHEN (position('/workspace/' in encode(NEW.key, 'escape')) > 0) EXECUTE FUNCTION refuse(); \
             DROP SEQUENCE IF EXISTS refused; CREATE SEQUENCE refused"
        ))
        .await;
    }

    /// How often a workspace was refused since [`refuse_workspaces`](Self::refuse_workspaces).
    async fn refusals(&self) -> String {
        self.run("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM refused").await
    }
}

/// The number of payments that a store counts.
async fn payments(store: &Arc<Store>) -> u64 {
    store.gauges().await.unwrap().payments.iter().map(|(_, _, payments)| payments).sum()
}

async fn create(store: &Arc<Store>, nth: u8) -> String {
    outcome(commit(store, vec![payment(new_payment(nth, at(0)))]).await)
}

/// The store's error for a change that it could not make.
fn error(committed: Result<payments_store::Committed, CommitError>) -> StoreError {
    match committed {
        Err(CommitError::Store(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_commit_on_postgresql_that_breaks_off_or_is_repeated_has_one_effect() {
    let database = Database::new().await;
    let relay = database.relay().await;
    has_one_effect(database.store(Some(&relay)).await, &relay).await;
}

async fn has_one_effect(engine: impl Engine, relay: &Relay) {
    let store = engine.store();
    let faults =
        [Fault::DropAnswer, Fault::Reset, Fault::DropRequest, Fault::SerializationFailure, Fault::Deadlock].repeat(2);
    for (nth, fault) in (0..).zip(faults) {
        relay.hit_next_commit(fault);
        // A change that is made twice is stale the second time.
        assert_eq!(create(&store, nth).await, COMMITTED, "{fault:?}");
        assert_eq!(payments(&store).await, u64::from(nth) + 1, "{fault:?}");
    }
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn a_change_that_postgresql_refuses_is_tried_as_often_as_its_code_allows() {
    let database = Database::new().await;
    let engine = database.store(None).await;
    let store = engine.store();
    let refused = [
        // One try without the lock, and ten with it.
        ("40001", "11", "refused (40001)"),
        ("40P01", "10", "refused (40P01)"),
        ("23505", "10", "refused (23505)"),
        ("55P03", "10", "refused (55P03)"),
        ("57014", "10", "refused (57014)"),
        // As many tries as there is time for.
        ("25006", "", "the database cannot be reached: refused (25006)"),
        ("57P01", "", "the database cannot be reached: refused (57P01)"),
        ("57P02", "", "the database cannot be reached: refused (57P02)"),
        ("23514", "1", "refused (23514)"),
    ];
    for (code, tries, what) in refused {
        database.refuse_workspaces(code).await;
        let said = error(commit(&store, vec![Write::Workspace(workspace(0))]).await).to_string();
        assert!(said.contains(what), "{code}: {said}");
        let refusals = database.refusals().await;
        match tries {
            "" => assert!((5..30).contains(&refusals.parse::<u32>().unwrap()), "{code}: {refusals}"),
            tries => assert_eq!(refusals, tries, "{code}"),
        }
    }
    database.run("DROP TRIGGER refuse ON record").await;
    assert_eq!(outcome(commit(&store, vec![Write::Workspace(workspace(0))]).await), COMMITTED);
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn changes_that_wait_together_are_committed_except_the_one_that_postgresql_refuses() {
    let database = Database::new().await;
    let engine = database.store(None).await;
    let store = engine.store();
    database.refuse_workspaces("23514").await;
    let client = client_of(&database.url).await;
    assert_eq!(create(&store, 1).await, COMMITTED);
    // One batch waits for the cell, and the next changes wait for this batch.
    client.batch_execute("BEGIN; SELECT FROM shop.cell FOR UPDATE").await.unwrap();
    let held = tokio::spawn({
        let store = Arc::clone(&store);
        async move { create(&store, 2).await }
    });
    somebody_waits(&client).await;
    let mut before = Box::pin(create(&store, 3));
    let mut refused = Box::pin(commit(&store, vec![Write::Workspace(workspace(0))]));
    let mut after = Box::pin(create(&store, 4));
    assert!((&mut before).now_or_never().is_none());
    assert!((&mut refused).now_or_never().is_none());
    assert!((&mut after).now_or_never().is_none());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!((before.await, after.await), (COMMITTED.into(), COMMITTED.into()));
    assert!(error(refused.await).to_string().contains("refused (23514)"));
    assert_eq!(held.await.unwrap(), COMMITTED);
    // It was refused once in a batch and once alone.
    assert_eq!(database.refusals().await, "2");
    assert_eq!(payments(&store).await, 4);
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn servers_that_make_the_tables_at_the_same_time_all_start_and_other_tables_are_not_touched() {
    let database = Database::new().await;
    let client = client_of(&database.url).await;
    // Another server has made the schema in a transaction that has not ended.
    client.batch_execute("BEGIN; CREATE SCHEMA shop").await.unwrap();
    let mut starting = Box::pin(database.store(None));
    tokio::select! {
        _ = &mut starting => panic!("it did not wait"),
        () = somebody_waits(&client) => {}
    }
    client.batch_execute("COMMIT").await.unwrap();
    starting.await.end().await;

    client.batch_execute("DROP SCHEMA shop CASCADE; CREATE SCHEMA shop; CREATE TABLE shop.record ()").await.unwrap();
    let target = Target::new(&database.url.clone().into(), None).unwrap().with_schema("shop");
    let opened = PostgresStore::open(target, &OperatingSystem).await;
    let refused = opened.err().unwrap().to_string();
    assert!(refused.contains("\"record\" already exists (42P07)"), "{refused}");
}

#[tokio::test]
async fn a_warning_of_postgresql_ends_every_connection_and_no_commit_is_lost_or_made_twice() {
    let database = Database::new().await;
    let engine = database.store(None).await;
    let store = engine.store();
    let raise = |level: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE {level} 'hear'; \
             RETURN NEW; END $$; CREATE OR REPLACE TRIGGER say BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION say()"
        )
    };
    assert_eq!((create(&store, 1).await, create(&store, 2).await), (COMMITTED.into(), COMMITTED.into()));
    let first = database.connected().await;
    database.run(&raise("INFO")).await;
    assert_eq!(outcome(commit(&store, vec![Write::Workspace(workspace(0))]).await), COMMITTED);
    assert_eq!(database.connected().await, first, "what is no warning ends nothing");

    database.run(&raise("WARNING")).await;
    assert_eq!(outcome(commit(&store, vec![Write::App(Box::new(app(0)))]).await), COMMITTED);
    database.run("DROP TRIGGER say ON record").await;
    assert_eq!((create(&store, 3).await, create(&store, 4).await), (COMMITTED.into(), COMMITTED.into()));
    assert!(database.connected().await.is_disjoint(&first));
    assert_eq!((payments(&store).await, store.apps(&scope().developer_id).await.unwrap().len()), (4, 1));
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn a_batch_on_a_missing_postgresql_table_is_refused_and_its_connection_goes_on() {
    let database = Database::new().await;
    let engine = database.store(None).await;
    let store = engine.store();
    assert_eq!((create(&store, 1).await, create(&store, 2).await), (COMMITTED.into(), COMMITTED.into()));
    let first = database.connected().await;
    database.run("ALTER TABLE record RENAME TO gone").await;
    for _ in 0..3 {
        let said = error(commit(&store, vec![Write::Workspace(workspace(0))]).await).to_string();
        assert!(said.contains("\"record\" does not exist (42P01)"), "{said}");
    }
    database.run("ALTER TABLE gone RENAME TO record").await;
    assert_eq!(outcome(commit(&store, vec![Write::Workspace(workspace(0))]).await), COMMITTED);
    assert_eq!(database.connected().await, first, "no connection was made again");
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn reads_and_commits_go_on_when_postgresql_ends_all_connections() {
    let database = Database::new().await;
    let engine = database.store(None).await;
    let store = engine.store();
    for nth in 0..8 {
        assert_eq!(create(&store, nth).await, COMMITTED);
        database.end_connections().await;
        assert_eq!(payments(&store).await, u64::from(nth) + 1);
    }
    drop(store);
    engine.end().await;
}

#[tokio::test]
async fn without_postgresql_reads_and_commits_fail_after_a_while_and_work_once_it_is_back() {
    let database = Database::new().await;
    let relay = database.relay().await;
    let engine = database.store(Some(&relay)).await;
    let store = engine.store();
    assert_eq!((create(&store, 1).await, create(&store, 2).await), (COMMITTED.into(), COMMITTED.into()));
    database.accept(false).await;
    relay.hit_next_commit(Fault::DropAnswer);
    let others = async {
        // The commit is made, and its answer is lost.
        while payments(&store).await < 3 {
            sleep(Duration::from_millis(5)).await;
        }
        let ended =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", database.name());
        spawn_blocking(move || run_sql(&apart().url("postgres"), &ended)).await.unwrap();
        tokio::join!(store.gauges(), commit(&store, vec![payment(new_payment(4, at(0)))]))
    };
    let (unknown, (read, committed)) = tokio::join!(commit(&store, vec![payment(new_payment(3, at(0)))]), others);
    let unknown = error(unknown);
    assert!(matches!(unknown, StoreError::Unknown), "{unknown}");
    let (read, committed) = (read.unwrap_err().to_string(), error(committed).to_string());
    assert!(read.contains("the database cannot be reached"), "{read}");
    assert!(committed.contains("the database cannot be reached: "), "{committed}");
    assert!(committed.contains("not currently accepting connections"), "{committed}");

    database.accept(true).await;
    assert_eq!(create(&store, 5).await, COMMITTED);
    // The commit of unknown outcome was made, the other was not.
    assert_eq!(payments(&store).await, 4);
    drop(store);
    engine.end().await;
}
