//! Charges.

use serde_json::{Value, json};

use super::session::Session;
use crate::{now, token};

/// The successful charge of a session's payment intent.
#[derive(Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) created: u64,
    /// The balance transaction, when it is known.
    pub(super) row: Option<String>,
}

impl Charge {
    pub(super) fn new(number: u64) -> Self {
        Self { id: token("ch_", number, "charge"), created: now(), row: None }
    }

    pub(super) fn json(&self, session: &Session) -> Value {
        json!({
            "id": self.id, "object": "charge", "amount": session.amount, "amount_captured": session.amount,
            "amount_refunded": session.refunded, "balance_transaction": self.row, "captured": true,
            "created": self.created, "currency": session.currency, "description": null, "disputed": session.is_disputed,
            "failure_balance_transaction": null, "failure_code": null, "failure_message": null, "livemode": false,
            "metadata": session.intent_metadata, "paid": true, "payment_intent": session.intent,
            "payment_method_details": {"card": {"brand": "visa", "last4": "4242"}, "type": "card"},
            "refunded": session.refunded == session.amount, "status": "succeeded",
        })
    }
}
