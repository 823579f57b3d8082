//! Events for a developer to test an endpoint with: a ping, or an example of any other kind. No payment and no payout stands
//! behind them.

use payments_core::{
    Amount, Balance, Cause, CreatePayment, CreateRefund, Currency, DestinationKind, DisputeId, DisputeReport,
    DisputeStatus, Environment, EventKind, Metadata, Money, NewPayment, NewPayout, NewRefund, Payment, PaymentId,
    PaymentMethod, Payout, PayoutDestination, PayoutId, PayoutStep, RawJson, RefundId, UnknownFields, decide_payout,
    request_payout,
};
use serde_json::json;

use super::{Caller, Result, Service, error::NO_PAYMENT, payments::EventData};

impl Service {
    pub(super) fn test_data(&self, kind: &EventKind, caller: &Caller) -> Result<RawJson> {
        if *kind == EventKind::TestPing {
            return Ok(RawJson::of(&json!({
                "event": kind,
                "timestamp": self.ambient.now(),
                "developer_id": caller.scope.developer_id,
                "message": "This is a test of your webhook endpoint.",
            }))?);
        }
        if let Some(payout) = self.example_payout(kind, caller)? {
            return Ok(RawJson::of(&payout)?);
        }
        let payment = self.example_of(kind, caller)?;
        let body = RawJson::of(&payment)?;
        let form = match payment.refund() {
            Some(refund) => EventData::Refund { reason: refund.reason.clone() },
            None => EventData::Payment,
        };
        Ok(form.of(kind, &payment, &body)?)
    }

    /// An example payout at an event of this kind, if it is one of payouts.
    fn example_payout(&self, kind: &EventKind, caller: &Caller) -> Result<Option<Payout>> {
        let reason = || "An example: the bank knows no such account".to_owned();
        let paid = || PayoutStep::Paid { reference: "EXAMPLE-1".to_owned() };
        let steps = match kind {
            EventKind::PayoutCreated => vec![],
            EventKind::PayoutApproved => vec![PayoutStep::Approved],
            EventKind::PayoutPaid => vec![PayoutStep::Approved, PayoutStep::Sent, paid()],
            EventKind::PayoutFailed => {
                vec![PayoutStep::Approved, PayoutStep::Sent, PayoutStep::Failed { reason: reason() }]
            }
            EventKind::PayoutCancelled => vec![PayoutStep::Cancelled { reason: None }],
            EventKind::PayoutReturned => {
                vec![PayoutStep::Approved, PayoutStep::Sent, paid(), PayoutStep::Returned { reason: reason() }]
            }
            _ => return Ok(None),
        };
        let (now, amount) = (self.ambient.now(), Amount::from_minor(71_250));
        let new = NewPayout {
            id: PayoutId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes()),
            environment: Environment::Test,
            currency: Currency::Bdt,
            destination: PayoutDestination {
                kind: DestinationKind::BankAccount,
                holder: "An example: Karim Stores".to_owned(),
                institution: "010271234".to_owned(),
                last4: "0123".to_owned(),
                created_at: now,
                unknown: UnknownFields::new(),
            },
            opening_balance: Balance::default(),
            balance: Balance::from_minor(amount.as_minor().into()),
            now,
        };
        let mut payout = request_payout(Some(amount), amount, new)?.payout;
        for step in steps {
            payout = decide_payout(&payout, step, now)?.payout;
        }
        Ok(Some(payout))
    }

    /// An example payment at an event of this kind. It makes a live payment's transitions but reads as a test payment.
    fn example_of(&self, kind: &EventKind, caller: &Caller) -> Result<Payment> {
        let now = self.ambient.now();
        let id: PaymentId =
            format!("test_{}", PaymentId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes()))
                .parse()
                .map_err(|_| NO_PAYMENT)?;
        let mut params = CreatePayment::of(Money::taka(750))
            .success_url("https://shop.example/paid")
            .cancel_url("https://shop.example/cart");
        params.description = Some("An example: two cups".to_owned());
        params.metadata = Metadata::new(r#"{"test":true}"#).ok();
        let new = NewPayment { environment: Environment::Live, ..self.new_payment(caller, id, now) };
        let mut payment = payments_core::create(params, new).payment;
        if *kind != EventKind::PaymentCreated {
            payment = payments_core::decide(&payment, Cause::GatewayConfirmed, now)?.payment;
            payment.payment_method = Some(PaymentMethod::Test);
        }
        let refund = match kind {
            EventKind::PaymentPartiallyRefunded => Some(CreateRefund::part(Amount::from_minor(25_000))),
            EventKind::PaymentRefunded | EventKind::PaymentRefundFailed => Some(CreateRefund::rest()),
            _ => None,
        };
        if let Some(refund) = refund {
            let id = RefundId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes());
            let cause = refund.reason("An example: a cup broke").cause(&payment, NewRefund::made(id))?;
            payment = payments_core::decide(&payment, cause, now)?.payment;
        }
        if let Some(refund) = payment.refund().filter(|_| *kind == EventKind::PaymentRefundFailed) {
            let reason = Some("An example: the card is lost".to_owned());
            let failed = Cause::RefundFailed { id: refund.id.clone(), reason };
            payment = payments_core::decide(&payment, failed, now)?.payment;
        }
        let dispute = match kind {
            EventKind::PaymentDisputed => Some(DisputeStatus::NeedsResponse),
            EventKind::PaymentDisputeClosed => Some(DisputeStatus::Lost),
            _ => None,
        };
        if let Some(status) = dispute {
            let report = DisputeReport {
                id: DisputeId::new(caller.scope.developer_id.slot(), now, self.ambient.id_bytes()),
                amount: payment.amount,
                reason: Some("An example: the parcel never came".to_owned()),
                status,
                evidence_due_by: Some(now.plus_seconds(7 * 24 * 60 * 60)),
                withdrawn: payment.amount,
                reinstated: Amount::ZERO,
                returns_fee: false,
            };
            while let Some(decision) = payments_core::decide_dispute(&payment, &report, now)? {
                payment = decision.payment;
            }
        }
        Ok(Payment { environment: Environment::Test, is_simulated: true, ..payment })
    }
}
