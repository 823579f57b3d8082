//! The double-entry ledger.
//!
//! A posting adds a signed number of minor units to an account; the postings of a transition sum to zero. A merchant's
//! balance is the sum of the postings to its account.

use serde::{Deserialize, Serialize};

use crate::{Amount, Payment};

/// A ledger account. Each developer has one of each kind per currency and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerAccount {
    /// What the gateway owes the platform, as a negative number.
    GatewayClearing,
    /// The merchant's balance: what the platform owes the merchant.
    Merchant,
    /// The platform's fees.
    PlatformFee,
}

/// A ledger posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    /// The account.
    pub account: LedgerAccount,
    /// The change in minor units (paisa, cents) of the payment's currency.
    pub minor: i64,
}

/// The postings of a completed payment: the gateway's amount splits into the merchant's net and the platform's fee.
pub(crate) fn of_completion(payment: &Payment) -> Vec<Posting> {
    entry(payment, 1)
}

/// The postings of a refund: the reverse of the completion.
pub(crate) fn of_refund(payment: &Payment) -> Vec<Posting> {
    entry(payment, -1)
}

fn entry(payment: &Payment, direction: i64) -> Vec<Posting> {
    // An amount is below 10^14 minor units, so it fits in an `i64`.
    let signed = |amount: Amount| direction * i64::try_from(amount.as_minor()).unwrap_or(i64::MAX);
    vec![
        Posting { account: LedgerAccount::GatewayClearing, minor: -signed(payment.amount) },
        Posting { account: LedgerAccount::Merchant, minor: signed(payment.net_amount) },
        Posting { account: LedgerAccount::PlatformFee, minor: signed(payment.platform_fee_amount) },
    ]
}
