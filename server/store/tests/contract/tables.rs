//! Which tables a server, a command and a migration accept, each test in its own database.

use payments_store::{
    Migration, Write,
    ambient::OperatingSystem,
    postgres::{PostgresSnapshot, PostgresStore, SourceLock, Target},
};
use test_support::cluster::run_sql;
use tokio::task::spawn_blocking;

use crate::{Engine as _, Postgres, own_database, samples::*};

/// A database without tables.
struct Database {
    url: String,
    target: Target,
}

impl Database {
    async fn new() -> Self {
        let url = own_database().await;
        let target = Target::new(&url.clone().into(), None).unwrap().with_schema("shop");
        Self { url, target }
    }

    async fn run(&self, sql: &'static str) -> String {
        let url = self.url.clone();
        spawn_blocking(move || run_sql(&url, sql)).await.unwrap()
    }

    /// Why a server does not start; `None` if it does.
    async fn server_error(&self) -> Option<String> {
        let opened = PostgresStore::open(self.target.clone(), &OperatingSystem).await;
        match opened {
            Err(error) => Some(error.to_string()),
            Ok((store, closing)) => {
                drop(store);
                closing.wait().await;
                None
            }
        }
    }

    /// Why a command does not read the database; `None` if it does.
    async fn command_error(&self) -> Option<String> {
        PostgresSnapshot::open(&self.target).await.err().map(|error| error.to_string())
    }
}

#[tokio::test]
async fn a_server_makes_the_tables_and_a_command_only_reads_those_of_its_own_version() {
    let database = Database::new().await;
    assert!(!database.target.has_tables().await.unwrap());
    let missing = "the database has no store; name the right one with --database-url";
    assert_eq!(database.command_error().await.as_deref(), Some(missing));
    assert_eq!(database.server_error().await, None);
    assert!(database.target.has_tables().await.unwrap());
    assert_eq!((database.command_error().await, database.server_error().await), (None, None));
    database.run("UPDATE shop.schema_version SET version = version + 1").await;
    let other = "the database has schema 3, and this program reads schema 2; use the version that made it";
    assert_eq!(database.command_error().await.as_deref(), Some(other));
    assert_eq!(database.server_error().await.as_deref(), Some(other));
}

#[tokio::test]
async fn only_a_migration_opens_a_store_whose_migration_is_not_finished() {
    let database = Database::new().await;
    let engine = Postgres::open(database.target.clone()).await;
    let begun = Migration { version: 0, id: "1".into(), from: "/data".into(), after: None, records: 512, moved: None };
    commit(&engine.store(), vec![Write::Migration(Box::new(begun.clone()))]).await.unwrap();
    engine.end().await;
    for error in [database.server_error().await, database.command_error().await] {
        let error = error.unwrap();
        assert!(error.starts_with("this store holds only a part of /data, 512 records"), "{error}");
    }
    let snapshot = PostgresSnapshot::open_to_migrate(&database.target).await.unwrap();
    let found = spawn_blocking(move || payments_store::Snapshot::migration(&snapshot)).await.unwrap();
    assert_eq!(found.unwrap(), Some(begun));
}

#[tokio::test]
async fn a_migration_takes_a_database_that_nobody_serves_and_notices_when_it_loses_it() {
    let database = Database::new().await;
    let target = &database.target;
    let engine = Postgres::open(target.clone()).await;
    commit(&engine.store(), vec![Write::Workspace(workspace(0))]).await.unwrap();
    for error in [
        SourceLock::take(target).await.err(),
        target.refuse_if_served().await.err(),
        target.refuse_if_used().await.err(),
    ] {
        let error = error.unwrap().to_string();
        assert!(error.contains(" connections of payments-server to this database are open"), "{error}");
    }
    engine.end().await;
    target.refuse_if_served().await.unwrap();
    target.refuse_if_used().await.unwrap();
    let lock = SourceLock::take(target).await.unwrap();
    assert!(lock.is_held().await);
    database
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
    assert!(!lock.is_held().await);
}
