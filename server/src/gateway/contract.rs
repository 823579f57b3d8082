//! The interface of all gateways.

use async_trait::async_trait;
use payments_core::{Amount, Payment, PaymentId, PaymentMethod, SimulateOutcome, Timestamp};

use super::{
    answer::{FinalRejection, Rejection},
    error::GatewayError,
};
use crate::domain::{CostRow, GatewayAttempt, GatewayDispute, GatewayName, GatewayRefund, StatementRow};

/// The amounts that a gateway takes in its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountLimits {
    pub least: Amount,
    pub most: Amount,
}

/// What happens to the customer of a new gateway attempt.
#[derive(Debug)]
pub enum BeginOutcome {
    /// The customer goes to the gateway's page.
    SendTo { external_id: String, customer_url: String },
    /// The payment ends with this outcome. No money moves.
    Simulated(SimulateOutcome),
    /// The gateway rejected it, and there is no attempt.
    Rejected(Rejection),
}

#[derive(Debug)]
pub struct AttemptRequest<'o> {
    pub payment: &'o Payment,
    /// Unique among all gateway attempts.
    pub invoice: &'o str,
    /// The merchant's name, as the customer reads it.
    pub merchant_name: &'o str,
    /// Where the gateway sends the customer back.
    pub return_url: &'o str,
    /// The customer's wallet number, if known.
    pub phone: Option<&'o str>,
    pub expires_at: Timestamp,
    pub now: Timestamp,
}

/// The state of a gateway attempt, as the gateway itself reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// The customer has not approved the payment yet.
    Open,
    /// The customer has approved the payment; the money moves with the capture.
    Approved,
    /// The gateway has not decided yet.
    Pending,
    /// The money is taken, in the payment's amount and currency.
    Paid { transaction: String },
    /// The gateway attempt failed.
    Failed {
        /// The gateway's reason, in its words.
        why: Option<String>,
    },
    /// The customer or this server cancelled the attempt, and nobody paid.
    Cancelled,
    /// The gateway reports money that contradicts the payment: a discrepancy, for manual review.
    Discrepancy { what: String, transaction: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureOutcome {
    /// The gateway reports this state.
    State(AttemptState),
    /// The response says nothing definite: query the gateway.
    Unknown,
    /// The gateway rejected it. The attempt ends in this state, unless a query shows that an earlier capture took the money.
    Rejected { ended: AttemptState, rejection: FinalRejection },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundOutcome {
    /// The money goes back, now or later: in the amount that the gateway reports.
    Made(GatewayRefund),
    /// This refund sends no money back.
    Rejected(FinalRejection),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundWay {
    /// The gateway sends the money back.
    Gateway,
    /// A person sends the money back and records that: a manual settlement.
    Manual,
}

#[async_trait]
pub trait Gateway: Send + Sync {
    fn name(&self) -> GatewayName;
    fn method(&self) -> PaymentMethod;
    /// Creates a gateway attempt. The caller must store it before it sends the customer to the gateway.
    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError>;
    /// Queries the state of a gateway attempt. Moves no money.
    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError>;
    /// Whether an approved payment needs a [capture](Self::capture).
    fn captures(&self) -> bool {
        false
    }
    /// Captures the money of an approved gateway attempt. A gateway that captures by itself does nothing.
    async fn capture(&self, _payment: &Payment, _attempt: &GatewayAttempt) -> Result<CaptureOutcome, GatewayError> {
        Ok(CaptureOutcome::Unknown)
    }
    /// Cancels an open gateway attempt, so that it can no longer be paid, and returns its state.
    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError>;
    fn refund_way(&self) -> RefundWay {
        RefundWay::Manual
    }
    /// Sends the money back. Idempotent by the refund's id, even after the gateway has dropped its idempotency key. After an
    /// error the money may have been sent back.
    async fn refund(
        &self,
        _payment: &Payment,
        _attempt: &GatewayAttempt,
        _refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        let what = "a person sends its refunds by hand".to_owned();
        Err(GatewayError::Unanswered { gateway: self.name(), what, was_sent: false })
    }
    /// All refunds of a paid attempt, whoever made them.
    async fn refunds(&self, _attempt: &GatewayAttempt) -> Result<Vec<GatewayRefund>, GatewayError> {
        Ok(Vec::new())
    }
    /// All disputes of a paid attempt.
    async fn disputes(&self, _attempt: &GatewayAttempt) -> Result<Vec<GatewayDispute>, GatewayError> {
        Ok(Vec::new())
    }
    /// A part of a list since a time, strictly after the item `after`.
    async fn list(
        &self,
        _list: GatewayList,
        _since: Timestamp,
        _after: Option<&str>,
    ) -> Result<ListPart, GatewayError> {
        Ok(ListPart::default())
    }
    /// A part of the rows that were paid out to the bank since a time, strictly after a place in them. `None` if the gateway
    /// has no API for them.
    async fn statement(&self, _since: Timestamp, _after: Option<&str>) -> Result<Option<StatementPart>, GatewayError> {
        Ok(None)
    }
}

/// A part of a gateway's statement, and the place in it after the part, if it goes on.
#[derive(Debug)]
pub struct StatementPart {
    pub rows: Vec<StatementRow>,
    pub next: Option<String>,
}

/// A list of the gateway that the server reads again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayList {
    /// All refunds, whoever made them.
    Refunds,
    Disputes,
    /// All rows of the gateway's books.
    Costs,
}

/// An item of such a list.
#[derive(Debug)]
pub enum Listed {
    Refund(GatewayRefund),
    Dispute(GatewayDispute),
    Cost(CostRow),
}

/// A part of such a list, newest first.
#[derive(Debug, Default)]
pub struct ListPart {
    /// The items of payments of this server.
    pub items: Vec<(PaymentId, Listed)>,
    /// The last item, if the list goes on after it.
    pub next: Option<String>,
}

#[derive(Debug)]
pub struct RefundRequest<'r> {
    /// The refund's id: the idempotency key at the gateway.
    pub id: &'r str,
    /// What to refund; `None` for the whole payment.
    pub amount: Option<Amount>,
    /// Whether an earlier request may have reached the gateway.
    pub is_repeated: bool,
    pub reason: Option<&'r str>,
}

/// Whether an amount and currency reported by a gateway are the payment's.
pub(super) fn is_amount(payment: &Payment, currency: &str, amount: Option<Amount>) -> bool {
    amount == Some(payment.amount) && currency.eq_ignore_ascii_case(payment.currency.code())
}
