//! The totals of each day equal what its payments come to.

use tokio_postgres::Row;

use super::{
    super::{days::totals, read::field},
    Check,
};
use crate::{domain::DayTotals, store::Result};

/// The totals of each day, with its number of rows.
pub(super) const DAYS: &str = "SELECT developer, environment, currency, day, sum(created)::bigint, sum(paid)::bigint, \
    sum(volume)::text, count(*) FROM day_total GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";

impl Check<'_> {
    /// The payments come before: their days are known by then.
    pub(super) fn day(&mut self, row: &Row) -> Result<()> {
        let names: [&str; 4] = [field(row, 0)?, field(row, 1)?, field(row, 2)?, field(row, 3)?];
        self.read(usize::try_from(field::<i64>(row, 7)?).unwrap_or_default());
        let name = names.join("/");
        let expected = self.days.remove(&name).unwrap_or_default();
        let key = format!("day_total/{name}");
        if let Some(stored) = self.readable(&key, totals(row, 4))? {
            let what = format_args!("is stored as {stored:?}, and the records come to {expected:?}");
            self.expect(stored == expected, &key, what);
        }
        Ok(())
    }

    /// Days that no row of the table has.
    pub(super) fn missing_days(&mut self) {
        for (name, expected) in std::mem::take(&mut self.days) {
            let what = format_args!("is missing, and the records come to {expected:?}");
            self.expect(expected == DayTotals::default(), &format!("day_total/{name}"), what);
        }
    }
}
