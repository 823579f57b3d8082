//! SQLite.

use std::sync::Arc;

use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::TempDir;

struct Shop {
    directory: Arc<TempDir>,
    pool: SqlitePool,
}

impl Shop {
    async fn new() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let shop = Self { pool: Self::open(&directory).await, directory };
        let effects = "CREATE TABLE effects (number INTEGER PRIMARY KEY, event TEXT NOT NULL, payment TEXT NOT NULL)";
        query(effects).execute(&shop.pool).await.unwrap();
        shop
    }

    /// As another process would open it.
    async fn again(&self) -> Self {
        Self { pool: Self::open(&self.directory).await, directory: Arc::clone(&self.directory) }
    }

    async fn open(directory: &TempDir) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(directory.path().join("shop.db")).create_if_missing(true);
        SqlitePool::connect_with(options.journal_mode(SqliteJournalMode::Wal)).await.unwrap()
    }
}

suite!(SqliteStore, SqliteTx, Shop);

/// SQLite ends a transaction itself, for example if the disk is full.
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_goes_on_after_sqlite_ended_its_transactions() {
    let (server, shop) = (server().await, Shop::new().await);
    create(server.client(), 1).await;
    let inbox = inbox(server.client(), &shop);
    inbox.lag().await.unwrap();
    let full =
        "CREATE TRIGGER full BEFORE UPDATE OF cursor ON payments_inbox BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
    query(full).execute(&shop.pool).await.unwrap();
    // More often than a pool has connections.
    for _ in 0..12 {
        let error = inbox.run_once(note).await.unwrap_err();
        assert!(error.to_string().contains("full"), "{error}");
    }
    query("DROP TRIGGER full").execute(&shop.pool).await.unwrap();
    assert_eq!(inbox.run_once(note).await.unwrap(), 1);
}
