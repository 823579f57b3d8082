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

/// Each sum of a counted block, in the same form.
pub(super) const BLOCK_SUMS: &str = "WITH counted AS (\
    SELECT p.developer, p.environment, b.number, p.status, count(*) AS value FROM payment p \
    CROSS JOIN LATERAL (SELECT number, is_counted FROM payment_block b WHERE b.developer = p.developer \
    AND b.environment = p.environment AND b.up_to >= p.id ORDER BY b.up_to LIMIT 1) b WHERE b.is_counted GROUP BY 1, 2, 3, 4), \
    stored AS (SELECT developer, environment, number, status, sum(s.payments) AS value, count(*) AS slots \
    FROM payment_block_sum s JOIN payment_block b USING (developer, environment, number) WHERE b.is_counted \
    GROUP BY 1, 2, 3, 4) \
    SELECT developer, environment, number || '/' || status, stored.value::text, coalesce(slots, 0), coalesce(counted.value, 0) \
    FROM stored FULL JOIN counted USING (developer, environment, number, status) ORDER BY 1, 2, number, status";

impl Check<'_> {
    pub(super) fn total(&mut self, row: &Row) -> Result<()> {
        let name = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let money = self.money.remove(&name).unwrap_or_default();
        self.stored_sum("total", row, money)
    }

    pub(super) fn block_sum(&mut self, row: &Row) -> Result<()> {
        self.stored_sum("payment_block", row, 0)
    }

    fn stored_sum(&mut self, what: &str, row: &Row, money: i128) -> Result<()> {
        let name: [&str; 3] = [field(row, 0)?, field(row, 1)?, field(row, 2)?];
        let (stored, slots, counted): (Option<&str>, i64, i64) = (field(row, 3)?, field(row, 4)?, field(row, 5)?);
        self.read(usize::try_from(slots).unwrap_or_default());
        let key = format!("{what}/{}", name.join("/"));
        let expected = i128::from(counted) + money;
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
