//! A payment's session: the payment and the server's own state about it.

use payments_core::{
    Amount, Cause, Payment, RawStatus, Refund, RefundId, RefundStatus, Timestamp, aliased::Brief, redirect_target,
    redirect_url,
};
use serde::{Deserialize, Serialize};

use super::{
    EndedAttempt, GatewayAttempt, GatewayCost, IdempotencyKey, KnownDispute, Move, PaymentRow, RefundReference, Scope,
};

/// A payment and its checkout session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    pub version: u64,
    pub expires_at: Timestamp,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub payment: Payment,
    /// The gateway attempt of a live payment: the only one that can be paid, or the one that decided the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<GatewayAttempt>,
    /// The earlier gateway attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_attempts: Vec<EndedAttempt>,
    /// When the server next queries the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_at: Option<Timestamp>,
    /// A refund that the gateway has not confirmed yet.
    #[serde(rename = "refund_asked", default, skip_serializing_if = "Option::is_none")]
    pub pending_refund: Option<PendingRefund>,
    /// The gateway's ids of refunds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refund_references: Vec<RefundReference>,
    /// What the gateway kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<GatewayCost>,
    /// The settled rows of the gateway's statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled: Vec<PaymentRow>,
    /// When the server next asks the gateway about the payment's refunds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund_check_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settlements: Vec<ManualSettlement>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<KnownDispute>,
    /// A discrepancy. The server does not query the gateway again until a person resolves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ManualReview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
}

impl Session {
    pub fn new(payment: Payment, expires_at: Timestamp) -> Self {
        Self {
            version: 0,
            expires_at,
            payment,
            attempt: None,
            ended_attempts: Vec::new(),
            check_at: None,
            pending_refund: None,
            refund_references: Vec::new(),
            costs: Vec::new(),
            settled: Vec::new(),
            refund_check_at: None,
            settlements: Vec::new(),
            disputes: Vec::new(),
            review: None,
            moves: Vec::new(),
        }
    }

    /// A copy with the next version, to change and commit.
    pub fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    pub fn scope(&self) -> Scope {
        Scope { developer_id: self.payment.developer_id.clone(), environment: self.payment.environment }
    }

    /// The shop's URL for the returning customer, which depends on the payment's status.
    pub fn return_url(&self) -> String {
        let payment = &self.payment;
        let asked_for = self.attempt.as_ref().and_then(|attempt| attempt.paid_url.as_ref());
        match asked_for.filter(|_| payment.raw_status == RawStatus::Paid) {
            Some(address) => redirect_target(address, &payment.id, &payment.status),
            None => redirect_url(payment),
        }
    }

    /// When an open session without a gateway attempt expires. With an attempt, the gateway's answer decides instead.
    pub fn unattempted_expiry(&self) -> Option<Timestamp> {
        (self.payment.raw_status.is_open() && self.attempt.is_none()).then_some(self.expires_at)
    }

    /// The present attempt, or else the last one that ended.
    pub fn last_attempt(&self) -> Option<&GatewayAttempt> {
        self.attempt.as_ref().or(self.ended_attempts.last().map(|ended| &ended.attempt))
    }

    /// Why an open session ends when it expires without a gateway attempt: the last attempt failed, or there was none.
    pub fn cause_of_end(&self) -> Cause {
        if self.ended_attempts.is_empty() { Cause::SessionEnded } else { Cause::GatewayFailed }
    }

    /// What the refund that the server asks the gateway for will take from the merchant, in minor units.
    pub fn refund_under_way(&self) -> Option<i128> {
        let pending = self.pending_refund.as_ref()?;
        let amount = pending.amount.unwrap_or(self.payment.amount_not_refunded());
        let fee = payments_core::ledger::fee_returned_with(&self.payment, amount);
        Some(i128::from(amount.as_minor()) - i128::from(fee.as_minor()))
    }

    /// The refunds that need manual settlement, oldest first.
    pub fn unsettled_refunds(&self) -> impl Iterator<Item = &Refund> {
        self.payment.refunds.iter().filter(|refund| refund.status == RefundStatus::PendingSettlement)
    }

    pub fn needs_manual_settlement(&self) -> bool {
        self.unsettled_refunds().next().is_some()
    }

    /// A copy with the next version and without the pending refund, whose outcome is known.
    pub fn after_refund(&self, now: Timestamp) -> Self {
        let mut next = Self { pending_refund: None, check_at: None, ..self.next() };
        let silence = self.pending_refund.as_ref().map(PendingRefund::silence);
        if let Some(review) =
            next.review.as_mut().filter(|it| it.resolved.is_none() && Some(&it.what) == silence.as_ref())
        {
            review.resolved = Some(Resolution { note: "the gateway has answered".to_owned(), resolved_at: now });
        }
        next
    }

