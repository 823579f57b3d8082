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
        /// Identifier of the refund.
        id: RefundId = "id",
        /// What goes back to the customer: the whole amount of the payment.
        amount: Amount = "amount",
        /// The payment's currency.
        currency: Currency = "currency",
        /// Why, in the merchant's words.
        reason: Option<String> = "reason",
        /// How far it has come.
        status: RefundStatus = "status",
        /// Whether someone must send the money by hand: true for BDT, paid through mobile financial services.
        requires_manual_settlement: bool = "requiresManualSettlement",
        /// When it was asked for.
        created_at: Timestamp = "createdAt",
        /// When the money had gone back.
        settled_at: Option<Timestamp> = "settledAt",
    }
}

/// The parameters of a refund.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateRefund {
    /// Why, in the merchant's words.
    pub reason: Option<String>,
    /// What is to go back; the whole of the payment unless said otherwise.
    pub amount: Option<Amount>,
}

impl CreateRefund {
    /// Reads `reason` (optional, at most 2000 bytes) and `amount` (optional) from the body of a request; there may be no
    /// body.
    ///
    /// # Errors
    /// One sentence for each fault of the body.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?.refusing_near_misses();
        let reason = fields.text("reason", 2000);
        let amount = fields.raw("amount").map(|_| create_payment::amount(&mut fields));
        fields.finish(Self { reason, amount })
    }

    /// Whether this much may go back of a payment. Only the whole may: partial refunds are not offered yet.
    ///
    /// # Errors
    /// The whole, and that a part cannot be asked for.
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
    /// How far a refund has come.
    pub enum RefundStatus {
        /// The operator has yet to send the money by hand.
        PendingSettlement = "pending_settlement",
        /// The money has gone back.
        Succeeded = "succeeded",
    }
}
