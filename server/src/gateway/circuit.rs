//! Leaving a gateway alone that does not answer: after some failures in a row nobody asks for a while, then one does.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// So many unanswered calls in a row open the circuit.
const FAILURES: u32 = 8;
/// How long nobody asks. Then one call may, and its outcome decides for the rest.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Circuit(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    closed_until: Option<Instant>,
}

impl Circuit {
    /// Whether a call may be made now. Whoever is let through after a pause is alone for another.
    pub(super) fn may_call(&self, now: Instant) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.closed_until {
            Some(until) if now < until => false,
            Some(_) => {
                state.closed_until = Some(now + PAUSE);
                true
            }
            None => true,
        }
    }

    /// A call was answered, with whatever.
    pub(super) fn answered(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// A call was not.
    pub(super) fn unanswered(&self, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.closed_until = Some(now + PAUSE);
        }
    }

    /// Whether calls are being held back.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).closed_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_in_a_row_one_call_a_pause_is_let_through_until_one_is_answered() {
        let circuit = Circuit::default();
        let begun = Instant::now();
        for _ in 0..FAILURES {
            assert!(circuit.may_call(begun));
            circuit.unanswered(begun);
        }
        assert!(!circuit.may_call(begun + PAUSE / 2));
        assert!(circuit.may_call(begun + PAUSE));
        assert!(!circuit.may_call(begun + PAUSE), "only one is let through");
        circuit.unanswered(begun + PAUSE);
        assert!(!circuit.may_call(begun + PAUSE + PAUSE / 2));
        assert!(circuit.may_call(begun + PAUSE * 2));
        circuit.answered();
        assert!(circuit.may_call(begun + PAUSE * 2) && circuit.may_call(begun + PAUSE * 2));
    }

    #[test]
    fn an_answer_in_between_keeps_the_circuit_closed() {
        let circuit = Circuit::default();
        let now = Instant::now();
        for _ in 0..3 * FAILURES {
            circuit.unanswered(now);
            circuit.answered();
        }
        assert!(circuit.may_call(now) && !circuit.is_open());
    }
}
