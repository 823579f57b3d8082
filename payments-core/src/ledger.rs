//! The double-entry ledger: what each move of money writes.
//!
//! A posting adds a signed number of minor units to an account; the postings of one move sum to zero. A merchant's
//! balance is the sum of the postings to its account, and nothing else.

use serde::{Deserialize, Serialize};

use crate::{Amount, Payment};

/// An account of the ledger. Each developer has one of each kind for each currency and environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerAccount {
    /// What the gateway owes the platform: negative, since it is where the money came from.
    GatewayClearing,
    /// What the platform owes the merchant: the merchant's balance.
    Merchant,
    /// What the platform earned.
    PlatformFee,
}

/// One line of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    /// The account it changes.
    pub account: LedgerAccount,
    /// By how many minor units (paisa, cents) of the payment's currency.
    pub minor: i64,
}

/// A payment was completed: its amount came in through the gateway; the net is the merchant's, the fee the platform's.
pub(crate) fn of_completion(payment: &Payment) -> Vec<Posting> {
    entry(payment, 1)
}

/// A payment was refunded: the merchant gives back the net and the platform its fee.
pub(crate) fn of_refund(payment: &Payment) -> Vec<Posting> {
    entry(payment, -1)
}

fn entry(payment: &Payment, direction: i64) -> Vec<Posting> {
    // An amount is below 10^14 minor units, so it fits.
    let signed = |amount: Amount| direction * i64::try_from(amount.as_minor()).unwrap_or(i64::MAX);
    vec![
        Posting { account: LedgerAccount::GatewayClearing, minor: -signed(payment.amount) },
        Posting { account: LedgerAccount::Merchant, minor: signed(payment.net_amount) },
        Posting { account: LedgerAccount::PlatformFee, minor: signed(payment.platform_fee_amount) },
    ]
}