    /// Whether a person must resolve a discrepancy.
    pub fn needs_manual_review(&self) -> bool {
        self.attempt.is_some() && self.review.as_ref().is_some_and(|review| review.resolved.is_none())
    }
}

/// A refund that the server requests from a gateway. The server stores it first, so a crash does not lose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRefund {
    /// The refund's id, and its idempotency key at the gateway.
    pub id: RefundId,
    /// The amount to refund; `None` for all that is not refunded. That does not change meanwhile, since a payment has one
    /// pending refund at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
    pub reason: Option<String>,
    /// The idempotency key and the fingerprint of the merchant's request, to store its response.
    pub request: Option<(IdempotencyKey, String)>,
    /// Requests to the gateway that got no answer, for the backoff.
    pub tries: u32,
    /// Whether none of them has reached the gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsent: bool,
    /// Our reference for it at the gateway, if that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// How long and how often the server requests a pending refund before a person must ask the gateway too.
const SILENCE_MILLIS: i64 = 24 * 60 * 60 * 1000;
const SILENCE_TRIES: u32 = 12;

impl PendingRefund {
    /// Whether the refund's outcome has been unknown for so long that a person must ask the gateway.
    pub fn is_for_a_person(&self, now: Timestamp) -> bool {
        let age = self.id.created_at().map_or(0, |at| now.as_millis() - at.as_millis());
        self.tries >= SILENCE_TRIES && age >= SILENCE_MILLIS
    }

    /// The message for this person.
    pub fn silence(&self) -> String {
        format!(
            "the gateway has not said for a day whether it made refund {}: look for it there, and resolve this as refunded or \
             as not-refunded",
            self.id
        )
    }
}

/// A refund that a person sent by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualSettlement {
    pub refund: RefundId,
    pub reference: String,
    pub settled_at: Timestamp,
}

/// A discrepancy that a person must resolve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualReview {
    /// What the gateway says, and what the server expected.
    pub what: String,
    pub found_at: Timestamp,
    /// How a person resolved it.
    pub resolved: Option<Resolution>,
}

/// How a person resolved a discrepancy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    pub note: String,
    pub resolved_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{new_session, samples::attempt};
    #[test]
    fn after_payment_the_customer_returns_to_the_address_that_the_pay_request_named() {
        let mut session = new_session();
        let id = session.payment.id.clone();
        session.payment.cancel_url = "https://shop.example/cart".into();
        session.payment.success_url = "https://shop.example/thanks".into();
        assert_eq!(session.return_url(), format!("https://shop.example/cart?payment_id={id}&status=pending"));
        let paid_url = Some("https://shop.example/order?n=7".into());
        session.attempt = Some(GatewayAttempt { paid_url, ..attempt("a") });
        assert!(session.return_url().starts_with("https://shop.example/cart?"));
        (session.payment.raw_status, session.payment.status) = (RawStatus::Paid, payments_core::Status::Completed);
        assert_eq!(session.return_url(), format!("https://shop.example/order?n=7&payment_id={id}&status=completed"));
        session.attempt = None;
        assert_eq!(session.return_url(), format!("https://shop.example/thanks?payment_id={id}&status=completed"));
    }

    #[test]
    fn a_payment_needs_manual_settlement_while_one_of_its_refunds_is_not_settled() {
        let mut session = new_session();
        assert!(!session.needs_manual_settlement());
        let refund = |id: &str, status: &str| {
            serde_json::json!({"id": id, "amount": 20, "currency": "BDT", "reason": null, "status": status,
                "requiresManualSettlement": true, "createdAt": "2026-03-01T03:30:00.000Z", "settledAt": null})
        };
        for (statuses, unsettled) in [
            (["succeeded", "pending_settlement"], vec!["ref_2"]),
            (["pending_settlement", "pending_settlement"], vec!["ref_1", "ref_2"]),
            (["succeeded", "succeeded"], vec![]),
        ] {
            let refunds = [refund("ref_1", statuses[0]), refund("ref_2", statuses[1])];
            session.payment.refunds = serde_json::from_value(refunds.into()).unwrap();
            let found: Vec<&str> = session.unsettled_refunds().map(|it| it.id.as_str()).collect();
            assert_eq!((&found, session.needs_manual_settlement()), (&unsettled, !unsettled.is_empty()));
        }
    }
}
