//! The system clock, or a test's fixed clock.

use std::time::Duration;

use jiff::Timestamp;

use crate::platform::{Instant, SystemTime, UNIX_EPOCH, sleep};

#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// The system clock. `elapsed` starts at this instant.
    System(Instant),
    #[cfg(feature = "testing")]
    Fixed(crate::testing::fixed_clock::FixedClock),
}

impl Clock {
    pub(crate) fn system() -> Self {
        Self::System(Instant::now())
    }

    /// The time since the clock started.
    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::System(since) => since.elapsed(),
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.elapsed(),
        }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        let since_1970 = match self {
            Self::System(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.since_1970(),
        };
        let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        match self {
            Self::System(_) => sleep(duration).await,
            #[cfg(feature = "testing")]
            Self::Fixed(clock) => clock.sleep(duration),
        }
    }
}
