//! The time between tries: the machine's, or one that a test holds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// The machine's, measured from here.
    Machine(Instant),
    #[cfg(feature = "testing")]
    Fixed(crate::testing::FixedClock),
}

impl Clock {
    pub(crate) fn machine() -> Self {
        Self::Machine(Instant::now())
    }

    /// The time since some moment, always the same one.
    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Machine(since) => since.elapsed(),
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.elapsed(),
        }
    }

    /// The present time.
    pub(crate) fn now(&self) -> Timestamp {
        let since_1970 = match self {
            Self::Machine(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.since_1970(),
        };
        let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }

    pub(crate) async fn sleep(&self, pause: Duration) {
        match self {
            Self::Machine(_) => tokio::time::sleep(pause).await,
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.sleep(pause),
        }
    }
}
