//! What can happen to a paid test payment in the simulator: what a bank, a customer or a person in a gateway's
//! dashboard can do to a live payment.

use serde::Serialize;

use crate::{
    Amount, Cause, Decision, Dispute, DisputeId, DisputeReport, DisputeStatus, ErrorCode, Invalid, NewRefund, Payment,
    RefundId, RefundSource, Refusal, Timestamp, create_payment, decide, decide_dispute, open_enum::open_enum,
    validation::Fields,
};

open_enum! {
    /// What happens to a paid test payment.
    pub enum SimulatedEvent {
        /// Somebody refunds it in the gateway's dashboard: the amount, or all that is left.
        Refunded = "refunded",
        /// The bank sends the newest refund back.
        RefundFailed = "refund_failed",
        /// The bank inquires about the amount, or all that is left. No money moves.
        Inquired = "inquired",
        /// The customer disputes the amount, or all that is left, and the gateway withdraws it. An open inquiry becomes this
        /// dispute.
        Disputed = "disputed",
        /// The bank decides the open dispute for the merchant, and the gateway reinstates the money.
        DisputeWon = "dispute_won",
        /// The bank decides the open dispute for the customer.
        DisputeLost = "dispute_lost",
    }
}

/// The parameters of a simulation of what happens to a paid test payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimulatePayment {
    /// What happens.
    pub event: SimulatedEvent,
    /// How much is refunded or disputed. Default: what is left of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
}

impl SimulatePayment {
    /// Simulates this event.
    #[must_use]
    pub fn event(event: SimulatedEvent) -> Self {
        Self { event, amount: None }
    }

    /// Sets the amount.
    #[must_use]
    pub fn amount(self, amount: Amount) -> Self {
        Self { amount: Some(amount), ..self }
    }

    /// Parses a request body with `event` and the optional `amount`.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_unknown();
        let amount = fields.has("amount").then(|| create_payment::amount(&mut fields));
        let word = fields.raw("event").and_then(|json| serde_json::from_str::<String>(json).ok());
        let event = match word.as_deref().and_then(SimulatedEvent::known) {
            Some(event) => event,
            None => {
                let known: Vec<_> = SimulatedEvent::KNOWN.iter().map(SimulatedEvent::as_str).collect();
                let error = format!("must be one of {}", known.join(", "));
                let is_missing = fields.raw("event").is_none();
                let code = if is_missing { ErrorCode::FieldMissing } else { ErrorCode::FieldInvalid };
                fields.error("event", code, error, SimulatedEvent::Refunded)
            }
        };
        let takes_amount =
            matches!(event, SimulatedEvent::Refunded | SimulatedEvent::Inquired | SimulatedEvent::Disputed);
        if amount.is_some() && !takes_amount {
            fields.error("amount", ErrorCode::FieldInvalid, format!("does not belong to {event}"), ());
        }
        fields.finish(Self { event, amount })
    }

    /// What it does to a test payment. A new refund has the id `refund`, a new dispute the id `dispute`.
    ///
    /// # Errors
    /// [`Refusal`] if the payment is live or its state does not allow it.
    pub fn decide(
        &self,
        payment: &Payment,
        refund: RefundId,
        dispute: DisputeId,
        now: Timestamp,
    ) -> Result<Decision, Refusal> {
        if !payment.is_simulated {
            return Err(Refusal::LiveSimulation);
        }
        let cause = match &self.event {
            SimulatedEvent::RefundFailed => {
                let newest = payment.refunds.iter().rev().find(|refund| refund.stands());
                let id = newest.ok_or(Refusal::NoRefundStands)?.id.clone();
                Cause::RefundFailed { id, reason: Some("The simulator sent it back".to_owned()) }
            }
            SimulatedEvent::Inquired | SimulatedEvent::Disputed => {
                return self.report(payment, self.opened(payment, dispute), now);
            }
            SimulatedEvent::DisputeWon | SimulatedEvent::DisputeLost => {
                let open = newest(payment, |status| !status.is_closed()).ok_or(Refusal::NoOpenDispute)?;
                return self.report(payment, self.closed(open), now);
            }
            _ => {
                let made = NewRefund { source: Some(RefundSource::Gateway), ..NewRefund::made(refund) };
                made.cause(payment, Some(self.amount.unwrap_or(payment.amount_left())))?
            }
        };
        decide(payment, cause, now)
    }

    fn report(&self, payment: &Payment, report: DisputeReport, now: Timestamp) -> Result<Decision, Refusal> {
        decide_dispute(payment, &report, now)?.ok_or(Refusal::NoOpenDispute)
    }

    /// An inquiry, or a dispute whose money is withdrawn: a new one, or what becomes of an open inquiry.
    fn opened(&self, payment: &Payment, id: DisputeId) -> DisputeReport {
        let amount = self.amount.unwrap_or(payment.amount_left());
        let new = DisputeReport {
            id,
            amount,
            reason: Some("Simulated: the customer does not recognise it".to_owned()),
            status: DisputeStatus::Warning,
            evidence_due_by: Some(payment.updated_at.plus_seconds(RESPONSE_SECONDS)),
            withdrawn: Amount::ZERO,
            reinstated: Amount::ZERO,
            returns_fee: false,
        };
        if self.event == SimulatedEvent::Inquired {
            return new;
        }
        let inquiry = newest(payment, |status| *status == DisputeStatus::Warning).map(DisputeReport::of);
        let of = inquiry.unwrap_or(new);
        let amount = self.amount.unwrap_or(of.amount);
        DisputeReport { amount, status: DisputeStatus::NeedsResponse, withdrawn: amount, ..of }
    }

    /// The end of an open dispute. An inquiry ends without one.
    fn closed(&self, dispute: &Dispute) -> DisputeReport {
        let of = DisputeReport::of(dispute);
        match self.event {
            SimulatedEvent::DisputeLost if dispute.status != DisputeStatus::Warning => {
                DisputeReport { status: DisputeStatus::Lost, ..of }
            }
            _ => DisputeReport { status: DisputeStatus::Won, reinstated: of.withdrawn, ..of },
        }
    }
}

