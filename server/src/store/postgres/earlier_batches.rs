//! Batches that began before an endpoint was added.
//!
//! An event is pending if its scope has an endpoint when its change commits. A batch that is under way may have counted the
//! endpoints before one was added. So adding an endpoint is answered when these batches have ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{PostgresStore, read::field};
use crate::store::{Result, StoreError};

/// The number of the next transaction, and of the oldest one under way.
const TRANSACTIONS: &str = "SELECT pg_snapshot_xmax(s)::text::bigint, pg_snapshot_xmin(s)::text::bigint \
                            FROM pg_current_snapshot() s";
/// How long to wait at most.
const PATIENCE: Duration = Duration::from_secs(2);

impl PostgresStore {
    /// Waits until the transactions that are under way now have ended. The endpoint is added, whatever comes of the wait.
    pub(super) async fn wait_for_earlier_batches(&self) {
        let begun = Instant::now();
        let mut next = None;
        while begun.elapsed() < PATIENCE {
            match self.transactions().await {
                Ok((now_next, oldest)) if oldest >= *next.get_or_insert(now_next) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "payments of this moment may not reach the new endpoint");
                    return;
                }
            }
            sleep(Duration::from_millis(2)).await;
        }
        tracing::warn!("a transaction stays open; payments of this moment may not reach the new endpoint");
    }

    async fn transactions(&self) -> Result<(i64, i64)> {
        let row = self.readers.one(TRANSACTIONS, &[]).await?;
        let row = row.ok_or_else(|| StoreError::unavailable("the database returned no row"))?;
        Ok((field(&row, 0)?, field(&row, 1)?))
    }
}
