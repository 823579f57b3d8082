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
use tokio_postgres::Row;

use super::{readers::Readers, reads::Rows as _, session::Session};
use crate::{Result, ambient::Ambient};

/// How often the database is asked.
const EVERY: Duration = Duration::from_secs(10);
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Tells the database's time. It asks for it now and then, and counts by this machine's monotonic clock in between, so a step
/// of the machine's own time changes nothing.
pub struct DatabaseClock {
    random: Arc<dyn Ambient>,
    begun: Instant,
    /// The database's time when this clock began, in milliseconds since 1970.
    there: AtomicI64,
}

impl Ambient for DatabaseClock {
    fn now(&self) -> Timestamp {
        let millis = self.there.load(Ordering::Relaxed).saturating_add(self.elapsed());
        Timestamp::from_millis(millis).unwrap_or_else(|_| self.random.now())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.random.fill_random(bytes);
    }
}

impl DatabaseClock {
    /// A clock that tells this machine's time until it is set by the database's.
    pub fn new(own: Arc<dyn Ambient>) -> Arc<Self> {
        let there = own.now().as_millis();
        Arc::new(Self { random: own, begun: Instant::now(), there: there.into() })
    }

    pub(super) async fn follow(&self, readers: &Readers) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let asked = self.elapsed();
            let answer = readers.rows(CLOCK, &[]).await;
            if let Err(error) = answer.and_then(|rows| self.set(asked, &rows)) {
                tracing::warn!(%error, "the database's clock cannot be read; this server counts on until it can");
            }
        }
    }

    /// Asks the database for its time over a connection.
    pub(super) async fn set_by(&self, session: &Session) -> Result<()> {
        let asked = self.elapsed();
        let rows = session.query(CLOCK, &[]).await?;
        self.set(asked, &rows)
    }

    /// Sets the clock by the answer to a question.
    fn set(&self, asked: i64, answer: &[Row]) -> Result<()> {
        if let Some(row) = answer.first() {
            let there: i64 = row.try_get(0)?;
            // The database read its clock about half-way between the question and the answer.
            self.there.store(there - (asked + self.elapsed()) / 2, Ordering::Relaxed);
        }
        Ok(())
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::opened, *};
    use crate::ambient::OperatingSystem;

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

    /// By how many milliseconds a clock is ahead of this machine's.
    fn ahead(clock: &DatabaseClock) -> i64 {
        clock.now().as_millis() - OperatingSystem.now().as_millis()
    }

    #[tokio::test]
    async fn a_clock_tells_the_databases_time_if_the_machines_clock_is_wrong() {
        let (place, closing) = opened("clock").await;
        let clock = DatabaseClock::new(Arc::new(Late));
        assert!(ahead(&clock).abs() > 3_000_000);
        place.prepare(Some(&clock)).await.unwrap();
        let off = ahead(&clock);
        assert!(off.abs() < 1_000, "{off}");
        // Its random bytes are the system's.
        let mut bytes = [0; 16];
        clock.fill_random(&mut bytes);
        assert_ne!(bytes, [0; 16]);
        drop(place);
        closing.wait().await;
    }

    #[tokio::test]
    async fn a_clock_counts_on_between_answers_of_the_database_and_follows_each() {
        let (place, closing) = opened("followed_clock").await;
        let begun = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        let there = OperatingSystem.now().as_millis() + 100_000;
        let clock = Arc::new(DatabaseClock { random: Arc::new(Late), begun, there: there.into() });
        // It was at `there` twenty seconds ago.
        let off = ahead(&clock) - 120_000;
        assert!(off.abs() < 1_000, "{off}");
        let (place, followed) = (Arc::new(place), Arc::clone(&clock));
        let following = tokio::spawn({
            let place = Arc::clone(&place);
            async move { followed.follow(&place.readers).await }
        });
        while ahead(&clock).abs() > 1_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        following.abort();
        assert!(following.await.unwrap_err().is_cancelled());
        drop(place);
        closing.wait().await;
    }
}
