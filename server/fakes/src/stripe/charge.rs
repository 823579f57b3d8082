//! Charges.

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
}
