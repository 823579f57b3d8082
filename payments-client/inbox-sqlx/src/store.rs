//! Both stores, from the same SQL.

use std::ops::{Deref, DerefMut};

use payments_client::inbox::{BoxError, InboxId, Row, Store};
use sqlx::{Database, TransactionManager, pool::PoolConnection, query, query_as, query_scalar};
#[cfg(feature = "postgres")]
use sqlx::{PgConnection, PgPool, Postgres};
#[cfg(feature = "sqlite")]
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

/// The version of the tables.
const VERSION: i64 = 1;

const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS payments_inbox_version (version BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS payments_inbox (name TEXT NOT NULL, workspace TEXT NOT NULL, environment TEXT NOT NULL, \
     cursor TEXT NOT NULL, failures BIGINT NOT NULL, error TEXT, PRIMARY KEY (name, workspace, environment))",
    "INSERT INTO payments_inbox_version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM payments_inbox_version)",
];
const READ_VERSION: &str = "SELECT version FROM payments_inbox_version";

const INSERT: &str = "INSERT INTO payments_inbox (name, workspace, environment, cursor, failures) VALUES ($1, $2, $3, $4, 0) \
                      ON CONFLICT (name, workspace, environment) DO NOTHING";
const READ: &str =
    "SELECT cursor, failures, error FROM payments_inbox WHERE name = $1 AND workspace = $2 AND environment = $3";
/// In a transaction in which a statement failed, PostgreSQL refuses this, while COMMIT would roll back and succeed.
const READ_CURSOR: &str = "SELECT cursor FROM payments_inbox WHERE name = $1 AND workspace = $2 AND environment = $3";
const MOVE: &str = "UPDATE payments_inbox SET cursor = $5, failures = 0, error = NULL \
                    WHERE name = $1 AND workspace = $2 AND environment = $3 AND cursor = $4";
const FAIL: &str = "UPDATE payments_inbox SET failures = failures + 1, error = $5 \
                    WHERE name = $1 AND workspace = $2 AND environment = $3 AND cursor = $4";

/// The handler ended the transaction, or broke it.
const BROKEN: &str = "the transaction has lost the inbox's cursor: the handler ended it, or ignored an SQL error in it; return \
                      each SQL error";

