//! The refund of a payment.

use crate::{
    Amount, Currency, RefundId, Timestamp,
    aliased::aliased_resource,
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

impl Refund {
    /// Reads `reason` (optional, at most 2000 bytes) from the body of a request; there may be no body.
    ///
    /// # Errors
    /// A reason that is no text, or too long a one.
    pub fn reason_from_json(body: &[u8]) -> Result<Option<String>, Invalid> {
        let mut fields = Fields::of_body(if body.is_empty() { b"{}" } else { body })?;
        let reason = fields.text("reason", 2000);
        fields.finish(reason)
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
