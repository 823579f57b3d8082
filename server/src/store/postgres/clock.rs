//! The database's clock. Servers that share leases and expiry must agree on the time, and each one's own clock may be wrong.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use payments_core::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{PostgresStore, read::field};
use crate::{ambient::Ambient, store::Result};

/// How often the clocks are compared.
const EVERY: Duration = Duration::from_secs(10);
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Tells the database's time by this machine's clock and the difference between the two.
pub(crate) struct DatabaseClock {
    own: Arc<dyn Ambient>,
    /// How many milliseconds the database's clock is ahead.
    ahead: AtomicI64,
}

impl Ambient for DatabaseClock {
    fn now(&self) -> Timestamp {
        let own = self.own.now();
        let millis = own.as_millis().saturating_add(self.ahead.load(Ordering::Relaxed));
        Timestamp::from_millis(millis).unwrap_or(own)
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.own.fill_random(bytes);
    }
}

impl DatabaseClock {
    /// Compares the clocks.
    pub(crate) async fn new(store: &PostgresStore) -> Result<Arc<Self>> {
        let clock = Arc::new(Self { own: Arc::clone(&store.ambient), ahead: 0.into() });
        clock.compare(store).await?;
        Ok(clock)
    }

    /// Compares the clocks again and again.
    pub(crate) async fn follow(self: Arc<Self>, store: Arc<PostgresStore>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.compare(&store).await {
                tracing::warn!(%error, "the database's clock cannot be read; this server's own counts until it can");
            }
        }
    }

    async fn compare(&self, store: &PostgresStore) -> Result<()> {
        let begun = Instant::now();
        let row = store.readers.one(CLOCK, &[]).await?;
        // The database read its clock about half-way between the question and the answer.
        let half = i64::try_from(begun.elapsed().as_millis() / 2).unwrap_or_default();
        if let Some(row) = row {
            let there: i64 = field(&row, 0)?;
            self.ahead.store(there + half - self.own.now().as_millis(), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ambient::OperatingSystem,
        metrics::Metrics,
        store::{contract::cluster_url, postgres::Target},
    };

    /// A clock that is an hour late.
    struct Late;

    impl Ambient for Late {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(OperatingSystem.now().as_millis() - 3_600_000).unwrap()
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            OperatingSystem.fill_random(bytes);
        }
    }

    #[tokio::test]
    async fn a_server_whose_own_clock_is_wrong_tells_the_databases_time() {
        let target = Target::new(&cluster_url().await.into(), None).unwrap().with_schema("clock");
        let (store, closing) = PostgresStore::open(target, Arc::new(Late), Metrics::new().commits).await.unwrap();
        let clock = DatabaseClock::new(&store).await.unwrap();
        let off = clock.now().as_millis() - OperatingSystem.now().as_millis();
        assert!(off.abs() < 1_000, "{off}");
        drop(store);
        closing.wait().await;
    }
}
