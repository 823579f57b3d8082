//! The refund of a payment.

use crate::{
    Amount, Currency, RefundId, Timestamp,
    aliased::aliased_resource,
    create_payment,
    open_enum::open_enum,
    validation::{Fields, Invalid},
};

aliased_resource! {
    /// The refund of a whole payment (API specification, "Refund").
    pub struct Refund {
        /// The refund's id.
        id: RefundId = "id",
        /// The refunded amount: the whole amount of the payment.
        amount: Amount = "amount",
        /// The payment's currency.
        currency: Currency = "currency",
        /// The merchant's reason.
        reason: Option<String> = "reason",
        /// The refund's status.
        status: RefundStatus = "status",
        /// Whether the operator must send the money by hand: true for BDT, paid through mobile financial services.
        requires_manual_settlement: bool = "requiresManualSettlement",
        /// When the refund was requested.
        created_at: Timestamp = "createdAt",
        /// When the refund was settled.
        settled_at: Option<Timestamp> = "settledAt",
    }
}

/// The parameters of a refund.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateRefund {
    /// The merchant's reason.
    pub reason: Option<String>,
    /// The amount to refund. Default: the whole amount of the payment.
    pub amount: Option<Amount>,
}

impl CreateRefund {
    /// Parses a request body with the optional `reason` (at most 2000 bytes) and `amount`. The body may be empty.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let reason = fields.text("reason", 2000);
        let amount = fields.raw("amount").map(|_| create_payment::amount(&mut fields));
        fields.finish(Self { reason, amount })
    }

    /// Checks that the amount is the whole amount of the payment. The API has no partial refunds yet.
    ///
    /// # Errors
    /// A sentence with the whole amount.
    pub fn check_against(&self, whole: Amount) -> Result<(), Invalid> {
        if self.amount.is_none_or(|amount| amount == whole) {
            return Ok(());
        }
        Err(Invalid::new(format!(
            "amount must be the whole of the payment, {whole}, or be left out: partial refunds are not offered yet"
        )))
    }
}

open_enum! {
    /// The status of a refund.
    pub enum RefundStatus {
        /// The refund waits for manual settlement: the operator must send the money by hand.
        PendingSettlement = "pending_settlement",
        /// The refund is settled.
        Succeeded = "succeeded",
    }
}
