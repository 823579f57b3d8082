//! The interface of all gateways.

use async_trait::async_trait;
use payments_core::{Amount, Customer, Payment, PaymentId, RefundId, SimulateOutcome, Timestamp};
use warp::http::HeaderMap;

use super::{
    answer::{FinalRejection, Rejection},
    declaration::{Declaration, GatewayList, RefundWay},
    error::GatewayError,
    notice::{Notice, NoticeError},
};
use crate::domain::{CostRow, GatewayAttempt, GatewayDispute, GatewayName, GatewayRefund, StatementRow};

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
    /// Our reference, unique among all gateway attempts.
    pub invoice: &'o str,
    /// The merchant's name, as the customer reads it.
    pub merchant_name: &'o str,
    /// Where the gateway sends the customer back.
    pub return_url: &'o str,
    /// What is known of the customer: from the payment, or typed at the checkout. The phone number is a Bangladeshi mobile
    /// number of eleven digits.
    pub customer: &'o Customer,
    /// When the attempt ends there, as near to the session's end as the gateway allows.
    pub expires_at: Timestamp,
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
    Paid(Receipt),
    /// The gateway attempt failed.
    Failed {
        /// The gateway's reason, in its words.
        why: Option<String>,
        /// The gateway's code for it.
        code: Option<String>,
    },
    /// The customer or this server cancelled the attempt, and nobody paid.
    Cancelled,
    /// The attempt ended by itself, and nobody paid.
    Expired,
    /// The gateway reports money that contradicts the payment: a discrepancy, for manual review.
    Discrepancy { what: String, transaction: Option<String> },
}

/// What a gateway says of money that it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The gateway's id of the transaction.
    pub transaction: String,
    /// What it kept, if it says so with the payment.
    pub cost: Option<CostRow>,
    /// What it took for the attempt beyond the payment, in words for the person who sends that back.
    pub surplus: Option<String>,
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
    /// An earlier request may have sent the money back, and the gateway cannot tell: a person looks there, and settles the
    /// refund.
    ForAPerson {
        /// What to look for.
        what: String,
    },
}

#[async_trait]
pub trait Gateway: Send + Sync {
    /// What it declares of itself.
    fn declared(&self) -> &'static Declaration;
    fn name(&self) -> GatewayName {
        self.declared().name
    }
    /// Creates a gateway attempt. The caller must store it before it sends the customer to the gateway.
    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError>;
    /// Queries the state of a gateway attempt. Moves no money.
    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError>;
    /// Whether the server may capture by a customer's word alone, without a query: an early capture does no harm. `false` also
    /// for a gateway that captures by itself.
    fn may_capture_unasked(&self) -> bool {
        false
    }
    /// How long the gateway may work on a capture, in milliseconds. The server sends no other one before.
    fn capture_millis(&self) -> i64 {
        5_000
    }
    /// Captures the money of an approved gateway attempt. A gateway that captures by itself does nothing.
    async fn capture(&self, _payment: &Payment, _attempt: &GatewayAttempt) -> Result<CaptureOutcome, GatewayError> {
        Ok(CaptureOutcome::Unknown)
    }
    /// Cancels an open gateway attempt, so that it can no longer be paid, and returns its state.
    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError>;
    /// Whether an attempt that was paid or cancelled takes no more money. If not, the server asks again about a cancelled
    /// attempt, and about a paid one after a notice.
    fn closes(&self) -> bool {
        true
    }
    fn refund_way(&self) -> RefundWay {
        self.declared().refunds
    }
    /// Whether it recognizes a refund request that it got before. If not, only one worker at a time may ask again.
    fn knows_repeated_refunds(&self) -> bool {
        true
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
    /// The transaction to refund: the attempt's, or else what a query finds.
    async fn transaction_of(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<String, GatewayError> {
        if let Some(transaction) = &attempt.transaction {
            return Ok(transaction.clone());
        }
        match self.query(payment, attempt).await? {
            AttemptState::Paid(receipt) => Ok(receipt.transaction),
            _ => {
                let what = "the payment has no transaction to refund".to_owned();
                Err(GatewayError::Unanswered { gateway: self.name(), what, was_sent: true })
            }
        }
    }
    /// All refunds of a paid attempt, whoever made them; of a gateway without such a list, the known ones.
    async fn refunds(
        &self,
        _attempt: &GatewayAttempt,
        _known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
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
    /// Refuses headers that fit no notice of this gateway, before its body is read.
    fn check_notice(&self, _headers: &HeaderMap, _now: Timestamp) -> Result<(), NoticeError> {
        Ok(())
    }
    /// Reads a notice whose signature fits. `None` if nothing follows: it is about no payment of this server, or came before.
    async fn notice(
        &self,
        _headers: &HeaderMap,
        _body: &[u8],
        _now: Timestamp,
    ) -> Result<Option<Notice<'_>>, NoticeError> {
        Ok(None)
    }
    /// The payment that a transaction paid, if this server made it and the gateway knows that.
    async fn payment_of(&self, _transaction: &str) -> Result<Option<PaymentId>, GatewayError> {
        Ok(None)
    }
    /// Until when the token is valid that its calls need; requests one if necessary. `None` if they need none.
    async fn token_valid_until(&self) -> Option<Result<Timestamp, GatewayError>> {
        None
    }
}

/// A part of a gateway's statement, and the place in it after the part, if it goes on.
#[derive(Debug)]
pub struct StatementPart {
    pub rows: Vec<StatementRow>,
    pub next: Option<String>,
}

/// An item of a [`GatewayList`].
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

/// A refund of the payment that the gateway has accepted.
#[derive(Debug)]
pub struct KnownRefund<'r> {
    pub id: &'r RefundId,
    /// The gateway's id.
    pub reference: &'r str,
    pub amount: Amount,
}

#[derive(Debug)]
pub struct RefundRequest<'r> {
    /// The refund's id: the idempotency key at the gateway.
    pub id: &'r RefundId,
    /// Our reference for it, in the gateway's form; the id, if that has no form of its own.
    pub reference: &'r str,
    /// What to refund; `None` for the whole payment.
    pub amount: Option<Amount>,
    /// Whether an earlier request may have reached the gateway.
    pub is_repeated: bool,
    /// The payment's other refunds that the gateway has accepted.
    pub known: &'r [KnownRefund<'r>],
    pub reason: Option<&'r str>,
}

/// Whether an amount and currency reported by a gateway are the payment's.
pub(super) fn is_amount(payment: &Payment, currency: &str, amount: Option<Amount>) -> bool {
    amount == Some(payment.amount) && currency.eq_ignore_ascii_case(payment.currency.code())
}
