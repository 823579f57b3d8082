//! Keeps an inbox within half of the API's rate limit.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{RawResponse, clock::Clock};

/// The length of the API's window. The API chooses when one begins, so the limit holds in any minute.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Lately>);

/// The requests of the last minute. None are kept if the server has no limit.
#[derive(Debug, Default)]
struct Lately {
    requests: VecDeque<Duration>,
    /// Half of the key's limit, once it is known.
    at_most: Option<usize>,
}

impl Pace {
    /// Waits until the next request is within half of the limit.
    pub(super) async fn wait(&self, clock: &Clock) {
        let wait = self.take(clock.elapsed());
        if !wait.is_zero() {
            clock.sleep(wait).await;
            self.take(clock.elapsed());
        }
    }

    /// Counts a response's retries and learns the limit.
    pub(super) fn update(&self, response: &RawResponse, now: Duration) {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = response.rate_limit() else { return *lately = Lately::default() };
        lately.at_most = Some((limit.limit / 2).max(1) as usize);
        lately.requests.extend((1..response.tries).map(|_| now));
    }

    /// How long to wait. If that is zero, counts a request.
    fn take(&self, now: Duration) -> Duration {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while lately.requests.front().is_some_and(|request| *request + WINDOW <= now) {
            lately.requests.pop_front();
        }
        // The last of the requests that must be older than a minute first.
        let oldest = lately.at_most.and_then(|at_most| lately.requests.len().checked_sub(at_most));
        if let Some(request) = oldest.and_then(|nth| lately.requests.get(nth)) {
            return *request + WINDOW - now;
        }
        lately.requests.push_back(now);
        Duration::ZERO
    }
}
