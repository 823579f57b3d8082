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
