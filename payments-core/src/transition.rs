//! The state transitions of a payment.
//!
//! | from | to | cause |
//! |---|---|---|
//! | created | processing | the customer was sent to the gateway (live) |
//! | processing | pending | the attempt at the gateway failed, and the customer may try again (live) |
//! | created, processing | paid | the gateway reports the payment as paid (live) |
//! | created, processing | failed, cancelled | the gateway reports it (live), or the simulator (test) |
//! | created | paid | the simulator (test) |
//! | created | cancelled | the customer went back to the shop (live) |
//! | created, processing | expired | the session expires |
//! | expired, failed, cancelled | paid | the gateway reports a late payment (live) |
//! | paid | paid | a refund of a part (live, or by the simulator) |
//! | paid | refunded | a refund of all that is not refunded (live, or by the simulator) |
//! | refunded, paid | paid | a refund that was booked fails |
//!
//! `pending` behaves as `created`, and any number of attempts may fail. A payment keeps its status whatever happens to its
//! disputes. Any other transition is a [`Refusal`].

use crate::{Amount, Environment, ErrorCode, NewRefund, PaymentMethod, RawStatus, RefundId, SimulateOutcome};

/// The cause of a state transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The customer of a live session was sent to the gateway.
    SentToGateway(PaymentMethod),
    /// The server queried the gateway, and its id, amount and currency match the payment.
    GatewayConfirmed,
    /// The gateway reports that the payment failed, or its session ended after a failed attempt.
    GatewayFailed,
    /// The gateway reports that an attempt failed, and the customer may make another one.
    AttemptFailed,
    /// The gateway reports that the customer cancelled.
    GatewayCancelled,
    /// The customer went back to the shop, while no attempt at the gateway could be paid.
    CustomerLeft,
    /// The simulator of a test session was called.
    Simulated(SimulateOutcome),
    /// The session expired. If the customer had been sent to the gateway, a last query found the payment unpaid.
    SessionEnded,
    /// A part of what is not refunded of the payment is refunded.
    PartRefunded {
        /// The refund.
        refund: NewRefund,
        /// The amount, which is less than what is not refunded.
        amount: Amount,
    },
    /// All that is not refunded of the payment is refunded.
    Refunded(NewRefund),
    /// The gateway reports that a refund that it had accepted failed.
    RefundFailed {
        /// The refund.
        id: RefundId,
        /// Why it failed, in the gateway's words.
        reason: Option<String>,
    },
}

impl Cause {
    /// The status after this cause.
    fn target(&self) -> RawStatus {
        match self {
            Self::SentToGateway(_) => RawStatus::Processing,
            Self::GatewayConfirmed
            | Self::Simulated(SimulateOutcome::Completed)
            | Self::PartRefunded { .. }
            | Self::RefundFailed { .. } => RawStatus::Paid,
            Self::GatewayFailed | Self::Simulated(SimulateOutcome::Failed) => RawStatus::Failed,
            Self::AttemptFailed => RawStatus::Pending,
            Self::GatewayCancelled | Self::CustomerLeft | Self::Simulated(SimulateOutcome::Cancelled) => {
                RawStatus::Cancelled
            }
            Self::SessionEnded => RawStatus::Expired,
            Self::Refunded(_) => RawStatus::Refunded,
        }
    }

