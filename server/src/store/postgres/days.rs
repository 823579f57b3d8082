//! The totals of days.

use std::ops::RangeInclusive;

use payments_core::{Currency, Day};
use tokio_postgres::Row;

use super::{PostgresStore, batch::ScopeName, names, read::field};
use crate::{
    domain::{DayTotals, Scope},
    store::{Result, StoreError},
};

/// A scope, a currency and a day, in the order of the table's key.
pub(super) type DayName = (ScopeName, &'static str, Day);

const DAYS: &str = "SELECT day, sum(created)::bigint, sum(paid)::bigint, sum(volume)::text FROM day_total \
    WHERE developer = $1 AND environment = $2 AND currency = $3 AND day BETWEEN $4 AND $5 GROUP BY day ORDER BY day";

impl PostgresStore {
    pub(super) async fn day_totals(
        &self,
        scope: &Scope,
        currency: Currency,
        days: &RangeInclusive<Day>,
    ) -> Result<Vec<(Day, DayTotals)>> {
        let (developer, environment) = names::scope(scope);
        let (first, last) = (days.start().to_string(), days.end().to_string());
        let rows = self.readers.query(DAYS, &[&developer, &environment, &currency.code(), &first, &last]).await?;
        rows.iter().map(day).collect()
    }
}

/// The day of a row, and its totals.
fn day(row: &Row) -> Result<(Day, DayTotals)> {
    let text: &str = field(row, 0)?;
    let day = text.parse().map_err(|error| StoreError::corrupt(text.as_bytes(), error))?;
    Ok((day, totals(row, 1)?))
}

/// The totals in three columns of a row.
pub(super) fn totals(row: &Row, first: usize) -> Result<DayTotals> {
    let (created, paid, volume): (i64, i64, &str) =
        (field(row, first)?, field(row, first + 1)?, field(row, first + 2)?);
    let volume_minor = volume.parse().map_err(|error| StoreError::corrupt(b"day_total", error))?;
    Ok(DayTotals { created: created.cast_unsigned(), paid: paid.cast_unsigned(), volume_minor })
}