macro_rules! store {
    ($(#[$meta:meta])* $name:ident, $tx:ident, $pool:ty, $database:ident, $connection:ty, $lock:literal, $begin:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name {
            pool: $pool,
        }

        impl $name {
            /// Creates a store in the shop's database. Nothing is read or written yet.
            #[must_use]
            pub const fn new(pool: $pool) -> Self {
                Self { pool }
            }

            async fn begin_tx(&self) -> Result<$tx, BoxError> {
                let mut tx = $tx { connection: self.pool.acquire().await?, is_open: true };
                <$database as Database>::TransactionManager::begin(&mut tx.connection, Some($begin.into())).await?;
                Ok(tx)
            }
        }

        /// A transaction of the shop's database. Run each statement of a handler on `&mut **tx`. Only the inbox ends it.
        #[derive(Debug)]
        pub struct $tx {
            connection: PoolConnection<$database>,
            is_open: bool,
        }

        impl $tx {
            async fn commit(mut self) -> Result<(), BoxError> {
                <$database as Database>::TransactionManager::commit(&mut self.connection).await?;
                self.is_open = false;
                Ok(())
            }

            /// Rolls back. If that fails, a statement has ended the transaction or the connection is lost.
            async fn roll_back(mut self) {
                self.is_open = <$database as Database>::TransactionManager::rollback(&mut self.connection).await.is_err();
            }
        }

        /// Closes the connection, unless its transaction has ended. A handler, or SQLite on a full disk, may have ended it
        /// without sqlx, which would begin no other one on this connection.
        impl Drop for $tx {
            fn drop(&mut self) {
                if self.is_open {
                    self.connection.close_on_drop();
                }
            }
        }

        impl Deref for $tx {
            type Target = $connection;

            fn deref(&self) -> &$connection {
                &self.connection
            }
        }

        impl DerefMut for $tx {
            fn deref_mut(&mut self) -> &mut $connection {
                &mut self.connection
            }
        }

        impl Store for $name {
            type Tx = $tx;

            async fn prepare(&self) -> Result<bool, BoxError> {
                // A program may lack the privilege to create tables.
                let found: Result<Option<i64>, _> = query_scalar(READ_VERSION).fetch_optional(&self.pool).await;
                if let Ok(Some(version)) = found {
                    return Ok(version <= VERSION);
                }
                let mut tx = self.begin_tx().await?;
                query($lock).execute(&mut *tx).await?;
                for sql in TABLES {
                    query(sql).execute(&mut *tx).await?;
                }
                let version: i64 = query_scalar(READ_VERSION).fetch_one(&mut *tx).await?;
                tx.commit().await?;
                Ok(version <= VERSION)
            }

            async fn read(&self, inbox: &InboxId) -> Result<Option<Row>, BoxError> {
                let read = query_as(READ).bind(&inbox.name).bind(inbox.workspace.as_str()).bind(inbox.environment.as_str());
                let row: Option<(String, i64, Option<String>)> = read.fetch_optional(&self.pool).await?;
                Ok(row.map(|(cursor, failures, error)| Row {
                    cursor,
                    failures: failures.try_into().unwrap_or(u32::MAX),
                    error,
                }))
            }

            async fn insert(&self, inbox: &InboxId, cursor: &str) -> Result<(), BoxError> {
                let insert = query(INSERT).bind(&inbox.name).bind(inbox.workspace.as_str());
                insert.bind(inbox.environment.as_str()).bind(cursor).execute(&self.pool).await?;
                Ok(())
            }

            async fn begin(&self, inbox: &InboxId, from: &str, to: &str) -> Result<Option<Self::Tx>, BoxError> {
                let mut tx = self.begin_tx().await?;
                let set = query(MOVE).bind(&inbox.name).bind(inbox.workspace.as_str()).bind(inbox.environment.as_str());
                let moved = set.bind(from).bind(to).execute(&mut *tx).await?.rows_affected();
                if moved == 1 {
                    return Ok(Some(tx));
                }
                tx.roll_back().await;
                Ok(None)
            }

            async fn commit(&self, mut tx: Self::Tx, inbox: &InboxId, to: &str) -> Result<(), BoxError> {
                let read = query_scalar(READ_CURSOR).bind(&inbox.name).bind(inbox.workspace.as_str());
                let cursor = read.bind(inbox.environment.as_str()).fetch_optional(&mut *tx).await;
                match cursor {
                    Ok(cursor) if cursor.as_deref() == Some(to) => tx.commit().await,
                    Err(error) if !is_in_failed_transaction(&error) => Err(error.into()),
                    Ok::<Option<String>, _>(_) | Err(_) => Err(BROKEN.into()),
                }
            }

            async fn roll_back(&self, tx: Self::Tx) -> Result<(), BoxError> {
                tx.roll_back().await;
                Ok(())
            }

            async fn fail(&self, inbox: &InboxId, cursor: &str, error: &str) -> Result<(), BoxError> {
                let fail = query(FAIL).bind(&inbox.name).bind(inbox.workspace.as_str()).bind(inbox.environment.as_str());
                fail.bind(cursor).bind(error).execute(&self.pool).await?;
                Ok(())
            }
        }
    };
}

#[cfg(feature = "sqlite")]
store!(
    /// An inbox's store in SQLite. A transaction waits for others as long as the pool's busy timeout, by default 5 seconds.
    SqliteStore,
    SqliteTx,
    SqlitePool,
    Sqlite,
    SqliteConnection,
    "SELECT 1",
    "BEGIN IMMEDIATE"
);

#[cfg(feature = "postgres")]
store!(
    /// An inbox's store in PostgreSQL.
    PostgresStore,
    PgTx,
    PgPool,
    Postgres,
    PgConnection,
    "SELECT pg_advisory_xact_lock(7377829471802)",
    "BEGIN"
);

/// Whether PostgreSQL refused a statement because an earlier one of its transaction had failed.
fn is_in_failed_transaction(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "25P02")
}
