//! The tables, made at the first start.

use std::{ops::RangeInclusive, time::Duration};

use payments_core::Slot;
use tokio::time::sleep;
use tokio_postgres::{Error, error::SqlState};

use super::connection::slots_of;
use crate::store::{
    StoreError,
    postgres::{session::Session, sqlstate::store_error},
};

const TABLES: &str = include_str!("schema.sql");
/// How often servers that start together may get in each other's way.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A cell and its slots.
pub(super) type Held = (u16, RangeInclusive<u16>);

/// Makes the tables if they are not there, with a number of cells that share the slots evenly. Returns the cells that there
/// are.
pub(super) async fn prepare(session: &Session, schema: &str, cells: u16) -> Result<Vec<Held>, StoreError> {
    let mut tries = 1;
    while let Err(error) = make(session, schema, cells).await {
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
            return Err(store_error(&error));
        }
        tries += 1;
        sleep(PAUSE).await;
    }
    held(session).await
}

async fn make(session: &Session, schema: &str, cells: u16) -> Result<(), Error> {
    let client = session.client();
    let is_there = "SELECT to_regclass(format('%I.cell', $1::text)) IS NOT NULL";
    if client.query_one(is_there, &[&schema]).await?.try_get(0)? {
        return Ok(());
    }
    client.batch_execute(&format!("BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    client.batch_execute(TABLES).await?;
    let (cells, slots) = (i32::from(cells), i32::try_from(Slot::all().count()).unwrap_or_default());
    for cell in 0..cells {
        let (first, next) = (cell * slots / cells, (cell + 1) * slots / cells);
        client.execute("INSERT INTO cell VALUES ($1, $2, $3)", &[&cell, &first, &(next - 1)]).await?;
    }
    client.batch_execute("COMMIT").await
}

async fn held(session: &Session) -> Result<Vec<Held>, StoreError> {
    let sql = "SELECT cell, first_slot, last_slot FROM cell ORDER BY first_slot";
    let rows = session.query(sql, &[]).await.map_err(|error| store_error(&error))?;
    let mut held = Vec::new();
    let mut next = 0;
    for row in &rows {
        let cell: i32 = row.try_get(0).map_err(|error| store_error(&error))?;
        let slots = slots_of(row, 1).map_err(|error| store_error(&error))?;
        let wrong =
            || StoreError::corrupt(b"cell", format_args!("the row of cell {cell} does not follow the one before it"));
        let slots = slots.filter(|slots| *slots.start() == next && !slots.is_empty()).ok_or_else(wrong)?;
        next = slots.end() + 1;
        held.push((u16::try_from(cell).map_err(|_| wrong())?, slots));
    }
    let has_all = usize::from(next) == Slot::all().count();
    if has_all { Ok(held) } else { Err(StoreError::corrupt(b"cell", "the cells do not have all slots")) }
}
