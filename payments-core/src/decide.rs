//! Creates payments and applies state transitions to them, with their bookings and events.

use crate::{
    Amount, AppId, Booking, BookingKind, Cause, CreatePayment, DeveloperId, Disputes, Environment, EventKind, FeeRate,
    NewRefund, Payment, PaymentId, PaymentMethod, RawStatus, Refund, RefundId, RefundStatus, Refunds, Refusal,
    SimulateOutcome, Timestamp, aliased::UnknownFields, ledger, transition,
};

/// The result of a transition. Commit all of it in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The payment after the transition.
    pub payment: Payment,
    /// The change of the books, if any.
    pub booking: Option<Booking>,
    /// The event to send to the merchant's endpoints, if any.
    pub event: Option<EventKind>,
}

/// The platform's part of a new payment. The merchant's parameters are the other part.
#[derive(Debug, Clone)]
pub struct NewPayment {
    /// The payment's new id.
    pub id: PaymentId,
    /// The payment's developer.
    pub developer_id: DeveloperId,
    /// The payment's developer app, if any.
    pub app_id: Option<AppId>,
    /// The environment of the API key.
    pub environment: Environment,
    /// The URL of the checkout page.
    pub checkout_url: String,
    /// The platform's fee rate.
    pub fee_rate: FeeRate,
    /// The current time.
    pub now: Timestamp,
}

/// Creates a payment in state `created`, with its fee and a `payment.created` event.
#[must_use]
pub fn create(params: CreatePayment, new: NewPayment) -> Decision {
    let fee = new.fee_rate.fee_on(params.amount);
    let payment = Payment {
        merchant_transaction_id: params.merchant_transaction_id.unwrap_or_else(|| new.id.to_string()),
        id: new.id,
        developer_id: new.developer_id,
        app_id: new.app_id,
        amount: params.amount,
        currency: params.currency,
        status: RawStatus::Created.public(),
        raw_status: RawStatus::Created,
        environment: new.environment,
        is_simulated: new.environment == Environment::Test,
        description: params.description,
        line_items: params.line_items,
        gateway_transaction_id: None,
        ways: params.ways,
        checkout_url: new.checkout_url,
        platform_fee_amount: fee,
        fee_percentage: new.fee_rate,
        net_amount: params.amount.checked_sub(fee).unwrap_or(Amount::ZERO),
        customer: params.customer.unwrap_or_default(),
        payment_method: None,
        metadata: params.metadata.unwrap_or_default(),
        success_url: params.success_url,
        cancel_url: params.cancel_url,
        refunds: Refunds::default(),
        disputes: Disputes::default(),
        paid_at: None,
        created_at: new.now,
        updated_at: new.now,
        unknown: UnknownFields::default(),
    };
    Decision { payment, booking: None, event: Some(EventKind::PaymentCreated) }
}

