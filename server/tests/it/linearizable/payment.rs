//! A payment as a state machine, seen from outside: what each answer says about the state before and after it.

use todc_utils::{Action, Specification};

/// What was asked and answered about one payment, by whom, in the order of time.
pub(super) type Actions = Vec<(usize, Action<Operation>)>;

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State {
    Absent,
    Pending,
    Completed,
    /// Refunded under the key of a client.
    Refunded {
        by: usize,
    },
}

/// An operation and its answer.
///
/// An operation whose first tries got no answer is repeated until it gets one. One of those tries may have had the
/// effect, so its moment is anywhere between the first try and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// It is not answered yet.
    Asked,
    Created(Keyed),
    Read(State),
    /// The gateway's page led back to the shop, or the server says that the payment is paid already.
    Paid,
    Refunded {
        by: usize,
        keyed: Keyed,
    },
    /// A refund was refused because the payment is pending, or refunded under another key.
    NotRefunded {
        by: usize,
        is_refunded: bool,
    },
    /// A refund was refused at last, but an earlier try of it may still be under way.
    MayRefund {
        by: usize,
    },
}

/// How a request under an idempotency key was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keyed {
    /// The answer is a stored one.
    pub(super) is_replayed: bool,
    /// An earlier try got no answer.
    pub(super) is_repeated: bool,
}

impl Keyed {
    /// Whether the operation itself can have had the effect.
    fn may_be_first(self) -> bool {
        !self.is_replayed || self.is_repeated
    }
}

/// The rules of a payment.
pub(super) struct PaymentSpec;

impl Specification for PaymentSpec {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::Absent
    }

    fn apply(operation: &Operation, state: &State) -> (bool, State) {
        let next = match (*operation, *state) {
            (Operation::Created(keyed), State::Absent) => keyed.may_be_first().then_some(State::Pending),
            (Operation::Created(keyed), state) => keyed.is_replayed.then_some(state),
            (Operation::Read(seen), state) => (seen == state).then_some(state),
            (Operation::Paid, State::Pending) => Some(State::Completed),
            (Operation::Paid, State::Completed | State::Refunded { .. }) => Some(*state),
            (Operation::Refunded { by, keyed }, State::Completed) => {
                keyed.may_be_first().then_some(State::Refunded { by })
            }
            (Operation::Refunded { by, keyed }, State::Refunded { by: first }) => {
                (keyed.is_replayed && by == first).then_some(*state)
            }
            (Operation::NotRefunded { is_refunded, .. }, State::Pending) => (!is_refunded).then_some(*state),
            (Operation::NotRefunded { by, is_refunded }, State::Refunded { by: first }) => {
                (is_refunded && by != first).then_some(*state)
            }
            (Operation::MayRefund { by }, State::Completed) => Some(State::Refunded { by }),
            (Operation::MayRefund { .. }, state) => Some(state),
            _ => None,
        };
        (next.is_some(), next.unwrap_or(*state))
    }
}

/// Actions as text, a line each.
pub(super) fn lines(actions: &Actions) -> String {
    let line = |(client, action): &(usize, Action<Operation>)| match action {
        Action::Call(_) => format!("client {client} asks"),
        Action::Response(operation) => format!("client {client} has {operation:?}"),
    };
    actions.iter().map(line).collect::<Vec<_>>().join("\n")
}
