//! The refunds of a payment.

use serde::Serialize;

use crate::{
    Amount, Cause, Currency, ErrorCode, Payment, RawStatus, RefundId, Refusal, Timestamp,
    aliased::aliased_resource,
    create_payment,
    one_or_many::one_or_many,
    open_enum::open_enum,
    validation::{Fields, Invalid},
};

aliased_resource! {
    /// A refund of a payment or of a part of it (API specification, "Refund").
    #[derive(Debug)]
    pub struct Refund {
        /// The refund's id.
        id: RefundId = "id",
        /// The refunded amount.
        amount: Amount = "amount",
        /// The payment's currency.
        currency: Currency = "currency",
        /// The merchant's reason.
        reason: Option<String> = "reason",
        /// The refund's status.
        status: RefundStatus = "status",
        /// Where it was made, if not by the API.
        source: Option<RefundSource> = "source" (omitted if None),
        /// The part of the platform's fee that it returned to the merchant.
        fee_returned: Option<Amount> = "feeReturned" (omitted if None),
        /// Whether the operator must send the money by hand: true for BDT, paid through mobile financial services.
        requires_manual_settlement: bool = "requiresManualSettlement",
        /// When the refund was requested.
        created_at: Timestamp = "createdAt",
        /// When the refund was settled.
        settled_at: Option<Timestamp> = "settledAt",
        /// When it failed.
        failed_at: Option<Timestamp> = "failedAt" (omitted if None),
        /// Why it failed, in the gateway's words.
        failure_reason: Option<String> = "failureReason" (omitted if None),
    }
}

impl Refund {
    /// Whether it counts: it has not failed.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.status != RefundStatus::Failed
    }

    /// Whether the gateway sends its money.
    #[must_use]
    pub fn is_by_gateway(&self) -> bool {
        !self.requires_manual_settlement
    }
}

/// A refund before it has an amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRefund {
    /// Its new id.
    pub id: RefundId,
    /// The merchant's reason.
    pub reason: Option<String>,
    /// How far it has come.
    pub status: RefundStatus,
    /// Where it was made, if not by the API.
    pub source: Option<RefundSource>,
}

impl NewRefund {
    /// A refund that the gateway has made.
    #[must_use]
    pub fn made(id: RefundId) -> Self {
        Self { id, reason: None, status: RefundStatus::Succeeded, source: None }
    }

    /// A refund that the gateway has accepted and makes later.
    #[must_use]
    pub fn accepted(id: RefundId) -> Self {
        Self { status: RefundStatus::Pending, ..Self::made(id) }
    }

    /// The cause of this refund once it is a fact, whatever disputes hold: a refund of `amount`, or of all that is not
    /// refunded.
    ///
    /// # Errors
    /// [`Refusal::MoreThanIsLeft`] if less than the amount is not refunded, and [`Refusal::NoMoreRefunds`] if the payment has as
    /// many refunds as it may have.
    pub fn cause(self, payment: &Payment, amount: Option<Amount>) -> Result<Cause, Refusal> {
        let left = payment.amount_not_refunded();
        match amount.unwrap_or(left) {
            // `transition` refuses it.
            _ if payment.raw_status != RawStatus::Paid => Ok(Cause::Refunded(self)),
            amount if amount > left => Err(Refusal::MoreThanIsLeft { left }),
            _ if payment.refunds.len() >= MAX_REFUNDS => Err(Refusal::NoMoreRefunds),
            amount if amount < left => Ok(Cause::PartRefunded { refund: self, amount }),
            _ => Ok(Cause::Refunded(self)),
        }
    }

    /// A refund whose money a person sends by hand: mobile financial services cannot refund (API specification, "Refund").
    #[must_use]
    pub fn by_hand(id: RefundId) -> Self {
        Self { status: RefundStatus::PendingSettlement, ..Self::made(id) }
    }
}

one_or_many! {
    /// The refunds of a payment, oldest first.
    ///
    /// Reads a list, or the one refund that a server without partial refunds returns.
    pub struct Refunds of Refund by RefundId, "a list of refunds, or a refund"
}

impl Refunds {
    /// The sum of the amounts of those that stand.
    #[must_use]
    pub fn total(&self) -> Amount {
        // Each refund is at most the rest of the payment's amount, so this never saturates.
        let standing = self.iter().filter(|refund| refund.stands());
        Amount::from_minor(standing.map(|refund| refund.amount.as_minor()).fold(0, u64::saturating_add))
    }
}

/// How many refunds a payment may have: 99 parts and the rest.
pub const MAX_REFUNDS: usize = 100;
const MAX_REASON_CHARS: usize = 500;

/// The parameters of a refund.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CreateRefund {
    /// The amount to refund. Default: what is left of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
    /// The merchant's reason; at most 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CreateRefund {
    /// Refunds what is left of the payment.
    #[must_use]
    pub fn rest() -> Self {
        Self::default()
    }

    /// Refunds a part of the payment.
    #[must_use]
    pub fn part(amount: Amount) -> Self {
        Self { amount: Some(amount), ..Self::default() }
    }

    /// Sets the reason.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Parses a request body with the optional `amount` and `reason`. The body may be empty. Refuses any other field, and an
    /// `amount` that is `null`: such a request must not refund everything.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_unknown();
        let amount = match fields.raw("amount") {
            Some(_) => Some(create_payment::amount(&mut fields)),
            None if fields.has("amount") => {
                let error = "must be a positive number, or be left out to refund what is left";
                fields.error("amount", ErrorCode::AmountInvalid, error, None)
            }
            None => None,
        };
        let reason = fields.short_text("reason", MAX_REASON_CHARS);
        fields.finish(Self { amount, reason })
    }

    /// The cause of this refund, if it is allowed: a refund of a part, or of all that is not refunded. Even the refund of all
    /// that is left is one of a part, if a dispute holds the rest: the payment stays paid.
    ///
    /// # Errors
    /// [`Refusal::MoreThanIsLeft`] if less than the amount is left, or [`Refusal::Disputed`] if disputes hold it.
    /// [`Refusal::TooManyRefunds`] for a part when only one more refund is possible, [`Refusal::NoMoreRefunds`] when none is.
    pub fn cause(&self, payment: &Payment, refund: NewRefund) -> Result<Cause, Refusal> {
        let refund = NewRefund { reason: self.reason.clone(), ..refund };
        let (left, disputed) = (payment.amount_left(), payment.amount_disputed());
        let amount = self.amount.unwrap_or(left);
        if payment.raw_status == RawStatus::Paid {
            if disputed > Amount::ZERO && (amount > left || left == Amount::ZERO) {
                return Err(Refusal::Disputed { disputed, left });
            }
            if amount < left && payment.refunds.len() + 1 == MAX_REFUNDS {
                return Err(Refusal::TooManyRefunds);
            }
        }
        refund.cause(payment, Some(amount))
    }
}

open_enum! {
    /// The status of a refund.
    pub enum RefundStatus {
        /// The refund waits for manual settlement: the operator must send the money by hand.
        PendingSettlement = "pending_settlement",
        /// The gateway has accepted the refund and sends the money later.
        Pending = "pending",
        /// The refund is settled.
        Succeeded = "succeeded",
        /// The gateway could not send the money, and the payment has it again.
        Failed = "failed",
    }
}

open_enum! {
    /// Where a refund was made, if not by the API.
    pub enum RefundSource {
        /// In the gateway's own dashboard.
        Gateway = "gateway",
    }
}

#[cfg(test)]
mod tests;
