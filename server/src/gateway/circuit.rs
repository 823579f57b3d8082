//! A circuit breaker: after consecutive failures, calls are refused for a while, then one call may try.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const FAILURE_THRESHOLD: u32 = 8;
/// How long the circuit stays open before one call may try.
const OPEN_FOR: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Circuit(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl Circuit {
    /// Whether a call may be made now. After `OPEN_FOR`, allows one call in each further `OPEN_FOR`.
    pub(super) fn may_call(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let may_call = state.open_until.is_none_or(|until| now >= until);
        if may_call && state.open_until.is_some() {
            state.open_until = Some(now + OPEN_FOR);
        }
        may_call
    }

    /// Records a response, whatever it says.
    pub(super) fn answered(&self) {
        *self.0.lock() = State::default();
    }

    /// Records a call without a usable response.
    pub(super) fn unanswered(&self, now: Instant) {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURE_THRESHOLD {
            state.open_until = Some(now + OPEN_FOR);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.lock().open_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_circuit_allows_one_call_per_interval_until_one_is_answered() {
        let circuit = Circuit::default();
        let start = Instant::now();
        for _ in 0..FAILURE_THRESHOLD {
            assert!(circuit.may_call(start));
            circuit.unanswered(start);
        }
        assert!(!circuit.may_call(start + OPEN_FOR / 2));
        assert!(circuit.may_call(start + OPEN_FOR));
        assert!(!circuit.may_call(start + OPEN_FOR), "only one call is allowed");
        circuit.unanswered(start + OPEN_FOR);
        assert!(!circuit.may_call(start + OPEN_FOR + OPEN_FOR / 2));
        assert!(circuit.may_call(start + OPEN_FOR * 2));
        circuit.answered();
        assert!(circuit.may_call(start + OPEN_FOR * 2) && circuit.may_call(start + OPEN_FOR * 2));
    }

    #[test]
    fn a_response_between_failures_keeps_the_circuit_closed() {
        let circuit = Circuit::default();
        let now = Instant::now();
        for _ in 0..3 * FAILURE_THRESHOLD {
            circuit.unanswered(now);
            circuit.answered();
        }
        assert!(circuit.may_call(now) && !circuit.is_open());
    }
}
