//! The clock and the random source. The server uses no others, so tests can control both.

use std::{
    cell::RefCell,
    process,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use payments_core::{RANDOM_BYTES, Timestamp};

pub trait Ambient: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    /// Fills `bytes` with cryptographically secure random bytes.
    fn fill_random(&self, bytes: &mut [u8]);
}

impl dyn Ambient {
    pub fn id_bytes(&self) -> [u8; RANDOM_BYTES] {
        self.random()
    }

    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill_random(&mut bytes);
        bytes
    }
}

pub struct OperatingSystem;

/// How many random bytes a thread takes from the operating system at a time. A new payment needs 20.
const TAKEN_BYTES: usize = 512;

thread_local! {
    /// Random bytes that this thread has taken and not yet used.
    static TAKEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn take_from_system(bytes: &mut [u8]) {
    if let Err(error) = getrandom::fill(bytes) {
        // A guessable key or id is worse than no server.
        tracing::error!(%error, "the operating system returned no random bytes; the server stops");
        stop()
    }
}

fn stop() -> ! {
    say_last_words();
    process::abort()
}

static LAST_WORDS: OnceLock<fn()> = OnceLock::new();

/// Sets the function that writes the waiting lines of the log. It is called before a process stops because it cannot go on.
pub fn set_last_words(say: fn()) {
    let _ = LAST_WORDS.set(say);
}

pub(crate) fn say_last_words() {
    if let Some(say) = LAST_WORDS.get() {
        say();
    }
}

impl Ambient for OperatingSystem {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(millis).unwrap_or_else(|_| {
            tracing::error!(millis, "the system clock is beyond the year 9999; set it and restart the server");
            stop()
        })
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if bytes.len() > TAKEN_BYTES {
            return take_from_system(bytes);
        }
        TAKEN.with_borrow_mut(|taken| {
            if taken.len() < bytes.len() {
                taken.resize(TAKEN_BYTES, 0);
                take_from_system(taken);
            }
            // No bytes are handed out twice or stay in memory.
            let left = taken.len() - bytes.len();
            bytes.copy_from_slice(&taken[left..]);
            taken[left..].fill(0);
            taken.truncate(left);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_random_byte_is_used_twice() {
        let system: &dyn Ambient = &OperatingSystem;
        let short: HashSet<[u8; 16]> = (0..1_000).map(|_| system.random()).collect();
        let long: HashSet<[u8; TAKEN_BYTES + 1]> = (0..10).map(|_| system.random()).collect();
        assert_eq!((short.len(), long.len()), (1_000, 10));
        // The odd length leaves a remainder that is too short for the next request.
        let odd: Vec<[u8; 300]> = (0..100).map(|_| system.random()).collect();
        let parts: HashSet<&[u8]> = odd.iter().flat_map(|bytes| bytes.chunks(20)).collect();
        assert_eq!(parts.len(), 100 * 15);
    }
}
