//! A payment's session: the payment, and what the server knows beside it.

use payments_core::{
    Payment, RawStatus, RefundId, RefundStatus, Timestamp, aliased::Brief, redirect_target, redirect_url,
};
use serde::{Deserialize, Serialize};

use super::{IdempotencyKey, Scope};

/// A payment and what the server knows of its checkout session beyond it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    /// How often the payment has changed: a change is made only to the version it was decided on.
    pub(crate) version: u64,
    /// When the session's life ends.
    pub(crate) expires_at: Timestamp,
    #[serde(serialize_with = "Brief::serialize_brief")]
    pub(crate) payment: Payment,
    /// Where the customer of a live payment was sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<Attempt>,
    /// When the gateway is to be asked next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_at: Option<Timestamp>,
    /// A refund that the gateway has not yet been heard to have made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refund_asked: Option<RefundAsked>,
    /// How a refund that is made by hand was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settlement: Option<Settlement>,
    /// What a person must look at before the gateway is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<Review>,
}

impl Session {
    /// The session of a new payment.
    pub(crate) fn new(payment: Payment, expires_at: Timestamp) -> Self {
        Self {
            version: 0,
            expires_at,
            payment,
            attempt: None,
            check_at: None,
            refund_asked: None,
            settlement: None,
            review: None,
        }
    }

    /// The session after one more change.
    pub(crate) fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { developer_id: self.payment.developer_id.clone(), environment: self.payment.environment }
    }

    /// Where the shop wants its customer, as the payment stands.
    pub(crate) fn way_back(&self) -> String {
        let payment = &self.payment;
        let asked_for = self.attempt.as_ref().and_then(|attempt| attempt.paid_url.as_ref());
        match asked_for.filter(|_| payment.raw_status == RawStatus::Paid) {
            Some(address) => redirect_target(address, &payment.id, &payment.status),
            None => redirect_url(payment),
        }
    }

    /// When it expires by itself: while it is open and was sent to no gateway. After that the gateway's answer ends it, and
    /// `check_at` says when to ask.
    pub(crate) fn expires_by_itself_at(&self) -> Option<Timestamp> {
        (self.payment.raw_status.is_open() && self.attempt.is_none()).then_some(self.expires_at)
    }

    /// Whether a person must send the refund's money by hand.
    pub(crate) fn needs_manual_settlement(&self) -> bool {
        let refund = self.payment.refund.as_ref();
        self.payment.raw_status == RawStatus::Refunded
            && refund.is_some_and(|refund| refund.status == RefundStatus::PendingSettlement)
    }

    /// Whether a person must decide about what the gateway says.
    pub(crate) fn needs_manual_review(&self) -> bool {
        self.attempt.is_some() && self.review.as_ref().is_some_and(|review| review.resolved.is_none())
    }
}

/// Which gateway an attempt was made at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatewayName {
    Sandbox,
    Bkash,
    Stripe,
}

impl GatewayName {
    /// As it stands in addresses, logs and figures.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Bkash => "bkash",
            Self::Stripe => "stripe",
        }
    }

    /// As people know it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Sandbox => "the simulator",
            Self::Bkash => "bKash",
            Self::Stripe => "Stripe",
        }
    }
}

/// A live payment's attempt at a gateway: the one that its customer was sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) gateway: GatewayName,
    /// Our name for the attempt, at the gateway: unique among all attempts.
    pub(crate) invoice: String,
    /// The gateway's name for it.
    pub(crate) external_id: String,
    /// Where the customer pays.
    pub(crate) customer_url: String,
    /// When the gateway was last told to take the money. Written before it is told.
    pub(crate) taken_at: Option<Timestamp>,
    /// The gateway's name for the movement of money, once there was one.
    pub(crate) transaction: Option<String>,
    /// Where the customer goes after paying, instead of the payment's success URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paid_url: Option<String>,
}

/// A refund on its way to a gateway. It is kept before the gateway is asked, so that no crash forgets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefundAsked {
    /// The refund's id, and its idempotency key at the gateway.
    pub(crate) id: RefundId,
    pub(crate) reason: Option<String>,
    /// The merchant's idempotency key and the fingerprint of its request, whose answer is kept once there is one.
    pub(crate) request: Option<(IdempotencyKey, String)>,
    pub(crate) tries: u32,
}

/// How a person sent a refund's money back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settlement {
    /// What the movement is called where it was made.
    pub(crate) reference: String,
    pub(crate) settled_at: Timestamp,
}

/// What cannot be decided without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Review {
    /// What the gateway says, and what was expected.
    pub(crate) what: String,
    pub(crate) found_at: Timestamp,
    /// How a person decided it.
    pub(crate) resolved: Option<Resolution>,
}

/// What a person decided, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) note: String,
    pub(crate) resolved_at: Timestamp,
}