/// How long a merchant may send evidence of a simulated dispute.
const RESPONSE_SECONDS: u32 = 14 * 24 * 60 * 60;

/// The newest dispute of a status.
fn newest(payment: &Payment, is_of: impl Fn(&DisputeStatus) -> bool) -> Option<&Dispute> {
    payment.disputes.iter().rev().find(|dispute| is_of(&dispute.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, RANDOM_BYTES, RawStatus, SimulateOutcome, Slot, decide::tests::payment};

    fn at(seconds: u32) -> Timestamp {
        Timestamp::from_millis(0).unwrap().plus_seconds(seconds)
    }

    fn paid(environment: Environment) -> Payment {
        let cause = match environment {
            Environment::Test => Cause::Simulated(SimulateOutcome::Completed),
            Environment::Live | Environment::Other(_) => Cause::GatewayConfirmed,
        };
        decide(&payment(environment, 10_000, 500), cause, at(1)).unwrap().payment
    }

    /// Applies an event such as `disputed 40`.
    fn apply(payment: &Payment, event: &str, nth: u8) -> Result<Payment, Refusal> {
        let (event, amount) = event.split_once(' ').map_or((event, None), |(event, amount)| (event, Some(amount)));
        let simulation = SimulatePayment { event: event.into(), amount: amount.map(|amount| amount.parse().unwrap()) };
        let refund = RefundId::new(Slot::FIRST, at(2), [nth; RANDOM_BYTES]);
        let dispute = DisputeId::new(Slot::FIRST, at(2), [nth; RANDOM_BYTES]);
        simulation.decide(payment, refund, dispute, at(2)).map(|decision| decision.payment)
    }

    #[test]
    fn each_story_of_a_test_payment_ends_as_with_a_gateway() {
        for (story, status, left, of_dispute) in [
            (&["refunded 30"][..], RawStatus::Paid, "70", None),
            (&["refunded 30", "refunded"], RawStatus::Refunded, "0", None),
            (&["refunded", "refund_failed"], RawStatus::Paid, "100", None),
            (&["refunded 30", "refunded 20", "refund_failed"], RawStatus::Paid, "70", None),
            (&["inquired"], RawStatus::Paid, "100", Some(("warning", "0"))),
            (&["inquired", "dispute_lost"], RawStatus::Paid, "100", Some(("won", "0"))),
            (&["inquired 40", "disputed"], RawStatus::Paid, "60", Some(("needs_response", "40"))),
            (&["disputed 40"], RawStatus::Paid, "60", Some(("needs_response", "40"))),
            (&["disputed", "dispute_won"], RawStatus::Paid, "100", Some(("won", "0"))),
            (&["refunded 30", "disputed", "dispute_lost"], RawStatus::Paid, "0", Some(("lost", "70"))),
        ] {
            let mut payment = paid(Environment::Test);
            for (nth, event) in (1..).zip(story) {
                payment = apply(&payment, event, nth).unwrap_or_else(|refusal| panic!("{story:?}: {refusal}"));
            }
            assert_eq!((&payment.raw_status, payment.amount_left().to_string().as_str()), (&status, left), "{story:?}");
            let dispute = payment.dispute().map(|it| (it.status.as_str().to_owned(), it.amount_taken().to_string()));
            let expected = of_dispute.map(|(status, taken)| (status.to_owned(), taken.to_owned()));
            assert_eq!((dispute, payment.disputes.len() <= 1), (expected, true), "{story:?}");
        }
    }

    #[test]
    fn what_cannot_happen_is_refused() {
        let test = paid(Environment::Test);
        for (payment, event, refusal) in [
            (paid(Environment::Live), "refunded", Refusal::LiveSimulation),
            (test.clone(), "refund_failed", Refusal::NoRefundStands),
            (test.clone(), "dispute_won", Refusal::NoOpenDispute),
            (apply(&test, "inquired", 1).unwrap(), "refund_failed", Refusal::NoRefundStands),
            (test.clone(), "refunded 101", Refusal::MoreThanIsLeft { left: test.amount }),
            (test, "disputed 101", Refusal::DisputeContradicts),
        ] {
            assert_eq!(apply(&payment, event, 9).unwrap_err(), refusal, "{event}");
        }
    }

    #[test]
    fn a_body_names_a_known_event_and_an_amount_only_where_it_has_one() {
        let parse = |body: &str| SimulatePayment::from_json(body.as_bytes());
        let disputed = SimulatePayment::event(SimulatedEvent::Disputed);
        assert_eq!(parse(r#"{"event": "disputed"}"#).unwrap(), disputed);
        assert_eq!(
            parse(r#"{"event": "disputed", "amount": 40.5}"#).unwrap(),
            disputed.amount(Amount::from_minor(4_050))
        );
        for body in [
            "",
            "{}",
            r#"{"event": "explode"}"#,
            r#"{"event": 5}"#,
            r#"{"event": "disputed", "amount": null}"#,
            r#"{"event": "disputed", "amount": -1}"#,
            r#"{"event": "dispute_won", "amount": 5}"#,
            r#"{"event": "disputed", "ammount": 5}"#,
        ] {
            assert!(parse(body).is_err(), "{body}");
        }
        let code = |body| parse(body).unwrap_err().code();
        let codes = [code("{}"), code(r#"{"event": "explode"}"#)];
        assert_eq!(codes, [ErrorCode::FieldMissing, ErrorCode::FieldInvalid]);
    }
}
