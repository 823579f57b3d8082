//! The width of a lane: how many requests it may have in flight.

/// The width of a lane. It doubles with each round of responses until the endpoint first leaves a request unanswered. Then it
/// halves, and afterwards grows by one in [`ROUNDS`](Width::ROUNDS) rounds. TCP finds the capacity of a path in the same way
/// (RFC 5681), but may lose more packets: a delivery is sent once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Width {
    width: usize,
    /// From this width on, growth is slow.
    steady_from: usize,
    /// Responses since the last slow growth.
    answers: usize,
}

impl Width {
    /// The width of a new lane. An endpoint that hangs holds four permits for 8 seconds, then one.
    const FIRST: usize = 4;
    /// With 5 ms for a request and 10 ms to log it, 32 requests in flight make 2,000 deliveries a second.
    pub(super) const MAX: usize = 32;

    /// How many rounds of responses the width needs to grow by one after a failure.
    const ROUNDS: usize = 16;

    pub(super) const fn new() -> Self {
        Self { width: Self::FIRST, steady_from: Self::MAX, answers: 0 }
    }

    pub(super) const fn get(&self) -> usize {
        self.width
    }

    pub(super) fn answered(&mut self) {
        self.answers += 1;
        if self.width < self.steady_from || self.answers >= self.width * Self::ROUNDS {
            self.width = Self::MAX.min(self.width + 1);
            self.answers = 0;
        }
    }

    pub(super) fn unanswered(&mut self) {
        *self = Self { width: 1.max(self.width / 2), steady_from: 1.max(self.width / 2), answers: 0 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(answers: impl IntoIterator<Item = bool>) -> Width {
        let mut width = Width::new();
        for is_answered in answers {
            if is_answered { width.answered() } else { width.unanswered() }
        }
        width
    }

    #[test]
    fn an_endpoint_that_answers_reaches_the_full_width_within_28_requests() {
        assert_eq!(after([true; Width::MAX - Width::FIRST]).get(), Width::MAX);
    }

    #[test]
    fn an_endpoint_that_does_not_answer_gets_one_request_at_a_time() {
        assert_eq!(after([true; 100].into_iter().chain([false; 5])).get(), 1);
        assert_eq!(after([false; 2]).get(), 1);
    }

    #[test]
    fn after_a_request_without_an_answer_the_width_grows_by_one_in_sixteen_rounds() {
        let after_failure = |answers| after([false].into_iter().chain(vec![true; answers])).get();
        assert_eq!((after_failure(0), after_failure(31), after_failure(32)), (2, 2, 3));
        assert_eq!((after_failure(32 + 47), after_failure(32 + 48)), (3, 4));
    }

    /// The endpoint serves 10 requests at once and drops the others.
    #[test]
    fn few_requests_are_lost_until_the_width_fits_a_limited_endpoint() {
        let (mut width, mut lost, mut sent) = (Width::new(), 0, 0);
        while sent < 10_000 {
            sent += 1;
            if width.get() > 10 {
                lost += 1;
                width.unanswered();
            } else {
                width.answered();
            }
        }
        assert!(lost <= 20, "{lost} of {sent}");
    }

    proptest! {
        #[test]
        fn the_width_is_between_one_and_the_maximum_after_any_responses(
            answers in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let width = after(answers).get();
            prop_assert!((1..=Width::MAX).contains(&width), "{}", width);
        }
    }
}
