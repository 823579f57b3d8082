//! What Stripe's word on a refund means.
//!
//! | status | what it says | what follows |
//! |---|---|---|
//! | `succeeded` | the money is on its way back | the payment is refunded |
//! | `pending` | Stripe has taken it on and waits: for its own processing, for funds in the account, for the charge to settle | the payment is refunded |
//! | `requires_action` | Stripe has taken it on and waits for the customer, to say where the money goes; cards have no such refunds | the payment is refunded |
//! | `failed`, `canceled` | the money stays where it is | the payment is not refunded; if it was called so before, a person must look |
//! | none, or another | nothing that is known | it is asked again |
//!
//! What Stripe has taken on happens without another call, or ends as `failed` or `canceled`, of which an event tells.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct StripeRefund {
    pub(super) id: String,
    pub(super) status: Option<String>,
    metadata: Option<RefundMetadata>,
}

#[derive(Debug, Deserialize)]
struct RefundMetadata {
    refund_id: Option<String>,
}

/// A refund came to nothing, maybe after it counted as made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefundFault {
    /// This server's id of the refund. Stripe has it of each that this server asked for.
    pub(crate) refund: Option<String>,
    pub(crate) what: String,
}

/// What becomes of a refund's money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefundStanding {
    /// It goes back, now or later.
    TakenOn,
    /// It does not go back by this refund.
    CameToNothing,
    /// Nobody can say.
    Unknown,
}

impl StripeRefund {
    pub(super) fn standing(&self) -> RefundStanding {
        match self.status.as_deref() {
            Some("succeeded" | "pending" | "requires_action") => RefundStanding::TakenOn,
            Some("failed" | "canceled") => RefundStanding::CameToNothing,
            _ => RefundStanding::Unknown,
        }
    }

    /// What went wrong with it, if anything did.
    pub(super) fn fault(self) -> Option<RefundFault> {
        if self.standing() != RefundStanding::CameToNothing {
            return None;
        }
        let what = format!("Stripe says that refund {} is {}", self.id, self.status());
        Some(RefundFault { refund: self.metadata.and_then(|metadata| metadata.refund_id), what })
    }

    pub(super) fn status(&self) -> &str {
        self.status.as_deref().unwrap_or("of no status")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refund_that_stripe_has_taken_on_counts_as_made() {
        for (status, standing) in [
            (Some("succeeded"), RefundStanding::TakenOn),
            (Some("pending"), RefundStanding::TakenOn),
            (Some("requires_action"), RefundStanding::TakenOn),
            (Some("failed"), RefundStanding::CameToNothing),
            (Some("canceled"), RefundStanding::CameToNothing),
            (Some("Succeeded"), RefundStanding::Unknown),
            (Some("reversed"), RefundStanding::Unknown),
            (Some(""), RefundStanding::Unknown),
            (None, RefundStanding::Unknown),
        ] {
            let metadata = Some(RefundMetadata { refund_id: Some("ref_1".into()) });
            let refund = StripeRefund { id: "re_1".into(), status: status.map(str::to_owned), metadata };
            assert_eq!(refund.standing(), standing, "{status:?}");
            let fault = refund.fault().map(|fault| fault.refund.unwrap());
            assert_eq!(fault, (standing == RefundStanding::CameToNothing).then(|| "ref_1".into()), "{status:?}");
        }
    }
}
