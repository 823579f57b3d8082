//! Reads outside commits, over shared connections. Each statement names one cell.
//!
//! Statements of one read may see different moments. The batch that writes a version of a hot entry deletes the version
//! before it, so a statement sees one version of each entry.

use std::ops::Range;

use tokio_postgres::{Error, Row, types::ToSql};
use uuid::Uuid;

use super::{
    connection::{by_table, bytes, found, text, version},
    statements::{ENTRIES, HOT, NEWEST, RECORDS},
    types::Column,
    view::{Found, Stored},
};
use crate::{
    StoreError,
    bytes::{Batch, CELL, KeyValue, Table},
};

/// A statement that reads a range upwards, and one that reads it downwards.
macro_rules! range {
    ($($select:literal)+) => {
        [concat!($($select,)+ " ORDER BY key LIMIT $4"), concat!($($select,)+ " ORDER BY key DESC LIMIT $4")]
    };
}

const RECORD_RANGE: [&str; 2] = range!("SELECT key, body FROM record WHERE cell = $1 AND key >= $2 AND key < $3");
const ENTRY_RANGE: [&str; 2] = range!(
    "SELECT key, body FROM entry WHERE cell = $1 AND key >= $2 AND key < $3 AND substring(key FROM 4 FOR 1) <> '*'::bytea"
);
/// The versions of a key in the range may lie beyond its end, since they are longer than the key.
const HOT_RANGE: [&str; 2] = range!(
    "SELECT substring(key FROM 1 FOR greatest(length(key) - 8, 0)), body FROM entry WHERE cell = $1 AND key >= $2 \
     AND key < $3::bytea || '\\xffffffffffffffff'::bytea AND substring(key FROM 4 FOR 1) = '*'::bytea \
     AND substring(key FROM 1 FOR greatest(length(key) - 8, 0)) >= $2 \
     AND substring(key FROM 1 FOR greatest(length(key) - 8, 0)) < $3"
);

pub(super) trait Rows: Sync {
    fn rows<'r>(
        &'r self,
        sql: &'static str,
        parameters: &'r [&'r (dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send;
}

pub(super) async fn newest(rows: &impl Rows, cell: i32) -> Result<Batch, StoreError> {
    let found = rows.rows(NEWEST, &[&cell]).await?;
    let Some(row) = found.first() else { return Ok(Batch { number: 0, tag: 0 }) };
    Ok(Batch { number: row.try_get(0)?, tag: row.try_get::<_, Uuid>(1)?.as_u128() })
}

/// The values under keys, in the order of `keys`.
pub(super) async fn get(rows: &impl Rows, cell: i32, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let [records, entries, hot] = by_table(&keys);
    let (records, entries, hot) = tokio::try_join!(
        by_keys(rows, cell, RECORDS, records, text),
        by_keys(rows, cell, ENTRIES, entries, bytes),
        by_keys(rows, cell, HOT, hot, version),
    )?;
    let [mut records, mut entries, mut hot] = [records, entries, hot].map(Vec::into_iter);
    let next = |key: &Vec<u8>| match Table::of(key)? {
        Table::Record => records.next()?.1,
        Table::Entry => entries.next()?.1,
        Table::Hot => hot.next()?.1,
    };
    Ok(keys.iter().map(next).map(|stored| Some(stored?.body)).collect())
}

async fn by_keys(
    rows: &impl Rows,
    cell: i32,
    sql: &'static str,
    keys: Vec<&[u8]>,
    stored: fn(&Row) -> Result<Stored, Error>,
) -> Result<Found, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let found = rows.rows(sql, &[&cell, &Column(keys.clone())]).await?;
    Ok(self::found(&keys, &found, stored)?)
}

/// At most `at_most` values in the order of their keys, or reversed.
pub(super) async fn range(
    rows: &impl Rows,
    cell: i32,
    keys: &Range<Vec<u8>>,
    is_reversed: bool,
    at_most: usize,
) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
    let direction = usize::from(is_reversed);
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let one = async |sql: [&'static str; 2], body: fn(&Row) -> Result<Vec<u8>, Error>| {
        let found = rows.rows(sql[direction], &[&cell, &&keys.start[..], &&keys.end[..], &limit]).await?;
        let pair = |row: &Row| Ok((row.try_get::<_, &[u8]>(0)?.to_vec(), body(row)?));
        found.iter().map(pair).collect::<Result<Vec<KeyValue>, Error>>().map_err(StoreError::from)
    };
    let text = |row: &Row| row.try_get::<_, &str>(1).map(|text| text.as_bytes().to_vec());
    let bytes = |row: &Row| row.try_get::<_, &[u8]>(1).map(<[u8]>::to_vec);
    let found = match table_of(keys) {
        Some(Table::Record) => one(RECORD_RANGE, text).await?,
        Some(Table::Entry) => one(ENTRY_RANGE, bytes).await?,
        Some(Table::Hot) => one(HOT_RANGE, bytes).await?,
        None => {
            let (records, entries, hot) =
                tokio::try_join!(one(RECORD_RANGE, text), one(ENTRY_RANGE, bytes), one(HOT_RANGE, bytes))?;
            let mut all = [records, entries, hot].concat();
            all.sort_unstable();
            if is_reversed {
                all.reverse();
            }
            all.truncate(at_most);
            all
        }
    };
    Ok(found.into_iter().map(Ok).collect())
}

/// The table of all keys in a range; `None` if it has several.
fn table_of(keys: &Range<Vec<u8>>) -> Option<Table> {
    let before_kind = CELL.len() + 1;
    let is_one = keys.start.get(..before_kind)? == keys.end.get(..before_kind)?;
    is_one.then(|| Table::of(&keys.start)).flatten()
}
