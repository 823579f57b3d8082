//! Disputes: a customer's bank takes the money of a charge back, or inquires about it.

mod controls;

use serde_json::{Value, json};

use super::{
    balance::{Balance, Movement},
    known::{DISPUTE_FEE, DISPUTE_RESPONSE_TIME},
    session::Session,
};
use crate::{now, token};

/// The reasons of a dispute.
const REASONS: [&str; 15] = [
    "bank_cannot_process",
    "check_returned",
    "credit_not_processed",
    "customer_initiated",
    "debit_not_authorized",
    "duplicate",
    "fraudulent",
    "general",
    "incorrect_account_details",
    "insufficient_funds",
    "noncompliant",
    "product_not_received",
    "product_unacceptable",
    "subscription_canceled",
    "unrecognized",
];

#[derive(Debug)]
pub(super) struct Dispute {
    id: String,
    session: String,
    charge: String,
    intent: String,
    amount: u64,
    currency: String,
    reason: &'static str,
    status: Status,
    due_by: u64,
    submissions: u32,
    created: u64,
    pub(super) number: u64,
    /// The balance transactions of the withdrawal and of the reinstatement.
    withdrawal: Option<String>,
    reinstatement: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    WarningNeedsResponse,
    WarningUnderReview,
    WarningClosed,
    NeedsResponse,
    UnderReview,
    Won,
    Lost,
}

impl Status {
    const fn word(self) -> &'static str {
        match self {
            Self::WarningNeedsResponse => "warning_needs_response",
            Self::WarningUnderReview => "warning_under_review",
            Self::WarningClosed => "warning_closed",
            Self::NeedsResponse => "needs_response",
            Self::UnderReview => "under_review",
            Self::Won => "won",
            Self::Lost => "lost",
        }
    }

    /// Whether the bank only inquires: no money moves.
    const fn is_inquiry(self) -> bool {
        matches!(self, Self::WarningNeedsResponse | Self::WarningUnderReview | Self::WarningClosed)
    }

    const fn is_closed(self) -> bool {
        matches!(self, Self::WarningClosed | Self::Won | Self::Lost)
    }
}

impl Dispute {
    /// Opens a dispute of a session's charge. `None` if the session has no charge, or the reason is unknown.
    fn new(session: &Session, amount: u64, reason: &str, is_inquiry: bool, number: u64) -> Option<Self> {
        let charge = session.charge.as_ref()?;
        Some(Self {
            id: token("du_", number, "dispute"),
            session: session.id.clone(),
            charge: charge.id.clone(),
            intent: session.intent.clone(),
            amount,
            currency: session.currency.clone(),
            reason: REASONS.into_iter().find(|known| *known == reason)?,
            status: if is_inquiry { Status::WarningNeedsResponse } else { Status::NeedsResponse },
            due_by: now() + DISPUTE_RESPONSE_TIME,
            submissions: 0,
            created: now(),
            number,
            withdrawal: None,
            reinstatement: None,
        })
    }

    /// Whether it is this dispute.
    pub(super) fn is(&self, id: &str) -> bool {
        self.id == id
    }

    /// Whether the dispute forbids to refund this charge.
    pub(super) fn forbids_refund_of(&self, charge: &str) -> bool {
        self.charge == charge && !self.is_charge_refundable()
    }

    /// A charge can be refunded during an inquiry, and after the merchant won.
    fn is_charge_refundable(&self) -> bool {
        self.status.is_inquiry() || self.status == Status::Won
    }

    /// Takes the disputed money and the fee from the merchant's balance.
    fn withdraw(&mut self, session: &mut Session, balance: &mut Balance) {
        let amount = -self.amount.cast_signed();
        self.withdrawal = Some(balance.book(session, Movement::Dispute, &self.id, amount, DISPUTE_FEE));
        session.disputed += self.amount;
        session.kept += DISPUTE_FEE;
    }

    /// Gives the disputed money back. The fee stays.
    fn reinstate(&mut self, session: &mut Session, balance: &mut Balance) {
        let amount = self.amount.cast_signed();
        self.reinstatement = Some(balance.book(session, Movement::DisputeReversal, &self.id, amount, 0));
        session.disputed -= self.amount;
    }

    /// Whether the money is withdrawn and not reinstated.
    const fn is_withdrawn(&self) -> bool {
        self.withdrawal.is_some() && self.reinstatement.is_none()
    }

    /// Waits for the merchant's response from now on.
    fn begin_response(&mut self, status: Status) {
        self.status = status;
        self.due_by = now() + DISPUTE_RESPONSE_TIME;
        self.submissions = 0;
    }

    pub(super) fn json(&self, balance: &Balance) -> Value {
        let rows: Vec<Value> =
            [&self.withdrawal, &self.reinstatement].into_iter().flatten().filter_map(|id| balance.row(id)).collect();
        let case = if self.status.is_inquiry() { "inquiry" } else { "chargeback" };
        json!({
            "id": self.id, "object": "dispute", "amount": self.amount, "balance_transactions": rows,
            "charge": self.charge, "created": self.created, "currency": self.currency,
            "enhanced_eligibility_types": [], "evidence": {},
            "evidence_details": {"due_by": self.due_by, "enhanced_eligibility": {},
                "has_evidence": self.submissions > 0, "past_due": now() > self.due_by,
                "submission_count": self.submissions},
            "is_charge_refundable": self.is_charge_refundable(), "livemode": false, "metadata": {},
            "payment_intent": self.intent,
            "payment_method_details": {"card": {"brand": "visa", "case_type": case, "network_reason_code": null},
                "type": "card"},
            "reason": self.reason, "status": self.status.word(),
        })
    }
}
