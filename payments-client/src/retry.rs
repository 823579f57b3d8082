//! Decides whether and when to retry. Pure: the caller passes the time and a random number.

use std::time::Duration;

/// Whether a request is safe to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Idempotent: it reads, deletes, or has an idempotency key.
    Repeatable,
    /// Not idempotent: retry only if the server did not run it.
    Once,
}

/// How a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The client could not connect, so nothing was sent.
    Connect,
    /// The response is missing or incomplete. The server may have run the request.
    Lost,
    /// The response has this status.
    Status { status: u16, replayed: bool },
}

impl Failure {
    /// Whether a retry may succeed.
    pub(crate) fn is_transient(self) -> bool {
        match self {
            Self::Connect | Self::Lost => true,
            // A stored response never changes.
            Self::Status { replayed: true, .. } => false,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
        }
    }

    fn did_not_run(self) -> bool {
        matches!(self, Self::Connect | Self::Status { status: 429, .. })
    }
}

/// The number of retries and their backoff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) retries: u32,
    pub(crate) first_backoff: Duration,
    pub(crate) max_backoff: Duration,
}

/// What to do after a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    RetryAfter(Duration),
    Fail,
}

impl Policy {
    /// Decides what to do after `tries` tries. `random` is uniform in 0..1, `retry_after` is the server's request, and `left`
    /// is the time until the deadline.
    pub(crate) fn decide(
        &self,
        safety: Safety,
        failure: Failure,
        tries: u32,
        random: f64,
        retry_after: Option<Duration>,
        left: Duration,
    ) -> Next {
        if tries > self.retries || !failure.is_transient() || (safety == Safety::Once && !failure.did_not_run()) {
            return Next::Fail;
        }
        let backoff = self.backoff(tries, random).max(retry_after.unwrap_or_default());
        if backoff < left { Next::RetryAfter(backoff) } else { Next::Fail }
    }

    /// Exponential backoff with full jitter, so that clients that failed together do not retry together.
    fn backoff(&self, tries: u32, random: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(tries.saturating_sub(1));
        self.first_backoff.saturating_mul(doubled).min(self.max_backoff).mul_f64(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy =
        Policy { retries: 2, first_backoff: Duration::from_millis(500), max_backoff: Duration::from_secs(8) };
    const LONG: Duration = Duration::from_secs(60);

    fn status(status: u16) -> Failure {
        Failure::Status { status, replayed: false }
    }

    fn retries(safety: Safety, failure: Failure) -> bool {
        POLICY.decide(safety, failure, 1, 0.5, None, LONG) != Next::Fail
    }

    #[test]
    fn transient_failures_are_retried_if_the_request_cannot_run_twice() {
        for (failure, repeatable, once) in [
            (Failure::Connect, true, true),
            (Failure::Lost, true, false),
            (status(408), true, false),
            (status(429), true, true),
            (status(500), true, false),
            (status(503), true, false),
            (status(599), true, false),
            (status(400), false, false),
            (status(404), false, false),
            (status(409), false, false),
            (status(302), false, false),
            (Failure::Status { status: 503, replayed: true }, false, false),
        ] {
            assert_eq!(retries(Safety::Repeatable, failure), repeatable, "{failure:?}");
            assert_eq!(retries(Safety::Once, failure), once, "{failure:?}");
        }
    }

    #[test]
    fn a_call_fails_after_the_last_retry() {
        let decide = |tries| POLICY.decide(Safety::Repeatable, status(500), tries, 0.5, None, LONG);
        assert_eq!(decide(2), Next::RetryAfter(Duration::from_millis(500)));
        assert_eq!(decide(3), Next::Fail);
    }

    #[test]
    fn a_call_fails_if_retry_after_exceeds_the_deadline() {
        let decide = |asked| POLICY.decide(Safety::Repeatable, status(429), 1, 0.0, Some(asked), LONG);
        assert_eq!(decide(Duration::from_secs(59)), Next::RetryAfter(Duration::from_secs(59)));
        assert_eq!(decide(Duration::from_secs(60)), Next::Fail);
    }

    #[test]
    fn jitter_is_uniform_from_zero_to_the_backoff_interval() {
        let jitter = crate::jitter::Jitter::seeded(7);
        for (tries, bound) in [(1, 0.5), (2, 1.0), (4, 4.0), (9, 8.0)] {
            let mut tenths = [0_u32; 10];
            for _ in 0..10_000 {
                let share = POLICY.backoff(tries, jitter.next()).as_secs_f64() / bound;
                let tenth = (0..10).find(|tenth| share < f64::from(tenth + 1) / 10.0).expect("within the bound");
                tenths[usize::try_from(tenth).unwrap()] += 1;
            }
            // The mean is 1000 and five standard deviations are 150.
            assert!(tenths.iter().all(|count| (850..1150).contains(count)), "try {tries}: {tenths:?}");
        }
    }
}
