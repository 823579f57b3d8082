//! The disputes of a payment: the customer asks the bank or the wallet, not the merchant, to return the money.

use crate::{
    Amount, Currency, DisputeId, Timestamp, aliased::aliased_resource, one_or_many::one_or_many, open_enum::open_enum,
};

/// How many disputes a payment may have.
pub const MAX_DISPUTES: usize = 20;

aliased_resource! {
    /// A dispute of a payment or of a part of it. The payment keeps its status.
    #[derive(Debug)]
    pub struct Dispute {
        /// The dispute's id.
        id: DisputeId = "id",
        /// The disputed amount.
        amount: Amount = "amount",
        /// The payment's currency.
        currency: Currency = "currency",
        /// The customer's reason, in the gateway's or the operator's words.
        reason: Option<String> = "reason",
        /// The dispute's status.
        status: DisputeStatus = "status",
        /// When the evidence must be with the gateway.
        evidence_due_by: Option<Timestamp> = "evidenceDueBy",
        /// What the gateway has withdrawn for it so far.
        withdrawn: Amount = "amountWithdrawn",
        /// What the gateway has reinstated of that.
        reinstated: Amount = "amountReinstated",
        /// The part of the platform's fee that the merchant has back while the money is withdrawn. Missing if disputes of the
        /// payment return no fee.
        fee_returned: Option<Amount> = "feeReturned" (omitted if None),
        /// When the server learned of it.
        opened_at: Timestamp = "openedAt",
        /// When it was won or lost.
        closed_at: Option<Timestamp> = "closedAt",
    }
}

impl Dispute {
    /// What the gateway has withdrawn and not reinstated.
    #[must_use]
    pub fn amount_taken(&self) -> Amount {
        self.withdrawn.checked_sub(self.reinstated).unwrap_or_default()
    }

    /// What cannot be refunded because of it: the money that it took and, while it is open, the money that it may take. A
    /// warning or a win holds nothing.
    #[must_use]
    pub fn amount_held(&self) -> Amount {
        match self.status {
            DisputeStatus::Warning | DisputeStatus::Won | DisputeStatus::Lost => self.amount_taken(),
            _ => self.amount_taken().max(self.amount),
        }
    }
}

open_enum! {
    /// The status of a dispute.
    pub enum DisputeStatus {
        /// The bank asks about the payment and takes no money. The inquiry may become a chargeback.
        Warning = "warning",
        /// The gateway waits for evidence.
        NeedsResponse = "needs_response",
        /// The bank decides.
        UnderReview = "under_review",
        /// The merchant won, or an inquiry was closed.
        Won = "won",
        /// The customer won.
        Lost = "lost",
    }
}

impl DisputeStatus {
    /// Whether the dispute is decided.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Won | Self::Lost)
    }

    /// How far a dispute has come: it never goes back. `None` if this version does not know the status.
    pub(crate) fn stage(&self) -> Option<u8> {
        match self {
            Self::Warning => Some(0),
            Self::NeedsResponse => Some(1),
            Self::UnderReview => Some(2),
            Self::Won | Self::Lost => Some(3),
            Self::Other(_) => None,
        }
    }
}

one_or_many! {
    /// The disputes of a payment, oldest first.
    pub struct Disputes of Dispute by DisputeId, "a list of disputes, or a dispute"
}
