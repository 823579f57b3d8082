//! Whether a try that failed is made again, and when. Pure: the time, the chance and the budget are passed in.

use std::time::Duration;

/// What repeating a request can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Nothing that one request would not: it only reads, it removes, or it carries an idempotency key.
    Repeatable,
    /// It may happen twice. It is repeated only when it surely did not run.
    Once,
}

/// How a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection was made, so nothing was sent.
    Connect,
    /// The answer did not come, or not whole. The request may have run.
    Lost,
    /// An answer came, with this status.
    Status { status: u16, replayed: bool },
}

impl Failure {
    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(self) -> bool {
        match self {
            Self::Connect | Self::Lost => true,
            // What was kept under the idempotency key comes again however often it is asked for.
            Self::Status { replayed: true, .. } => false,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
        }
    }

    fn surely_did_not_run(self) -> bool {
        matches!(self, Self::Connect | Self::Status { status: 429, .. })
    }
}

/// How often and how soon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) retries: u32,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    RetryAfter(Duration),
    GiveUp,
}

impl Policy {
    /// `tries` were made; `chance` is uniform in 0..1; `asked` is what the server asked for; `left` is the time until
    /// the deadline.
    pub(crate) fn decide(
        &self,
        safety: Safety,
        failure: Failure,
        tries: u32,
        chance: f64,
        asked: Option<Duration>,
        left: Duration,
    ) -> Next {
        if tries > self.retries || !failure.may_pass() || (safety == Safety::Once && !failure.surely_did_not_run()) {
            return Next::GiveUp;
        }
        let pause = self.pause(tries, chance).max(asked.unwrap_or_default());
        if pause < left { Next::RetryAfter(pause) } else { Next::GiveUp }
    }

    /// Full jitter: anything from nothing to the exponential bound, each as likely. Clients that failed together do
    /// not come back together.
    fn pause(&self, tries: u32, chance: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(tries.saturating_sub(1));
        self.first_pause.saturating_mul(doubled).min(self.longest_pause).mul_f64(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy =
        Policy { retries: 2, first_pause: Duration::from_millis(500), longest_pause: Duration::from_secs(8) };
    const LONG: Duration = Duration::from_secs(60);

    fn status(status: u16) -> Failure {
        Failure::Status { status, replayed: false }
    }

    fn goes_on(safety: Safety, failure: Failure) -> bool {
        POLICY.decide(safety, failure, 1, 0.5, None, LONG) != Next::GiveUp
    }

    #[test]
    fn what_may_pass_is_tried_again_where_it_cannot_happen_twice() {
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
            assert_eq!(goes_on(Safety::Repeatable, failure), repeatable, "{failure:?}");
            assert_eq!(goes_on(Safety::Once, failure), once, "{failure:?}");
        }
    }

    #[test]
    fn it_gives_up_after_the_last_retry() {
        let decide = |tries| POLICY.decide(Safety::Repeatable, status(500), tries, 0.5, None, LONG);
        assert_eq!(decide(2), Next::RetryAfter(Duration::from_millis(500)));
        assert_eq!(decide(3), Next::GiveUp);
    }

    #[test]
    fn a_server_that_asks_for_more_than_is_left_is_not_waited_for() {
        let decide = |asked| POLICY.decide(Safety::Repeatable, status(429), 1, 0.0, Some(asked), LONG);
        assert_eq!(decide(Duration::from_secs(59)), Next::RetryAfter(Duration::from_secs(59)));
        assert_eq!(decide(Duration::from_secs(60)), Next::GiveUp);
    }

    #[test]
    fn the_jitter_is_spread_evenly_from_nothing_to_the_bound_on_each_try() {
        let jitter = crate::jitter::Jitter::seeded(7);
        for (tries, bound) in [(1, 0.5), (2, 1.0), (4, 4.0), (9, 8.0)] {
            let mut tenths = [0_u32; 10];
            for _ in 0..10_000 {
                let share = POLICY.pause(tries, jitter.next()).as_secs_f64() / bound;
                let tenth = (0..10).find(|tenth| share < f64::from(tenth + 1) / 10.0).expect("within the bound");
                tenths[usize::try_from(tenth).unwrap()] += 1;
            }
            // A thousand each; five standard deviations are 150.
            assert!(tenths.iter().all(|count| (850..1150).contains(count)), "try {tries}: {tenths:?}");
        }
    }
}
