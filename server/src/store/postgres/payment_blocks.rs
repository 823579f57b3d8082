//! Counts the payments of a scope in blocks, so that a page far down a list is found without counting all before it.
//!
//! A block is begun first, and counted later. Once it is begun, every transaction that changes a payment in it adds the change to
//! the block's sums; a trigger sees to that. A transaction that ran at that moment may not have seen the block. When all of those
//! have ended, one statement counts the payments of the block and takes off what the sums have by then. From then on the sums are
//! what a count would be, in every snapshot. Any server may do each step, and several may at the same time.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{PostgresStore, read::field};
use crate::store::Result;

/// How many payments a block has when it is begun.
pub(super) const BLOCK: i64 = 500;
/// How often blocks are begun and counted.
const EVERY: Duration = Duration::from_secs(30);
/// How many blocks of a scope are begun before any is counted, at most.
const AT_ONCE: usize = 100;
/// How many blocks a statement counts.
const COUNTED_AT_ONCE: i64 = 100;
/// The pause between two looks at the transactions that ran.
const PAUSE: Duration = Duration::from_millis(200);
/// How many looks there are. A long transaction, as of a dump, puts the count off until it has ended.
const LOOKS: usize = 100;

/// Begins the next block of each scope that has two blocks more than are begun: the newest payments still change. If two servers
/// begin a block of one number, the first one counts.
const BEGIN: &str = "WITH held AS (SELECT developer, environment, sum(value) AS payments FROM total \
    WHERE name = 'payments' GROUP BY 1, 2 HAVING sum(value) >= 2 * $1::bigint), \
    due AS (SELECT h.developer, h.environment, coalesce(b.number, 0) AS number, coalesce(b.up_to, '') AS up_to FROM held h \
    LEFT JOIN LATERAL (SELECT number, up_to FROM payment_block b WHERE b.developer = h.developer \
    AND b.environment = h.environment ORDER BY number DESC LIMIT 1) b ON true \
    WHERE h.payments >= (coalesce(b.number, 0) + 2) * $1) \
    INSERT INTO payment_block (developer, environment, number, up_to) \
    SELECT d.developer, d.environment, d.number + 1, p.id FROM due d CROSS JOIN LATERAL (SELECT id FROM payment p \
    WHERE p.developer = d.developer AND p.environment = d.environment AND p.id > d.up_to ORDER BY p.id OFFSET $1 - 1 LIMIT 1) p \
    ON CONFLICT DO NOTHING RETURNING number";
/// Blocks that are not counted; of each scope the first ones.
const UNCOUNTED: &str = "SELECT developer, environment, number FROM payment_block WHERE NOT is_counted \
    ORDER BY 1, 2, 3 LIMIT $1";
/// The transactions that run. Each locks its name until it has ended, for readers and writers to see.
const RUNNING: &str = "SELECT DISTINCT l.virtualxid FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
    WHERE l.locktype = 'virtualxid' AND a.datname = current_database() AND a.usesysid IS NOT NULL \
    AND l.pid <> pg_backend_pid()";
const STILL_RUNNING: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'virtualxid' AND virtualxid = ANY($1)";
const COUNT: &str = "WITH due AS (SELECT b.developer, b.environment, b.number, b.up_to FROM payment_block b \
    JOIN unnest($1::text[], $2::text[], $3::bigint[]) k (developer, environment, number) \
    USING (developer, environment, number) WHERE NOT b.is_counted ORDER BY 1, 2, 3 FOR UPDATE OF b), \
    counted AS (SELECT d.developer, d.environment, d.number, p.status, count(*) AS payments FROM due d \
    LEFT JOIN payment_block before ON before.developer = d.developer AND before.environment = d.environment \
    AND before.number = d.number - 1 \
    JOIN payment p ON p.developer = d.developer AND p.environment = d.environment \
    AND p.id > coalesce(before.up_to, '') AND p.id <= d.up_to GROUP BY 1, 2, 3, 4), \
    changed AS (SELECT s.developer, s.environment, s.number, s.status, sum(s.payments) AS payments FROM payment_block_sum s \
    JOIN due d USING (developer, environment, number) GROUP BY 1, 2, 3, 4), \
    first AS (INSERT INTO payment_block_sum (developer, environment, number, status, slot, payments) \
    SELECT developer, environment, number, status, -1, coalesce(counted.payments, 0) - coalesce(changed.payments, 0) \
    FROM counted FULL JOIN changed USING (developer, environment, number, status)) \
    UPDATE payment_block b SET is_counted = true FROM due d WHERE b.developer = d.developer \
    AND b.environment = d.environment AND b.number = d.number";

impl PostgresStore {
    /// Keeps the blocks of all lists counted. Runs forever.
    pub(crate) async fn count_payment_blocks(self: Arc<Self>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.count_blocks_of(BLOCK).await {
                tracing::warn!(%error, "payments could not be counted in blocks; pages far down a list may be slow");
            }
        }
    }

    /// Begins and counts blocks of so many payments until none is due.
    pub(crate) async fn count_blocks_of(&self, payments: i64) -> Result<()> {
        loop {
            for _ in 0..AT_ONCE {
                if self.readers.query(BEGIN, &[&payments]).await?.is_empty() {
                    break;
                }
            }
            if !self.count_begun_blocks().await? {
                return Ok(());
            }
        }
    }

    /// Counts blocks that are begun. False if there are none, or a transaction goes on that may not have seen them.
    async fn count_begun_blocks(&self) -> Result<bool> {
        let blocks = self.readers.query(UNCOUNTED, &[&COUNTED_AT_ONCE]).await?;
        if blocks.is_empty() {
            return Ok(false);
        }
        let (mut developers, mut environments, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for block in &blocks {
            developers.push(field::<&str>(block, 0)?);
            environments.push(field::<&str>(block, 1)?);
            numbers.push(field::<i64>(block, 2)?);
        }
        let running = self.readers.query(RUNNING, &[]).await?;
        let running = running.iter().map(|row| field(row, 0)).collect::<Result<Vec<&str>>>()?;
        for _ in 0..LOOKS {
            let row = self.readers.one(STILL_RUNNING, &[&running]).await?;
            let still = row.map_or(Ok(0), |row| field::<i64>(&row, 0))?;
            if still == 0 {
                self.readers.query(COUNT, &[&developers, &environments, &numbers]).await?;
                return Ok(true);
            }
            sleep(PAUSE).await;
        }
        Ok(false)
    }
}
