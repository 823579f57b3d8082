//! API keys that the store did not know a moment ago. A program with a wrong key sends it again and again.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::domain::KeyHash;

/// How long a key stays unknown before the store is asked again.
const FOR: Duration = Duration::from_secs(1);
/// How many keys are remembered. The store is asked about any further key each time.
const MAX_KEYS: usize = 10_000;

/// The keys that the store did not know within the last second.
#[derive(Default)]
pub struct UnknownKeys {
    /// Whether there may be unknown keys. While there are none, a request with a valid key takes no lock.
    has_any: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    last: Option<Instant>,
    keys: HashMap<KeyHash, Instant>,
}

impl UnknownKeys {
    /// Whether the store did not know the key within the last second.
    pub(super) fn has(&self, hash: &KeyHash) -> bool {
        if !self.has_any.load(Ordering::Relaxed) {
            return false;
        }
        let now = Instant::now();
        let mut noted = self.noted.lock();
        if !noted.last.is_some_and(|at| is_recent(at, now)) {
            *noted = Noted::default();
            self.has_any.store(false, Ordering::Relaxed);
        }
        noted.keys.get(hash).is_some_and(|at| is_recent(*at, now))
    }

    pub(super) fn note(&self, hash: KeyHash) {
        let now = Instant::now();
        let mut noted = self.noted.lock();
        if noted.keys.len() >= MAX_KEYS {
            noted.keys.retain(|_, at| is_recent(*at, now));
        }
        if noted.keys.len() < MAX_KEYS {
            noted.keys.insert(hash, now);
            noted.last = Some(now);
            self.has_any.store(true, Ordering::Relaxed);
        }
    }
}

fn is_recent(at: Instant, now: Instant) -> bool {
    now.duration_since(at) < FOR
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_are_remembered_for_a_second_and_only_up_to_a_limit() {
        let (keys, hash) = (UnknownKeys::default(), |nth: usize| KeyHash::of(&nth.to_string()));
        assert!(!keys.has(&hash(0)));
        keys.note(hash(0));
        advance(Duration::from_millis(600)).await;
        keys.note(hash(1));
        assert!(keys.has(&hash(0)) && keys.has(&hash(1)) && !keys.has(&hash(2)));
        advance(Duration::from_millis(600)).await;
        assert!(!keys.has(&hash(0)) && keys.has(&hash(1)));
        advance(Duration::from_millis(600)).await;
        assert!(!keys.has(&hash(1)) && !keys.has_any.load(Ordering::Relaxed));
        (0..=MAX_KEYS).for_each(|nth| keys.note(hash(nth)));
        assert!(keys.has(&hash(MAX_KEYS - 1)) && !keys.has(&hash(MAX_KEYS)));
        advance(FOR).await;
        keys.note(hash(MAX_KEYS));
        assert!(keys.has(&hash(MAX_KEYS)) && !keys.has(&hash(0)));
    }
}
