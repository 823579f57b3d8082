//! Batches that began before an endpoint was added.
//!
//! An event is pending if its scope has an endpoint when its change commits. A batch that is under way may have counted the
//! endpoints before one was added. So adding an endpoint is answered when these batches have ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{PostgresStore, read::field};
use crate::store::{Result, StoreError};

/// A number that only later transactions exceed: this one's own. A snapshot alone does not tell it, because its end is the last
/// transaction that has ended, and a later one may be under way.
const NOW: &str = "SELECT pg_current_xact_id()::text::bigint";
/// The number of the oldest transaction under way.
const OLDEST: &str = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
/// How long to wait at most.
const PATIENCE: Duration = Duration::from_secs(2);

impl PostgresStore {
    /// Waits until the transactions that are under way now have ended. The endpoint is added, whatever comes of the wait.
    pub(super) async fn wait_for_earlier_batches(&self) {
        match self.earlier_batches_end().await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!("a transaction stays open; payments of this moment may not reach the new endpoint");
            }
            Err(error) => tracing::warn!(%error, "payments of this moment may not reach the new endpoint"),
        }
    }

    /// Waits for the transactions that are under way; false if one stays open.
    async fn earlier_batches_end(&self) -> Result<bool> {
        let begun = Instant::now();
        let now = self.transaction(NOW).await?;
        while begun.elapsed() < PATIENCE {
            if self.transaction(OLDEST).await? >= now {
                return Ok(true);
            }
            sleep(Duration::from_millis(2)).await;
        }
        Ok(false)
    }

    async fn transaction(&self, sql: &'static str) -> Result<i64> {
        let row = self.readers.one(sql, &[]).await?;
        field(&row.ok_or_else(|| StoreError::unavailable("the database returned no row"))?, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{task::spawn_blocking, time::timeout};
    use tokio_postgres::Client;

    use super::*;
    use crate::{
        ambient::OperatingSystem,
        metrics::Metrics,
        store::{
            contract::{Cluster, client_of},
            postgres::{Closing, Target},
        },
    };

    async fn store(url: &str) -> (PostgresStore, Closing) {
        let target = Target::new(&url.to_owned().into(), None).unwrap();
        PostgresStore::open(target, Arc::new(OperatingSystem), Metrics::new().commits).await.unwrap()
    }

    /// A connection that has begun to write something.
    async fn begun(url: &str) -> Client {
        let client = client_of(url).await;
        client.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
        client
    }

    #[tokio::test]
    async fn the_wait_is_for_all_transactions_under_way_and_no_later_one_and_never_lasts_long() {
        // Its snapshots name the transactions of all databases in a cluster.
        let cluster = spawn_blocking(|| Cluster::start(&["fsync=off"])).await.unwrap();
        let url = cluster.url("postgres");
        let (store, closing) = store(&url).await;
        let first = begun(&url).await;
        let mut waiting = Box::pin(store.earlier_batches_end());
        assert!(timeout(PATIENCE / 4, &mut waiting).await.is_err(), "the wait did not wait");
        // The newest transaction of all: it began after the wait, so the wait ends without it.
        let later = begun(&url).await;
        first.batch_execute("COMMIT").await.unwrap();
        assert!(waiting.await.unwrap(), "it went on until its patience ended");

        // It is still the newest of all, and the next wait is for it.
        let begun = Instant::now();
        store.wait_for_earlier_batches().await;
        assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
        later.batch_execute("COMMIT").await.unwrap();
        drop(store);
        closing.wait().await;
    }
}
