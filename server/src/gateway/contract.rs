//! What every gateway does.

use async_trait::async_trait;
use payments_core::{Amount, Payment, PaymentMethod, SimulateOutcome, Timestamp};

use super::error::GatewayError;
use crate::domain::{Attempt, GatewayName};

/// Where the customer of a new attempt goes.
#[derive(Debug)]
pub(crate) enum Begun {
    /// To the gateway's page.
    SendTo { external_id: String, customer_url: String },
    /// Nowhere: no money is to move, and the payment ends so.
    Simulated(SimulateOutcome),
}

/// What an attempt is begun with.
#[derive(Debug)]
pub(crate) struct Order<'o> {
    pub(crate) payment: &'o Payment,
    /// Unique among all attempts.
    pub(crate) invoice: &'o str,
    /// Who is paid, as the customer reads it.
    pub(crate) merchant_name: &'o str,
    /// Where the gateway sends the customer back to.
    pub(crate) return_url: &'o str,
    /// The wallet's number, if the customer gave it.
    pub(crate) phone: Option<&'o str>,
    /// When the checkout session's life ends.
    pub(crate) expires_at: Timestamp,
    /// The present time.
    pub(crate) now: Timestamp,
}

/// How an attempt stands, as the gateway itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The customer has not approved it yet.
    Open,
    /// The customer has approved it; the money moves once it is taken.
    Approved,
    /// The gateway has yet to decide.
    Pending,
    /// The money was taken: this payment's, in its amount and currency.
    Paid { transaction: String },
    /// It came to nothing.
    Failed,
    /// The customer gave up, or the attempt was closed unpaid.
    Cancelled,
    /// The gateway tells of money that does not fit this payment. A person must look.
    Disputed { what: String },
}

/// What came of telling a gateway to take the money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Captured {
    /// It says how the attempt stands now.
    Stands(Standing),
    /// It says something of which only a look tells what it means.
    Unclear,
    /// It did not take the money this time. The attempt ended so, unless a look tells of an earlier time that it did.
    Refused(Standing),
}

/// How a gateway's payments are refunded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefundWay {
    /// The gateway sends the money back.
    Gateway,
    /// A person does, and records it.
    ByHand,
}

/// Takes customers' money.
#[async_trait]
pub(crate) trait Gateway: Send + Sync {
    fn name(&self) -> GatewayName;
    /// The way to pay that leads here.
    fn method(&self) -> PaymentMethod;
    /// Opens an attempt. Until its answer was kept, no customer is sent to it.
    async fn begin(&self, order: &Order<'_>) -> Result<Begun, GatewayError>;
    /// Asks how an attempt stands. Moves nothing.
    async fn query(&self, payment: &Payment, attempt: &Attempt) -> Result<Standing, GatewayError>;
    /// Whether the money moves only when it is [captured](Self::capture) after the customer's approval.
    fn captures(&self) -> bool;
    /// Takes the money of an attempt that the customer approved.
    async fn capture(&self, payment: &Payment, attempt: &Attempt) -> Result<Captured, GatewayError>;
    /// Sees to it that an open attempt can no longer be paid, and says how it stands then.
    async fn cancel(&self, payment: &Payment, attempt: &Attempt) -> Result<Standing, GatewayError>;
    /// How refunds go.
    fn refund_way(&self) -> RefundWay;
    /// Sends the money back, once, however often it is asked under the refund's id.
    async fn refund(&self, payment: &Payment, attempt: &Attempt, refund: &RefundOrder<'_>) -> Result<(), GatewayError>;
}

/// What a refund is asked for with.
#[derive(Debug)]
pub(crate) struct RefundOrder<'r> {
    /// The refund's id: the idempotency key at the gateway.
    pub(crate) id: &'r str,
    pub(crate) reason: Option<&'r str>,
}

/// Whether what a gateway calls the amount is the amount of this payment.
pub(super) fn is_amount(payment: &Payment, currency: &str, amount: Option<Amount>) -> bool {
    amount == Some(payment.amount) && currency.eq_ignore_ascii_case(payment.currency.code())
}
