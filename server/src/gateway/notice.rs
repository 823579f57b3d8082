//! Notices that gateways send by themselves. A notice is only a reason to ask the gateway.

use payments_core::PaymentId;
use webhook_verify::{
    Failure,
    replay::{Claimed, MemoryClaims},
};

/// A notice whose signature fits, if the gateway signs. First ask about its subject, then commit its claim.
pub struct Notice<'g> {
    pub subject: NoticeSubject,
    /// The claim on the notice. If it is dropped uncommitted, the notice may be processed again. `None` if too many notices are
    /// remembered, or if its gateway's have no ids.
    pub claimed: Option<Claimed<'g, MemoryClaims>>,
}

/// What a notice is about.
#[derive(Debug, PartialEq, Eq)]
pub enum NoticeSubject {
    /// An attempt of the payment.
    Attempt(PaymentOf),
    /// The refunds of a payment.
    Refunds {
        of: PaymentOf,
        /// Whether a refund failed.
        has_failed: bool,
    },
    /// The disputes of a payment.
    Disputes(PaymentOf),
}

/// How a notice names its payment.
#[derive(Debug, PartialEq, Eq)]
pub enum PaymentOf {
    Payment(PaymentId),
    /// By our reference for an attempt.
    Reference(String),
    /// By the gateway's transaction.
    Transaction(String),
}

#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    #[error("this server has no credentials of {0}, whose notice this is")]
    NotConfigured(&'static str),
    #[error("invalid signature: {0}")]
    Signature(#[from] Failure),
    #[error("invalid signature: {0}")]
    Unsigned(&'static str),
}