    /// The environment in which this cause can occur, or `None` for both.
    fn environment(&self) -> Option<Environment> {
        match self {
            Self::Simulated(_) => Some(Environment::Test),
            Self::SessionEnded | Self::RefundFailed { .. } => None,
            // The simulator makes refunds as people do in a gateway's dashboard.
            Self::PartRefunded { refund, .. } | Self::Refunded(refund) if refund.source.is_some() => None,
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
    /// The refund exceeds the rest of the payment.
    #[error(
        "{left} of this payment is left to refund; refund at most that, or leave out the amount to refund all of it"
    )]
    MoreThanIsLeft {
        /// The amount that is left to refund.
        left: Amount,
    },
    /// The payment already has its maximum number of partial refunds.
    #[error("this payment has {count} refunds, and one more is possible: leave out the amount to refund all that is left", count = crate::MAX_REFUNDS - 1)]
    TooManyRefunds,
    /// The payment already has its maximum number of refunds, of which some failed.
    #[error("this payment has {count} refunds, and no more are possible; send the money another way", count = crate::MAX_REFUNDS)]
    NoMoreRefunds,
    /// Disputes hold so much of the payment that less than the refund is left.
    #[error("disputes hold or took {disputed} of this payment, so {left} is left to refund")]
    Disputed {
        /// What disputes hold of what is not refunded.
        disputed: Amount,
        /// The amount that is left to refund.
        left: Amount,
    },
    /// The payment was never paid, so it cannot be disputed.
    #[error("a payment that is {status} cannot be disputed; only one that was paid can")]
    NeverPaid {
        /// The payment's status.
        status: RawStatus,
    },
    /// A report of a dispute contradicts itself or the payment.
    #[error(
        "a dispute is of at most the payment's amount, at most its amount is withdrawn and not reinstated, and only what was \
         withdrawn is reinstated"
    )]
    DisputeContradicts,
    /// The payment has as many disputes as it may have.
    #[error("this payment has {count} disputes, and no more are possible", count = crate::MAX_DISPUTES)]
    TooManyDisputes,
    /// No dispute of this payment is open.
    #[error("this payment has no open dispute")]
    NoOpenDispute,
    /// Each refund of this payment failed, or it has none.
    #[error("this payment has no refund that can fail")]
    NoRefundStands,
    /// No refund of this payment waits for manual settlement.
    #[error("this payment has no refund that waits for manual settlement")]
    NothingToSettle,
    /// The payment has no such refund by the gateway, or it has failed.
    #[error("this payment has no such refund by the gateway, or it has failed")]
    NoSuchRefund,
}

impl Refusal {
    /// The API's code for this refusal.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::State { from: RawStatus::Refunded, to: RawStatus::Refunded } => ErrorCode::PaymentAlreadyRefunded,
            Self::State { to: RawStatus::Refunded, .. }
            | Self::TestPayment { to: RawStatus::Refunded }
            // Only operators and gateways settle refunds and report disputes.
            | Self::NothingToSettle
            | Self::NoSuchRefund
            | Self::NoOpenDispute
            | Self::NoRefundStands
            | Self::NeverPaid { .. }
            | Self::DisputeContradicts
            | Self::TooManyDisputes => ErrorCode::PaymentNotRefundable,
            Self::State { from: RawStatus::Expired, .. } => ErrorCode::CheckoutExpired,
            Self::State { .. } | Self::TestPayment { .. } => ErrorCode::PaymentNotPayable,
            Self::LiveSimulation => ErrorCode::SimulationNotAllowed,
            Self::Disputed { left: Amount::ZERO, .. } => ErrorCode::PaymentDisputed,
            Self::MoreThanIsLeft { .. } | Self::Disputed { .. } => ErrorCode::RefundAmountTooLarge,
            Self::TooManyRefunds | Self::NoMoreRefunds => ErrorCode::RefundLimitReached,
        }
    }
}

