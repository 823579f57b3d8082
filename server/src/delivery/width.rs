//! How many requests one endpoint gets at once.

/// The width of a lane. It doubles with each round of answers until the endpoint first leaves a request unanswered,
/// which halves it; from then on it grows by one in [`ROUNDS`](Width::ROUNDS) rounds. TCP finds out what a path carries in
/// the same way (RFC 5681), but may lose more on the way: a delivery is sent once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Width {
    width: usize,
    /// From here on the width grows slowly.
    steady_from: usize,
    /// Answers since it last grew that way.
    answers: usize,
}

impl Width {
    /// A new lane's. One endpoint of four thousand that hang holds four places for 8 seconds, and one place from then on.
    const FIRST: usize = 4;
    /// A request of 5 ms, and 10 ms to log it, make 32 requests in flight 2,000 deliveries a second.
    pub(super) const MOST: usize = 32;

    /// How many rounds of answers a width must have had before one more is tried, once a wider one has failed.
    const ROUNDS: usize = 16;

    pub(super) const fn new() -> Self {
        Self { width: Self::FIRST, steady_from: Self::MOST, answers: 0 }
    }

    /// How many requests may be in flight.
    pub(super) const fn get(&self) -> usize {
        self.width
    }

    /// The endpoint answered.
    pub(super) fn answered(&mut self) {
        self.answers += 1;
        if self.width < self.steady_from || self.answers >= self.width * Self::ROUNDS {
            self.width = Self::MOST.min(self.width + 1);
            self.answers = 0;
        }
    }

    /// It did not.
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
    fn an_endpoint_that_answers_gets_the_most_within_28_requests() {
        assert_eq!(after([true; Width::MOST - Width::FIRST]).get(), Width::MOST);
    }

    #[test]
    fn an_endpoint_that_does_not_answer_gets_one_request_at_a_time() {
        assert_eq!(after([true; 100].into_iter().chain([false; 5])).get(), 1);
        assert_eq!(after([false; 2]).get(), 1);
    }

    /// An endpoint that takes 10 at once and drops what is beyond.
    #[test]
    fn an_endpoint_that_takes_only_some_at_once_loses_few_while_its_width_is_found() {
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
        fn whatever_is_answered_there_is_room_for_one_request_and_never_for_more_than_the_most(
            answers in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let width = after(answers).get();
            prop_assert!((1..=Width::MOST).contains(&width), "{}", width);
        }
    }
}