/// Applies a state transition to a payment, at `now`, but at least one millisecond after its last transition.
///
/// So a payment's timestamps strictly increase, even within one millisecond or after a clock step. Ids of events and
/// deliveries begin with these timestamps, so they sort in the order of the transitions.
///
/// A cause is a fact. Whether a refund is allowed while the payment is disputed, [`CreateRefund::cause`](crate::CreateRefund)
/// has decided before.
///
/// # Errors
/// [`Refusal`] if [`transition`] does not allow the transition.
pub fn decide(payment: &Payment, cause: Cause, now: Timestamp) -> Result<Decision, Refusal> {
    let now = now.max(payment.updated_at.plus_millis(1));
    let raw_status = transition(&payment.raw_status, payment.environment, &cause)?;
    let mut moved = payment.clone();
    moved.status = raw_status.public();
    moved.raw_status = raw_status;
    moved.updated_at = now;
    let (booking, event) = match cause {
        Cause::GatewayConfirmed | Cause::Simulated(SimulateOutcome::Completed) => {
            moved.paid_at = Some(now);
            if matches!(cause, Cause::Simulated(_)) {
                moved.payment_method = Some(PaymentMethod::Test);
            }
            let paid = Booking::new(BookingKind::Paid, payment.amount, payment.platform_fee_amount);
            (Some(paid), Some(EventKind::PaymentCompleted))
        }
        Cause::PartRefunded { amount, .. } if amount == Amount::ZERO || amount >= payment.amount_not_refunded() => {
            return Err(Refusal::MoreThanIsLeft { left: payment.amount_not_refunded() });
        }
        Cause::PartRefunded { refund, amount } => {
            (Some(add_refund(&mut moved, refund, amount, now)), Some(EventKind::PaymentPartiallyRefunded))
        }
        Cause::Refunded(refund) => {
            let rest = payment.amount_not_refunded();
            (Some(add_refund(&mut moved, refund, rest, now)), Some(EventKind::PaymentRefunded))
        }
        Cause::RefundFailed { id, reason } => {
            let failed = moved.refunds.find_mut(&id).filter(|refund| refund.is_by_gateway());
            let failed = failed.filter(|refund| refund.status != RefundStatus::Failed).ok_or(Refusal::NoSuchRefund)?;
            failed.status = RefundStatus::Failed;
            (failed.settled_at, failed.failed_at, failed.failure_reason) = (None, Some(now), reason);
            let fee = failed.fee_returned.unwrap_or_default();
            let reversed = Booking::new(BookingKind::RefundFailed, failed.amount, fee);
            (Some(reversed), Some(EventKind::PaymentRefundFailed))
        }
        Cause::SentToGateway(method) => {
            moved.payment_method = Some(method);
            (None, None)
        }
        Cause::GatewayFailed
        | Cause::AttemptFailed
        | Cause::GatewayCancelled
        | Cause::CustomerLeft
        | Cause::Simulated(_)
        | Cause::SessionEnded => (None, None),
    };
    Ok(Decision { payment: moved, booking, event })
}

/// Settles a refund: a person sent its money by hand, or the gateway reports that it succeeded. The payment keeps its status.
/// Timestamps increase as in [`decide`].
///
/// # Errors
/// [`Refusal::NothingToSettle`] if the payment has no such refund, or it is settled or failed.
pub fn settle_refund(payment: &Payment, id: &RefundId, now: Timestamp) -> Result<Decision, Refusal> {
    let now = now.max(payment.updated_at.plus_millis(1));
    let mut settled = payment.clone();
    let refund = settled.refunds.find_mut(id).ok_or(Refusal::NothingToSettle)?;
    let booking = match refund.status {
        // The gateway keeps the payment's money, so the bank sends the refund's.
        RefundStatus::PendingSettlement => Some(Booking::new(BookingKind::RefundSent, refund.amount, Amount::ZERO)),
        RefundStatus::Pending => None,
        _ => return Err(Refusal::NothingToSettle),
    };
    (refund.status, refund.settled_at) = (RefundStatus::Succeeded, Some(now));
    settled.updated_at = now;
    Ok(Decision { payment: settled, booking, event: None })
}

