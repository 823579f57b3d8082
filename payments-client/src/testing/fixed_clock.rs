//! A clock for tests.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A clock that advances only when the client waits or [`advance`](Self::advance) is called. A wait takes no real time.
/// Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct FixedClock(Arc<Mutex<Time>>);

#[derive(Debug, Default)]
struct Time {
    start_since_1970: Duration,
    elapsed: Duration,
    pauses: Vec<Duration>,
}

impl FixedClock {
    /// Creates a clock with a given Unix time.
    #[must_use]
    pub fn at(unix_seconds: u64) -> Self {
        let time = Time { start_since_1970: Duration::from_secs(unix_seconds), ..Time::default() };
        Self(Arc::new(Mutex::new(time)))
    }

    /// The lengths of all the client's waits.
    #[must_use]
    pub fn pauses(&self) -> Vec<Duration> {
        self.time().pauses.clone()
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.time().elapsed += by;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.time().elapsed
    }

    pub(crate) fn since_1970(&self) -> Duration {
        let time = self.time();
        time.start_since_1970 + time.elapsed
    }

    pub(crate) fn sleep(&self, pause: Duration) {
        let mut time = self.time();
        time.elapsed += pause;
        time.pauses.push(pause);
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