/// The status of a payment after a transition.
///
/// # Errors
/// [`Refusal`] if the transition is not allowed.
pub fn transition(from: &RawStatus, environment: Environment, cause: &Cause) -> Result<RawStatus, Refusal> {
    use RawStatus::{Cancelled, Created, Expired, Failed, Paid, Pending, Processing, Refunded};

    let to = cause.target();
    // A refusal names the status that was requested.
    let asked = if matches!(cause, Cause::PartRefunded { .. }) { RawStatus::Refunded } else { to.clone() };
    match (cause.environment(), environment) {
        (Some(Environment::Test), Environment::Live) => return Err(Refusal::LiveSimulation),
        (Some(Environment::Live), Environment::Test) => return Err(Refusal::TestPayment { to: asked }),
        _ => {}
    }
    let allowed = match cause {
        Cause::SentToGateway(_) | Cause::Simulated(SimulateOutcome::Completed) => matches!(from, Created | Pending),
        Cause::AttemptFailed => *from == Processing,
        Cause::CustomerLeft => matches!(from, Created | Pending),
        Cause::GatewayConfirmed => matches!(from, Created | Pending | Processing | Expired | Failed | Cancelled),
        Cause::GatewayFailed
        | Cause::GatewayCancelled
        | Cause::Simulated(SimulateOutcome::Failed | SimulateOutcome::Cancelled)
        | Cause::SessionEnded => matches!(from, Created | Pending | Processing),
        Cause::PartRefunded { .. } | Cause::Refunded(_) => *from == Paid,
        Cause::RefundFailed { .. } => matches!(from, Paid | Refunded),
    };
    if allowed { Ok(to) } else { Err(Refusal::State { from: from.clone(), to: asked }) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{RANDOM_BYTES, RefundSource, Slot, Timestamp};

    fn refund_id() -> RefundId {
        RefundId::new(Slot::FIRST, Timestamp::from_millis(0).unwrap(), [3; RANDOM_BYTES])
    }

    fn in_dashboard() -> NewRefund {
        NewRefund { source: Some(RefundSource::Gateway), ..NewRefund::made(refund_id()) }
    }

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
            Cause::Refunded(NewRefund::made(refund_id())),
            Cause::PartRefunded { refund: NewRefund::made(refund_id()), amount: Amount::from_minor(1) },
            Cause::AttemptFailed,
            Cause::CustomerLeft,
            Cause::RefundFailed { id: refund_id(), reason: None },
            Cause::Refunded(in_dashboard()),
            Cause::PartRefunded { refund: in_dashboard(), amount: Amount::from_minor(1) },
        ]
    }

    /// The allowed transitions: from, environment, index of the cause in [`causes`], to.
    fn table() -> Vec<(&'static str, Environment, usize, &'static str)> {
        use Environment::{Live, Test};
        let mut rows = vec![("paid", Live, 8, "refunded"), ("paid", Live, 9, "paid")];
        for both in [Live, Test] {
            rows.extend([("refunded", both, 12, "paid"), ("paid", both, 12, "paid")]);
            rows.extend([("paid", both, 13, "refunded"), ("paid", both, 14, "paid")]);
        }
        for open in ["created", "pending"] {
            rows.extend([
                (open, Live, 0, "processing"),
                (open, Live, 1, "paid"),
                (open, Live, 2, "failed"),
                (open, Live, 3, "cancelled"),
                (open, Live, 11, "cancelled"),
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
            ("processing", Live, 10, "pending"),
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
    fn a_refusals_code_tells_a_program_what_to_do_next() {
        let code = |from: &str, environment, cause: usize| {
            transition(&from.into(), environment, &causes()[cause]).unwrap_err().code()
        };
        let (live, test) = (Environment::Live, Environment::Test);
        for (from, environment, cause, expected) in [
            ("created", live, 8, ErrorCode::PaymentNotRefundable),
            ("expired", live, 8, ErrorCode::PaymentNotRefundable),
            ("paid", test, 8, ErrorCode::PaymentNotRefundable),
            ("refunded", live, 8, ErrorCode::PaymentAlreadyRefunded),
            ("expired", live, 0, ErrorCode::CheckoutExpired),
            ("expired", test, 4, ErrorCode::CheckoutExpired),
            ("paid", live, 0, ErrorCode::PaymentNotPayable),
            ("failed", test, 4, ErrorCode::PaymentNotPayable),
            ("created", live, 4, ErrorCode::SimulationNotAllowed),
        ] {
            assert_eq!(code(from, environment, cause), expected, "{from} by {:?}", causes()[cause]);
        }
    }

    #[test]
    fn a_refusal_names_both_statuses() {
        let refusal = transition(&RawStatus::Refunded, Environment::Live, &Cause::GatewayConfirmed).unwrap_err();
        assert_eq!(refusal.to_string(), "a payment that is refunded cannot become paid");
    }
}
