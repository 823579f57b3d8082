//! Staying within the server's rate limit by what its answers say of it, rather than by being refused.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::RateLimit;

/// The server counts a minute from the first request in it.
const WINDOW: Duration = Duration::from_secs(60);

/// What is known of the present window. It is shared by clones, and knows nothing of the key's other users; where they
/// spend the rest, the server refuses and says how long to wait.
#[derive(Debug, Default)]
pub(crate) struct Limiter(Mutex<Option<Window>>);

#[derive(Debug, Clone, Copy)]
struct Window {
    /// When its first answer came, by the client's clock.
    begun: Duration,
    remaining: u32,
}

impl Limiter {
    /// How long to wait before the next request; it is counted.
    pub(crate) fn take(&self, now: Duration) -> Duration {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match window.as_mut() {
            Some(known) if now >= known.begun + WINDOW => {
                *window = None;
                Duration::ZERO
            }
            Some(known) if known.remaining == 0 => known.begun + WINDOW - now,
            Some(known) => {
                known.remaining -= 1;
                Duration::ZERO
            }
            None => Duration::ZERO,
        }
    }

    /// What an answer said. Answers may come out of order, so the least that was said counts.
    pub(crate) fn heard(&self, limit: RateLimit, now: Duration) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = limit.remaining + 1 >= limit.limit;
        match window.as_mut() {
            Some(known) if !is_new || now < known.begun + WINDOW => {
                known.remaining = known.remaining.min(limit.remaining);
            }
            _ => *window = Some(Window { begun: now, remaining: limit.remaining }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(remaining: u32) -> RateLimit {
        RateLimit { limit: 3, remaining }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_waits_until_the_window_is_spent_and_then_until_its_end() {
        let limiter = Limiter::default();
        assert_eq!(limiter.take(at(0)), Duration::ZERO, "nothing is known yet");
        limiter.heard(said(2), at(1));
        assert_eq!(limiter.take(at(2)), Duration::ZERO);
        limiter.heard(said(1), at(2));
        assert_eq!(limiter.take(at(3)), Duration::ZERO);
        limiter.heard(said(0), at(3));
        assert_eq!(limiter.take(at(4)), at(57));
        assert_eq!(limiter.take(at(61)), Duration::ZERO, "a new window");
    }

    #[test]
    fn requests_under_way_count_before_their_answers_come() {
        let limiter = Limiter::default();
        limiter.heard(said(2), at(0));
        assert_eq!((limiter.take(at(1)), limiter.take(at(1))), (Duration::ZERO, Duration::ZERO));
        assert_eq!(limiter.take(at(1)), at(59));
        // A late answer of an earlier request does not give back what was spent since.
        limiter.heard(said(1), at(2));
        assert_eq!(limiter.take(at(2)), at(58));
    }
}