/// Adds a refund to a payment. Returns its booking.
fn add_refund(payment: &mut Payment, new: NewRefund, amount: Amount, now: Timestamp) -> Booking {
    let fee = ledger::fee_returned_with(payment, amount);
    let NewRefund { id, reason, status, source } = new;
    let is_settled = status == RefundStatus::Succeeded;
    payment.refunds.push(Refund {
        id,
        amount,
        currency: payment.currency,
        reason,
        requires_manual_settlement: status == RefundStatus::PendingSettlement,
        status,
        source,
        fee_returned: Some(fee),
        created_at: now,
        settled_at: is_settled.then_some(now),
        failed_at: None,
        failure_reason: None,
        unknown: UnknownFields::default(),
    });
    Booking::new(BookingKind::Refunded, amount, fee)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Money, RANDOM_BYTES, Slot, transition::tests::causes};

    fn now() -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).unwrap()
    }

    pub(crate) fn payment(environment: Environment, minor: u64, basis_points: u16) -> Payment {
        let params = CreatePayment::of(Money::paisa(minor))
            .success_url("https://a.example/ok")
            .cancel_url("https://a.example/no");
        let new = NewPayment {
            id: PaymentId::new(Slot::FIRST, now(), [1; RANDOM_BYTES]),
            developer_id: DeveloperId::new(Slot::FIRST, now(), [2; RANDOM_BYTES]),
            app_id: None,
            environment,
            checkout_url: "https://pay.example/checkout/x".into(),
            fee_rate: FeeRate::from_basis_points(basis_points).unwrap(),
            now: now(),
        };
        create(params, new).payment
    }

    fn id() -> RefundId {
        RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES])
    }

    fn paid() -> Payment {
        decide(&payment(Environment::Live, 75_000, 500), Cause::GatewayConfirmed, now()).unwrap().payment
    }

    #[test]
    fn a_refund_is_booked_when_it_is_accepted_and_settled_by_the_gateway_or_a_person() {
        for (refund, status, booked) in [
            (NewRefund::made(id()), RefundStatus::Succeeded, None),
            (NewRefund::accepted(id()), RefundStatus::Pending, Some(None)),
            (NewRefund::by_hand(id()), RefundStatus::PendingSettlement, Some(Some(BookingKind::RefundSent))),
        ] {
            let refunded = decide(&paid(), Cause::Refunded(refund), now()).unwrap();
            let refund = refunded.payment.refund().unwrap();
            assert_eq!((&refund.status, refund.fee_returned), (&status, Some(Amount::from_minor(3_750))));
            assert_eq!(refund.requires_manual_settlement, status == RefundStatus::PendingSettlement);
            assert_eq!(refund.settled_at.is_some(), status == RefundStatus::Succeeded);
            assert_eq!(refunded.booking.map(|it| it.kind), Some(BookingKind::Refunded));
            assert_eq!(refunded.event, Some(EventKind::PaymentRefunded));
            let settled = settle_refund(&refunded.payment, &id(), now()).ok();
            assert_eq!(settled.map(|it| it.booking.map(|it| it.kind)), booked);
        }
    }

    #[test]
    fn a_refund_that_fails_returns_exactly_what_it_took_and_the_payment_is_paid_again() {
        for refund in [NewRefund::made(id()), NewRefund::accepted(id())] {
            let refunded = decide(&paid(), Cause::Refunded(refund), now()).unwrap();
            let fail = |payment: &Payment| {
                decide(payment, Cause::RefundFailed { id: id(), reason: Some("lost_or_stolen_card".into()) }, now())
            };
            let failed = fail(&refunded.payment).unwrap();
            let sums: Vec<i64> = crate::LedgerAccount::ALL
                .map(|account| {
                    refunded.booking.unwrap().change_of(account) + failed.booking.unwrap().change_of(account)
                })
                .into();
            assert_eq!(sums, [0; 8]);
            assert_eq!((failed.payment.raw_status.as_str(), failed.payment.amount_left().as_minor()), ("paid", 75_000));
            assert_eq!(failed.event, Some(EventKind::PaymentRefundFailed));
            assert_eq!(failed.payment.refund().unwrap().failure_reason.as_deref(), Some("lost_or_stolen_card"));
            assert_eq!(fail(&failed.payment), Err(Refusal::NoSuchRefund));
            assert_eq!(settle_refund(&failed.payment, &id(), now()), Err(Refusal::NothingToSettle));
        }
        let by_hand = decide(&paid(), Cause::Refunded(NewRefund::by_hand(id())), now()).unwrap().payment;
        let failed = decide(&by_hand, Cause::RefundFailed { id: id(), reason: None }, now());
        assert_eq!(failed, Err(Refusal::NoSuchRefund), "no gateway has it");
    }

    #[test]
    fn only_a_completed_simulation_has_an_event() {
        let test = payment(Environment::Test, 100, 500);
        for (outcome, event) in [
            (SimulateOutcome::Completed, Some(EventKind::PaymentCompleted)),
            (SimulateOutcome::Failed, None),
            (SimulateOutcome::Cancelled, None),
        ] {
            assert_eq!(decide(&test, Cause::Simulated(outcome), now()).unwrap().event, event);
        }
        assert_eq!(decide(&test, Cause::SessionEnded, now()).unwrap().event, None);
    }

    proptest! {
        #[test]
        fn fee_and_net_add_up_and_the_balance_follows_any_transitions(
            minor in 1..=Amount::MAX.as_minor(),
            basis_points in 0..=10_000_u16,
            live in any::<bool>(),
            transitions in prop::collection::vec(0..causes().len(), 0..12),
        ) {
            let environment = if live { Environment::Live } else { Environment::Test };
            let mut payment = payment(environment, minor, basis_points);
            let mut merchant = 0;
            for index in transitions {
                let Ok(decision) = decide(&payment, causes().swap_remove(index), now()) else { continue };
                merchant += decision.booking.map_or(0, |booking| booking.change_of(crate::LedgerAccount::Merchant));
                payment = decision.payment;
                prop_assert_eq!(&payment.status, &payment.raw_status.public());
                let sum = payment.platform_fee_amount.as_minor() + payment.net_amount.as_minor();
                prop_assert_eq!(sum, payment.amount.as_minor());
                let is_refunded = payment.raw_status == RawStatus::Refunded;
                prop_assert_eq!(payment.amount_refunded() == payment.amount, is_refunded);
                if is_refunded || payment.paid_at.is_none() {
                    prop_assert_eq!(merchant, 0);
                } else if payment.amount_refunded() == Amount::ZERO {
                    prop_assert_eq!(merchant, i64::try_from(payment.net_amount.as_minor()).unwrap());
                }
            }
        }

        #[test]
        fn a_payment_round_trips(minor in 1..=Amount::MAX.as_minor(), basis_points in 0..=10_000_u16) {
            let payment = payment(Environment::Test, minor, basis_points);
            let json = serde_json::to_string(&payment).unwrap();
            let back: Payment = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), json);
            prop_assert_eq!(back, payment);
        }

        #[test]
        fn timestamps_of_a_payment_increase_despite_clock_steps(
            live in any::<bool>(),
            transitions in prop::collection::vec((0..causes().len(), -5_000..5_000_i64), 1..12),
        ) {
            let environment = if live { Environment::Live } else { Environment::Test };
            let mut payment = payment(environment, 75_000, 500);
            for (index, step) in transitions {
                let clock = Timestamp::from_millis(now().as_millis() + step).unwrap();
                let Ok(decision) = decide(&payment, causes().swap_remove(index), clock) else { continue };
                prop_assert!(decision.payment.updated_at > payment.updated_at);
                prop_assert!(decision.payment.updated_at >= clock);
                payment = decision.payment;
                let waiting = payment.refund().map(|refund| settle_refund(&payment, &refund.id, clock));
                if let Some(Ok(settled)) = waiting {
                    prop_assert!(settled.payment.updated_at > payment.updated_at);
                }
            }
        }
    }

    #[test]
    fn the_fields_of_a_payment_have_the_documented_order() {
        let json = serde_json::to_string(&payment(Environment::Test, 75_000, 500)).unwrap();
        let names: Vec<&str> = json.split('"').filter(|part| json.contains(&format!("\"{part}\":"))).collect();
        assert_eq!(
            names.join(" "),
            "id developerId appId merchantTransactionId amount currency status rawStatus environment isSimulated \
             description checkoutUrl checkout_url platformFeeAmount platform_fee feePercentage platformFeeRate \
             platform_fee_rate netAmount net_amount customerName customerEmail customerPhone customer name email phone \
             paymentMethod metadata success_url cancel_url paid_at created_at createdAt updatedAt"
        );
        assert!(json.contains(r#""platformFeeAmount":37.5,"platform_fee":37.5,"feePercentage":5,"#), "{json}");
    }
}
