//! Makes the tables at the first start.

use std::{ops::RangeInclusive, time::Duration};

use payments_core::Slot;
use tokio::time::sleep;
use tokio_postgres::{Error, error::SqlState};

use super::{
    NewTables,
    session::Session,
    sqlstate::{describe, is_lasting},
    types::slots_of,
};
use crate::StoreError;

const TABLES: &str = include_str!("schema.sql");
/// The version of the tables. Tables of another version are not used.
const VERSION: i32 = 2;
/// How often a server tries to make the tables while others make them too.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) type Held = (u16, RangeInclusive<u16>);

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("the database has schema {found}, and this program reads schema {VERSION}; use the version that made it")]
    Other { found: i32 },
    #[error("the database has no store; name the right one with --database-url")]
    Missing,
    #[error("the schema cannot be made or read: {}", describe(.0))]
    Refused(#[from] Error),
}

impl SchemaError {
    /// Whether the error lasts until a person acts.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Other { .. } | Self::Missing => true,
            Self::Refused(error) => is_lasting(error),
        }
    }
}

/// Makes missing tables. Servers may do so at the same time: one waits for another.
pub(super) async fn prepare(session: &Session, schema: &str, new: NewTables) -> Result<(), SchemaError> {
    let mut tries = 1;
    loop {
        let error = match make(session, schema, new).await {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let _ = session.client().batch_execute("ROLLBACK").await;
        // Another server makes the same tables at this moment.
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
        sleep(PAUSE).await;
    }
}

async fn make(session: &Session, schema: &str, new: NewTables) -> Result<Result<(), SchemaError>, Error> {
    let client = session.client();
    match version(session, schema).await? {
        Some(VERSION) => return Ok(Ok(())),
        Some(found) => return Ok(Err(SchemaError::Other { found })),
        None => {}
    }
    client.batch_execute(&format!("BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    client.batch_execute(TABLES).await?;
    client.batch_execute(new.views).await?;
    client.execute("INSERT INTO schema_version (version) VALUES ($1)", &[&VERSION]).await?;
    let (cells, slots) = (i32::from(new.cells), i32::from(Slot::COUNT));
    for cell in 0..cells {
        let (first, next) = (cell * slots / cells, (cell + 1) * slots / cells);
        client.execute("INSERT INTO cell VALUES ($1, $2, $3)", &[&cell, &first, &(next - 1)]).await?;
    }
    client.batch_execute("COMMIT").await.map(Ok)
}

pub(super) async fn is_there(session: &Session, schema: &str) -> Result<bool, SchemaError> {
    Ok(version(session, schema).await?.is_some())
}

/// Checks that the tables are there as this program knows them, and changes nothing.
pub(super) async fn expect(session: &Session, schema: &str) -> Result<(), SchemaError> {
    match version(session, schema).await? {
        None => Err(SchemaError::Missing),
        Some(VERSION) => Ok(()),
        Some(found) => Err(SchemaError::Other { found }),
    }
}

/// The version of the tables; `None` if there are none.
async fn version(session: &Session, schema: &str) -> Result<Option<i32>, Error> {
    let is_there = "SELECT to_regclass(format('%I.schema_version', $1::text)) IS NOT NULL";
    let rows = session.client().query(is_there, &[&schema]).await?;
    let is_there = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    if !is_there {
        return Ok(None);
    }
    let rows = session.client().query("SELECT version FROM schema_version", &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0)).map(Some)
}

pub(super) async fn held(session: &Session) -> Result<Vec<Held>, StoreError> {
    let sql = "SELECT cell, first_slot, last_slot FROM cell ORDER BY first_slot";
    let rows = session.query(sql, &[]).await?;
    let mut held = Vec::new();
    let mut next = 0;
    for row in &rows {
        let cell: i32 = row.try_get(0)?;
        let slots = slots_of(row, 1)?;
        let wrong =
            || StoreError::corrupt(b"cell", format_args!("the row of cell {cell} does not follow the one before it"));
        let slots = slots.filter(|slots| *slots.start() == next && !slots.is_empty()).ok_or_else(wrong)?;
        next = slots.end() + 1;
        held.push((u16::try_from(cell).map_err(|_| wrong())?, slots));
    }
    let has_all = next == Slot::COUNT;
    if has_all { Ok(held) } else { Err(StoreError::corrupt(b"cell", "the cells do not have all slots")) }
}
