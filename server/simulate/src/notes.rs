//! What the people around the servers note, for the check at the end.

use std::collections::{BTreeMap, BTreeSet};

use payments_core::{PaymentId, PayoutId};
use serde_json::Value;

/// A dispute that the operator recorded.
pub(super) struct Recorded {
    pub(super) payment: PaymentId,
    /// What the gateway withdrew and did not reinstate, in minor units.
    pub(super) taken: u64,
    /// The reasons of the refunds that the merchant had asked for when the dispute was lost. `None` if it was won.
    pub(super) asked_before: Option<BTreeSet<String>>,
}

/// A payout that the bank got.
#[derive(Debug, Clone)]
pub(super) struct Banked {
    pub(super) batch: String,
    pub(super) minor: u64,
    /// Whether the bank pays it.
    pub(super) is_paid: bool,
    /// Whether the bank paid it and sent it back.
    pub(super) is_returned: bool,
}

/// What the bank did.
pub(super) type Bank = BTreeMap<PayoutId, Banked>;

/// A request for a payout, as the shop knows it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) is_live: bool,
    pub(super) body: Value,
    /// The payout, if an answer said so.
    pub(super) payout: Option<String>,
}
