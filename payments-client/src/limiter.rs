//! Keeps a client within the server's rate limit, by the rate-limit headers of its responses.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::RateLimit;

/// The length of the server's rate-limit window. A window begins with the first request in it.
const WINDOW: Duration = Duration::from_secs(60);

/// The current window, shared by clones. The client does not know about other users of the key. If they use up the limit, the
/// server returns 429 with `Retry-After`.
#[derive(Debug, Default)]
pub(crate) struct Limiter(Mutex<Option<Window>>);

#[derive(Debug, Clone, Copy)]
struct Window {
    /// When the first response arrived, by the client's clock.
    start: Duration,
    remaining: u32,
}

impl Limiter {
    /// Returns how long to wait before the next request. If that is zero, counts the request.
    pub(crate) fn take(&self, now: Duration) -> Duration {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match window.as_mut() {
            Some(current) if now >= current.start + WINDOW => {
                *window = None;
                Duration::ZERO
            }
            Some(current) if current.remaining == 0 => current.start + WINDOW - now,
            Some(current) => {
                current.remaining -= 1;
                Duration::ZERO
            }
            None => Duration::ZERO,
        }
    }

    /// Updates the window from a response. Responses may arrive out of order, so the smallest `remaining` counts.
    pub(crate) fn update(&self, limit: RateLimit, now: Duration) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = limit.remaining + 1 >= limit.limit;
        match window.as_mut() {
            Some(current) if !is_new || now < current.start + WINDOW => {
                current.remaining = current.remaining.min(limit.remaining);
            }
            _ => *window = Some(Window { start: now, remaining: limit.remaining }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(remaining: u32) -> RateLimit {
        RateLimit { limit: 3, remaining }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn requests_wait_for_the_next_window_once_the_limit_is_used_up() {
        let limiter = Limiter::default();
        assert_eq!(limiter.take(at(0)), Duration::ZERO, "no window is known yet");
        limiter.update(limit(2), at(1));
        assert_eq!(limiter.take(at(2)), Duration::ZERO);
        limiter.update(limit(1), at(2));
        assert_eq!(limiter.take(at(3)), Duration::ZERO);
        limiter.update(limit(0), at(3));
        assert_eq!(limiter.take(at(4)), at(57));
        assert_eq!(limiter.take(at(61)), Duration::ZERO, "a new window");
    }

    #[test]
    fn requests_in_flight_count_before_their_responses_arrive() {
        let limiter = Limiter::default();
        limiter.update(limit(2), at(0));
        assert_eq!((limiter.take(at(1)), limiter.take(at(1))), (Duration::ZERO, Duration::ZERO));
        assert_eq!(limiter.take(at(1)), at(59));
        // A late response to an earlier request does not raise the remaining number.
        limiter.update(limit(1), at(2));
        assert_eq!(limiter.take(at(2)), at(58));
    }
}
