//! The clock and the random source. The server uses no others, so tests can control both.

use std::time::{SystemTime, UNIX_EPOCH};

use payments_core::{RANDOM_BYTES, Timestamp};

/// A clock and a random source.
pub(crate) trait Ambient: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// Fills `bytes` with cryptographically secure random bytes.
    fn fill_random(&self, bytes: &mut [u8]);
}

impl dyn Ambient {
    /// The random bytes of a new id.
    pub(crate) fn id_bytes(&self) -> [u8; RANDOM_BYTES] {
        self.random()
    }

    /// `N` random bytes.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill_random(&mut bytes);
        bytes
    }
}

/// The operating system's clock and random source.
pub(crate) struct OperatingSystem;

impl Ambient for OperatingSystem {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(millis).unwrap_or_else(|_| {
            tracing::error!(millis, "the system clock is beyond the year 9999; set it and restart the server");
            std::process::abort()
        })
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            // A guessable key or id is worse than no server.
            tracing::error!(%error, "the operating system returned no random bytes; the server stops");
            std::process::abort();
        }
    }
}
