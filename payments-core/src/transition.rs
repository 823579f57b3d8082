//! The state transitions of a payment.
//!
//! | from | to | cause |
//! |---|---|---|
//! | created | processing | the customer was sent to the gateway (live) |
//! | created, processing | paid | the gateway reports the payment as paid (live) |
//! | created, processing | failed, cancelled | the gateway reports it (live), or the simulator (test) |
//! | created | paid | the simulator (test) |
//! | created, processing | expired | the session expires |
//! | expired, failed, cancelled | paid | the gateway reports a late payment (live) |
//! | paid | refunded | a refund (live) |
//!
//! `pending` behaves as `created`. Any other transition is a [`Refusal`].

use crate::{Environment, PaymentMethod, RawStatus, RefundId, SimulateOutcome};

/// The cause of a state transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The customer of a live session was sent to the gateway.
    SentToGateway(PaymentMethod),
    /// The server queried the gateway, and its id, amount and currency match the payment.
    GatewayConfirmed,
    /// The gateway reports that the payment failed.
    GatewayFailed,
    /// The gateway reports that the customer cancelled.
    GatewayCancelled,
    /// The simulator of a test session was called.
    Simulated(SimulateOutcome),
    /// The session expired. If the customer had been sent to the gateway, a last query found the payment unpaid.
    SessionEnded,
    /// The merchant refunds the payment.
    Refunded {
        /// The refund's new id.
        id: RefundId,
        /// The merchant's reason.
        reason: Option<String>,
    },
}

impl Cause {
    /// The status after this cause.
    fn target(&self) -> RawStatus {
        match self {
            Self::SentToGateway(_) => RawStatus::Processing,
            Self::GatewayConfirmed | Self::Simulated(SimulateOutcome::Completed) => RawStatus::Paid,
            Self::GatewayFailed | Self::Simulated(SimulateOutcome::Failed) => RawStatus::Failed,
            Self::GatewayCancelled | Self::Simulated(SimulateOutcome::Cancelled) => RawStatus::Cancelled,
            Self::SessionEnded => RawStatus::Expired,
            Self::Refunded { .. } => RawStatus::Refunded,
        }
    }

    /// The environment in which this cause can occur, or `None` for both.
    fn environment(&self) -> Option<Environment> {
        match self {
            Self::Simulated(_) => Some(Environment::Test),
            Self::SessionEnded => None,
            _ => Some(Environment::Live),
        }
    }
}

/// Why a transition is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The payment's status does not allow it.
    #[error("a payment that is {from} cannot become {to}")]
    State {
        /// The payment's status.
        from: RawStatus,
        /// The status after the transition.
        to: RawStatus,
    },
    /// Only test payments can be simulated.
    #[error("a live payment cannot be simulated; only a payment made with a test key can")]
    LiveSimulation,
    /// Only live payments move money.
    #[error("a test payment cannot become {to}; only a payment made with a live key can")]
    TestPayment {
        /// The status after the transition.
        to: RawStatus,
    },
    /// No refund of this payment waits for manual settlement.
    #[error("this payment has no refund that waits for manual settlement")]
    NothingToSettle,
}

/// The status of a payment after a transition.
///
/// # Errors
/// [`Refusal`] if the transition is not allowed.
pub fn transition(from: &RawStatus, environment: Environment, cause: &Cause) -> Result<RawStatus, Refusal> {
    use RawStatus::{Cancelled, Created, Expired, Failed, Paid, Pending, Processing};

    let to = cause.target();
    match (cause.environment(), environment) {
        (Some(Environment::Test), Environment::Live) => return Err(Refusal::LiveSimulation),
        (Some(Environment::Live), Environment::Test) => return Err(Refusal::TestPayment { to }),
        _ => {}
    }
    let allowed = match cause {
        Cause::SentToGateway(_) | Cause::Simulated(SimulateOutcome::Completed) => matches!(from, Created | Pending),
        Cause::GatewayConfirmed => matches!(from, Created | Pending | Processing | Expired | Failed | Cancelled),
        Cause::GatewayFailed
        | Cause::GatewayCancelled
        | Cause::Simulated(SimulateOutcome::Failed | SimulateOutcome::Cancelled)
        | Cause::SessionEnded => matches!(from, Created | Pending | Processing),
        Cause::Refunded { .. } => *from == Paid,
    };
    if allowed { Ok(to) } else { Err(Refusal::State { from: from.clone(), to }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{RANDOM_BYTES, Timestamp};

    /// Every cause.
    pub(crate) fn causes() -> Vec<Cause> {
        vec![
            Cause::SentToGateway(PaymentMethod::Mfs),
            Cause::GatewayConfirmed,
            Cause::GatewayFailed,
            Cause::GatewayCancelled,
            Cause::Simulated(SimulateOutcome::Completed),
            Cause::Simulated(SimulateOutcome::Failed),
            Cause::Simulated(SimulateOutcome::Cancelled),
            Cause::SessionEnded,
            Cause::Refunded { id: RefundId::new(Timestamp::from_millis(0).unwrap(), [3; RANDOM_BYTES]), reason: None },
        ]
    }

    /// The allowed transitions: from, environment, index of the cause in [`causes`], to.
    fn table() -> Vec<(&'static str, Environment, usize, &'static str)> {
        use Environment::{Live, Test};
        let mut rows = vec![("paid", Live, 8, "refunded")];
        for open in ["created", "pending"] {
            rows.extend([
                (open, Live, 0, "processing"),
                (open, Live, 1, "paid"),
                (open, Live, 2, "failed"),
                (open, Live, 3, "cancelled"),
                (open, Test, 4, "paid"),
                (open, Test, 5, "failed"),
                (open, Test, 6, "cancelled"),
                (open, Live, 7, "expired"),
                (open, Test, 7, "expired"),
            ]);
        }
        rows.extend([
            ("processing", Live, 1, "paid"),
            ("processing", Live, 2, "failed"),
            ("processing", Live, 3, "cancelled"),
            ("processing", Test, 5, "failed"),
            ("processing", Test, 6, "cancelled"),
            ("processing", Live, 7, "expired"),
            ("processing", Test, 7, "expired"),
        ]);
        rows.extend(["expired", "failed", "cancelled"].map(|ended| (ended, Live, 1, "paid")));
        rows
    }

    #[test]
    fn every_status_and_cause_follows_the_table() {
        for from in RawStatus::KNOWN.iter().chain([&RawStatus::Other("later".into())]) {
            for environment in [Environment::Live, Environment::Test] {
                for (index, cause) in causes().iter().enumerate() {
                    let row =
                        table().into_iter().find(|row| (row.0, row.1, row.2) == (from.as_str(), environment, index));
                    let expected = row.map(|row| RawStatus::from(row.3));
                    let got = transition(from, environment, cause).ok();
                    assert_eq!(got, expected, "{from} in {environment} by {cause:?}");
                }
            }
        }
    }

    #[test]
    fn a_refusal_names_both_statuses() {
        let refusal = transition(&RawStatus::Refunded, Environment::Live, &Cause::GatewayConfirmed).unwrap_err();
        assert_eq!(refusal.to_string(), "a payment that is refunded cannot become paid");
    }
}
