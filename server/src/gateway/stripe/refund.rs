//! The meaning of a Stripe refund's status.
//!
//! | status | meaning | consequence |
//! |---|---|---|
//! | `succeeded` | the money is on its way back | the payment is refunded |
//! | `pending` | Stripe waits for its own processing, for funds in the account, or for the charge to settle | the payment is refunded |
//! | `requires_action` | Stripe waits for the customer to say where the money goes; not for cards | the payment is refunded |
//! | `failed`, `canceled` | the money was not sent back | the payment is not refunded; if it was before, it needs manual review |
//! | none, or another | unknown | the refund is retried |
//!
//! An accepted refund completes without another call, or an event reports that it `failed` or was `canceled`.

use serde::Deserialize;
use serde_json::Value;

use crate::gateway::answer::Names;

#[derive(Debug, Deserialize)]
pub(super) struct StripeRefund {
    pub(super) id: String,
    pub(super) status: Option<String>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct RefundList {
    pub(super) data: Vec<StripeRefund>,
    pub(super) has_more: bool,
}

/// A refund that failed, perhaps after the payment counted as refunded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRefund {
    /// This server's id of the refund. Each refund that it requested has the id in its metadata.
    pub refund: Option<String>,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefundState {
    /// The money goes back, now or later.
    Accepted,
    /// This refund sends no money back.
    Failed,
    /// Stripe's status is unknown to this server.
    Unknown,
}

impl StripeRefund {
    pub(super) fn state(&self) -> RefundState {
        match self.status.as_deref() {
            Some("succeeded" | "pending" | "requires_action") => RefundState::Accepted,
            Some("failed" | "canceled") => RefundState::Failed,
            _ => RefundState::Unknown,
        }
    }

    pub(super) fn failed(&self) -> Option<FailedRefund> {
        if self.state() != RefundState::Failed {
            return None;
        }
        let what = format!("Stripe reports that refund {} is {}", self.id, self.status());
        Some(FailedRefund { refund: self.metadata["refund_id"].as_str().map(str::to_owned), what })
    }

    pub(super) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or("without a status")
    }
}

impl Names for StripeRefund {
    /// Whether `id` is Stripe's id of the refund, or this server's.
    fn names(&self, id: &str) -> bool {
        self.id == id || self.metadata["refund_id"].as_str() == Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refund_that_stripe_accepted_counts_as_made() {
        for (status, state) in [
            (Some("succeeded"), RefundState::Accepted),
            (Some("pending"), RefundState::Accepted),
            (Some("requires_action"), RefundState::Accepted),
            (Some("failed"), RefundState::Failed),
            (Some("canceled"), RefundState::Failed),
            (Some("Succeeded"), RefundState::Unknown),
            (Some("reversed"), RefundState::Unknown),
            (Some(""), RefundState::Unknown),
            (None, RefundState::Unknown),
        ] {
            let metadata = serde_json::json!({"refund_id": "ref_1"});
            let refund = StripeRefund { id: "re_1".into(), status: status.map(str::to_owned), metadata };
            assert_eq!(refund.state(), state, "{status:?}");
            let failed = refund.failed().map(|failed| failed.refund.unwrap());
            assert_eq!(failed, (state == RefundState::Failed).then(|| "ref_1".into()), "{status:?}");
        }
    }
}
