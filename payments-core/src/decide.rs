//! Creates payments and applies state transitions to them, with their ledger postings and events.

use crate::{
    Amount, AppId, Cause, CreatePayment, Currency, DeveloperId, Environment, EventKind, FeeRate, Payment, PaymentId,
    PaymentMethod, Posting, RawStatus, Refund, RefundId, RefundStatus, Refunds, Refusal, SimulateOutcome, Timestamp,
    aliased::UnknownFields, ledger, transition,
};

/// The result of a transition. Commit all of it in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The payment after the transition.
    pub payment: Payment,
    /// The ledger postings; they sum to zero.
    pub postings: Vec<Posting>,
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
        paid_at: None,
        created_at: new.now,
        updated_at: new.now,
        unknown: UnknownFields::default(),
    };
    Decision { payment, postings: Vec::new(), event: Some(EventKind::PaymentCreated) }
}

/// Applies a state transition to a payment, at `now`, but at least one millisecond after its last transition.
///
/// So a payment's timestamps strictly increase, even within one millisecond or after a clock step. Ids of events and
/// deliveries begin with these timestamps, so they sort in the order of the transitions.
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
    let (postings, event) = match cause {
        Cause::GatewayConfirmed | Cause::Simulated(SimulateOutcome::Completed) => {
            moved.paid_at = Some(now);
            if matches!(cause, Cause::Simulated(_)) {
                moved.payment_method = Some(PaymentMethod::Test);
            }
            (ledger::of_completion(&moved), Some(EventKind::PaymentCompleted))
        }
        Cause::PartRefunded { amount, .. } if amount == Amount::ZERO || amount >= payment.amount_left() => {
            return Err(Refusal::MoreThanIsLeft { left: payment.amount_left() });
        }
        Cause::PartRefunded { id, amount, reason } => {
            moved.refunds.push(refund(payment, id, amount, reason, now));
            (ledger::of_refund(&moved, moved.refunds.len() - 1), Some(EventKind::PaymentPartiallyRefunded))
        }
        Cause::Refunded { id, reason } => {
            moved.refunds.push(refund(payment, id, payment.amount_left(), reason, now));
            (ledger::of_refund(&moved, moved.refunds.len() - 1), Some(EventKind::PaymentRefunded))
        }
        Cause::SentToGateway(method) => {
            moved.payment_method = Some(method);
            (Vec::new(), None)
        }
        Cause::GatewayFailed
        | Cause::AttemptFailed
        | Cause::GatewayCancelled
        | Cause::CustomerLeft
        | Cause::Simulated(_)
        | Cause::SessionEnded => (Vec::new(), None),
    };
    Ok(Decision { payment: moved, postings, event })
}

/// Records the manual settlement of a refund. The payment keeps its status; the refund has already made the ledger
/// postings. Timestamps increase as in [`decide`].
///
/// # Errors
/// [`Refusal::NothingToSettle`] if the payment has no such refund, or it does not wait for manual settlement.
pub fn settle_refund(payment: &Payment, id: &RefundId, now: Timestamp) -> Result<Payment, Refusal> {
    let now = now.max(payment.updated_at.plus_millis(1));
    let mut settled = payment.clone();
    match settled.refunds.find_mut(id) {
        Some(refund) if refund.status == RefundStatus::PendingSettlement => {
            refund.status = RefundStatus::Succeeded;
            refund.settled_at = Some(now);
        }
        _ => return Err(Refusal::NothingToSettle),
    }
    settled.updated_at = now;
    Ok(settled)
}

/// BDT needs manual settlement, because mobile financial services cannot refund (API specification, "Refund").
fn refund(payment: &Payment, id: RefundId, amount: Amount, reason: Option<String>, now: Timestamp) -> Refund {
    let is_manual = payment.currency == Currency::Bdt;
    Refund {
        id,
        amount,
        currency: payment.currency,
        reason,
        status: if is_manual { RefundStatus::PendingSettlement } else { RefundStatus::Succeeded },
        requires_manual_settlement: is_manual,
        created_at: now,
        settled_at: (!is_manual).then_some(now),
        unknown: UnknownFields::default(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Money, RANDOM_BYTES, Slot, transition::tests::causes};

    fn now() -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).unwrap()
    }

    fn payment(environment: Environment, minor: u64, basis_points: u16) -> Payment {
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

    #[test]
    fn a_bdt_refund_needs_manual_settlement_and_a_card_refund_does_not() {
        for (currency, is_manual) in [(Currency::Bdt, true), (Currency::Usd, false)] {
            let mut payment = payment(Environment::Live, 100, 500);
            payment.currency = currency;
            let paid = decide(&payment, Cause::GatewayConfirmed, now()).unwrap().payment;
            let cause = Cause::Refunded {
                id: RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES]),
                reason: Some("damaged".into()),
            };
            let refunded = decide(&paid, cause, now()).unwrap();
            let refund = refunded.payment.refund().unwrap();
            assert_eq!(refund.requires_manual_settlement, is_manual);
            assert_eq!(
                refund.status,
                if is_manual { RefundStatus::PendingSettlement } else { RefundStatus::Succeeded }
            );
            assert_eq!(refund.settled_at.is_none(), is_manual);
            assert_eq!(refunded.event, Some(EventKind::PaymentRefunded));
        }
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
        fn fee_and_net_add_up_and_postings_sum_to_zero_after_any_transitions(
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
                prop_assert_eq!(decision.postings.iter().map(|posting| posting.minor).sum::<i64>(), 0);
                merchant += decision
                    .postings
                    .iter()
                    .filter(|posting| posting.account == crate::LedgerAccount::Merchant)
                    .map(|posting| posting.minor)
                    .sum::<i64>();
                payment = decision.payment;
                prop_assert_eq!(&payment.status, &payment.raw_status.public());
                let sum = payment.platform_fee_amount.as_minor() + payment.net_amount.as_minor();
                prop_assert_eq!(sum, payment.amount.as_minor());
                let is_refunded = payment.raw_status == RawStatus::Refunded;
                prop_assert_eq!(payment.amount_refunded() == payment.amount, is_refunded);
                if is_refunded || payment.paid_at.is_none() {
                    prop_assert_eq!(merchant, 0);
                } else if payment.refunds.is_empty() {
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
                    prop_assert!(settled.updated_at > payment.updated_at);
                }
            }
        }
    }

    #[test]
    fn a_manual_refund_settles_once() {
        let paid = |currency| {
            let mut payment = payment(Environment::Live, 75_000, 500);
            payment.currency = currency;
            decide(&payment, Cause::GatewayConfirmed, now()).unwrap().payment
        };
        let cause = || Cause::Refunded { id: RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES]), reason: None };
        let settle =
            |payment: &Payment| settle_refund(payment, &RefundId::new(Slot::FIRST, now(), [3; RANDOM_BYTES]), now());
        assert_eq!(settle(&paid(Currency::Bdt)), Err(Refusal::NothingToSettle));

        let refunded = decide(&paid(Currency::Bdt), cause(), now()).unwrap().payment;
        let settled = settle(&refunded).unwrap();
        assert_eq!(settled.raw_status, RawStatus::Refunded);
        let refund = settled.refund().unwrap();
        assert_eq!((&refund.status, refund.settled_at), (&RefundStatus::Succeeded, Some(settled.updated_at)));
        assert_eq!(settle(&settled), Err(Refusal::NothingToSettle));

        // The card processor refunds the customer itself.
        let refunded = decide(&paid(Currency::Usd), cause(), now()).unwrap().payment;
        assert_eq!(settle(&refunded), Err(Refusal::NothingToSettle));
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
