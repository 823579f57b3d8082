//! Each stored sum equals the derived one.

use tokio_postgres::Row;

use super::{super::read::field, Check};
use crate::store::{Result, StoreError};

/// Each sum with its number of rows, and the number of payments or deliveries that it counts.
pub(super) const TOTALS: &str = "WITH counted AS (\
    SELECT developer, environment, 'payments' AS name, count(*) AS value FROM payment GROUP BY 1, 2 \
    UNION ALL SELECT developer, environment, 'payments/' || status, count(*) FROM payment GROUP BY 1, 2, 3 \
    UNION ALL SELECT developer, environment, 'deliveries', count(*) FROM delivery GROUP BY 1, 2 \
    UNION ALL SELECT developer, environment, 'deliveries/' || endpoint, count(*) FROM delivery GROUP BY 1, 2, 3), \
    stored AS (SELECT developer, environment, name, sum(value) AS value, count(*) AS slots FROM total GROUP BY 1, 2, 3) \
    SELECT developer, environment, name, stored.value::text, coalesce(slots, 0), coalesce(counted.value, 0) \
    FROM stored FULL JOIN counted USING (developer, environment, name) ORDER BY 1, 2, 3";

impl Check<'_> {
    pub(super) fn total(&mut self, row: &Row) -> Result<()> {
        let name: (String, String, String) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let (stored, slots, counted): (Option<&str>, i64, i64) = (field(row, 3)?, field(row, 4)?, field(row, 5)?);
        self.read(usize::try_from(slots).unwrap_or_default());
        let key = format!("total/{}/{}/{}", name.0, name.1, name.2);
        let expected = i128::from(counted) + self.money.remove(&name).unwrap_or_default();
        let stored = stored.map(|sum| sum.parse().map_err(|error| StoreError::corrupt(key.as_bytes(), error)));
        let stored = self.readable(&key, stored.transpose())?;
        if let Some(stored) = stored {
            self.sum(&key, stored, expected);
        }
        Ok(())
    }

    /// Sums of money that no row of the table holds.
    pub(super) fn missing_totals(&mut self) {
        for ((developer, environment, name), expected) in std::mem::take(&mut self.money) {
            self.sum(&format!("total/{developer}/{environment}/{name}"), None, expected);
        }
    }
}
