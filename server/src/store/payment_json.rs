//! A payment as the API serves it.

use payments_core::Payment;

/// The JSON of a payment, byte for byte as the API serves it. A store that holds this text copies it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PaymentJson(pub(crate) String);

impl PaymentJson {
    pub(crate) fn of(payment: &Payment) -> Result<Self, serde_json::Error> {
        serde_json::to_string(payment).map(Self)
    }
}
