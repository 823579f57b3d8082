//! The schema of the tables: made at the first start, changed forward only.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::{Error, error::SqlState};

use super::{
    session::Session,
    sqlstate::{describe, is_lasting},
};

/// The statements that make each version of the schema from the one before.
const STEPS: [&str; 8] = [
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
];
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
    /// A newer server changed it.
    #[error("the database has schema {found}, and this server knows schema {known}; use a newer server")]
    Newer {
        /// The database's version.
        found: i32,
        /// The server's version.
        known: i32,
    },
    /// No server has used the database.
    #[error("the database has no store; name the right one with --database-url")]
    Missing,
    /// An older server made it.
    #[error(
        "the database has schema {found}, and this program reads schema {known}; start this version's server first"
    )]
    Older {
        /// The database's version.
        found: i32,
        /// The program's version.
        known: i32,
    },
    /// The database refused.
    #[error("the schema cannot be made or read: {}", describe(.0))]
    Refused(#[from] Error),
}

impl SchemaError {
    /// Whether time does not mend it.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Newer { .. } | Self::Missing | Self::Older { .. } => true,
            Self::Refused(error) => is_lasting(error),
        }
    }
}

/// Brings the schema to this server's version. Servers may do so at the same time: one waits for another.
pub(super) async fn prepare(session: &Session, schema: &str) -> Result<(), SchemaError> {
    let mut tries = 1;
    loop {
        let error = match upgrade(session, schema).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(newer)) => return Err(newer),
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

async fn upgrade(session: &Session, schema: &str) -> Result<Result<(), SchemaError>, Error> {
    let client = session.client();
    let known = known();
    client.batch_execute("BEGIN").await?;
    let found = match version(session, schema, "SELECT version FROM schema_version FOR UPDATE").await? {
        Some(found) => found,
        None => {
            client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
            0
        }
    };
    if found > known {
        client.batch_execute("ROLLBACK").await?;
        return Ok(Err(SchemaError::Newer { found, known }));
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        client.batch_execute(step).await?;
    }
    if found < known {
        let version =
            "INSERT INTO schema_version (version) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET version = $1";
        client.execute(version, &[&known]).await?;
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
    let known = known();
    match version(session, schema, "SELECT version FROM schema_version").await? {
        None => Err(SchemaError::Missing),
        Some(found) if found > known => Err(SchemaError::Newer { found, known }),
        Some(found) if found < known => Err(SchemaError::Older { found, known }),
        Some(_) => Ok(()),
    }
}

fn known() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
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
