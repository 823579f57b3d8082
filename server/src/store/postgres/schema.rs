//! The schema of the tables, made at the first start.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::{Error, error::SqlState};

use super::{
    session::Session,
    sqlstate::{describe, is_lasting},
};

/// The statements that make the tables.
const TABLES: &str = include_str!("schema.sql");
/// The version of the tables. Those of another one are not used.
const VERSION: i32 = 1;
/// A database that was made from a dump counts its transactions anew. Then what the list of events has comes before everything
/// that will be added, in the order of its numbers. Balances in another order are added up anew.
const NUMBER_ANEW: &str = "DELETE FROM balance_checkpoint WHERE pg_snapshot_xmax(pg_current_snapshot()) <= \
    (SELECT added_by FROM event ORDER BY id DESC LIMIT 1); \
    UPDATE event SET added_by = '0' WHERE pg_snapshot_xmax(pg_current_snapshot()) <= \
    (SELECT added_by FROM event ORDER BY id DESC LIMIT 1)";
/// How often servers that start together may get in each other's way.
const TRIES: u32 = 20;

/// The schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    /// Another version made it.
    #[error("the database has schema {found}, and this program reads schema {VERSION}; use the version that made it")]
    Other {
        /// The database's version.
        found: i32,
    },
    /// No server has used the database.
    #[error("the database has no store; name the right one with --database-url")]
    Missing,
    /// The database refused.
    #[error("the schema cannot be made or read: {}", describe(.0))]
    Refused(#[from] Error),
}

impl SchemaError {
    /// Whether time does not mend it.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Other { .. } | Self::Missing => true,
            Self::Refused(error) => is_lasting(error),
        }
    }
}

/// Makes the tables if they are not there. Servers may do so at the same time: one waits for another.
pub(super) async fn prepare(session: &Session, schema: &str) -> Result<(), SchemaError> {
    let mut tries = 1;
    loop {
        let error = match make(session, schema).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(other)) => return Err(other),
            Err(error) => error,
        };
        let _ = session.client().batch_execute("ROLLBACK").await;
        // Another server makes the same at this moment.
        let is_race = [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_SCHEMA,
            SqlState::DUPLICATE_OBJECT,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        if tries == TRIES || !error.code().is_some_and(|code| is_race.contains(code)) {
            return Err(error.into());
        }
        tries += 1;
        sleep(Duration::from_millis(50)).await;
    }
}

async fn make(session: &Session, schema: &str) -> Result<Result<(), SchemaError>, Error> {
    let client = session.client();
    client.batch_execute("BEGIN").await?;
    match version(session, schema, "SELECT version FROM schema_version FOR UPDATE").await? {
        Some(VERSION) => {}
        Some(found) => {
            client.batch_execute("ROLLBACK").await?;
            return Ok(Err(SchemaError::Other { found }));
        }
        None => {
            client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
            client.batch_execute(TABLES).await?;
            client.execute("INSERT INTO schema_version (version) VALUES ($1)", &[&VERSION]).await?;
        }
    }
    client.batch_execute(NUMBER_ANEW).await?;
    client.batch_execute("COMMIT").await.map(Ok)
}

/// Whether the tables of any version are there.
pub(super) async fn is_there(session: &Session, schema: &str) -> Result<bool, SchemaError> {
    Ok(version(session, schema, "SELECT version FROM schema_version").await?.is_some())
}

/// Checks that the tables are there as this program knows them, and changes nothing.
pub(super) async fn expect(session: &Session, schema: &str) -> Result<(), SchemaError> {
    match version(session, schema, "SELECT version FROM schema_version").await? {
        None => Err(SchemaError::Missing),
        Some(VERSION) => Ok(()),
        Some(found) => Err(SchemaError::Other { found }),
    }
}

/// The version of the tables; `None` if there are none.
async fn version(session: &Session, schema: &str, sql: &str) -> Result<Option<i32>, Error> {
    let is_there = "SELECT to_regclass(format('%I.schema_version', $1::text)) IS NOT NULL";
    let rows = session.client().query(is_there, &[&schema]).await?;
    let is_there = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    if !is_there {
        return Ok(None);
    }
    let rows = session.client().query(sql, &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0)).map(Some)
}
