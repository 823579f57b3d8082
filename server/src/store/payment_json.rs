//! A payment as the API serves it.

/// The JSON of a payment, byte for byte as the API serves it. A store that holds this text copies it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PaymentJson(pub(crate) String);
