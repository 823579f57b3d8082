//! A payment as a state machine, seen from outside: what each answer says about the state before and after the operation.

use todc_utils::{Action, Specification};

/// The requests and answers about one payment, with their clients, in the order of time.
pub(super) type Actions = Vec<(usize, Action<Operation>)>;

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State {
    Absent,
    Pending,
    Completed,
    /// Refunded with the key of a client.
    Refunded {
        by: usize,
    },
}

/// An operation and its answer.
///
/// An operation whose first tries got no answer is repeated until it gets one. Any of those tries may have had the effect, so
/// its moment is anywhere between the first try and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Not answered yet.
    Asked,
    Created(Keyed),
    Read(State),
    /// The gateway's page led back to the shop, or the server said that the payment is already paid.
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
    /// A refund was refused in the end, but an earlier try may still be in progress.
    MayRefund {
        by: usize,
    },
}

/// The answer to a request with an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keyed {
    /// The answer is a stored one.
    pub(super) is_replayed: bool,
    /// An earlier try got no answer.
    pub(super) is_repeated: bool,
}

impl Keyed {
    /// Whether this operation itself may have had the effect.
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

/// Actions as text, one per line.
pub(super) fn lines(actions: &Actions) -> String {
    let line = |(client, action): &(usize, Action<Operation>)| match action {
        Action::Call(_) => format!("client {client} asks"),
        Action::Response(operation) => format!("client {client} has {operation:?}"),
    };
    actions.iter().map(line).collect::<Vec<_>>().join("\n")
}
