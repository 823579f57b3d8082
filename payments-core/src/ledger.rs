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
#[must_use]
pub fn of_completion(payment: &Payment) -> Vec<Posting> {
    entry(payment.amount, payment.platform_fee_amount, 1)
}

/// The postings of refund number `nth` of a payment, counted from 0: the reverse of the completion, in proportion to the
/// refund's amount. Empty if the payment has fewer refunds.
///
/// Each refund returns the difference between two rounded running totals of the fee. So the parts of a whole payment return
/// exactly its fee:
///
/// | of 10.00 with a fee of 0.25 | running total | fee returned so far | with this refund |
/// |---|---|---|---|
/// | 3.33 | 3.33 | 0.08 | 0.08 |
/// | 3.33 | 6.66 | 0.17 | 0.09 |
/// | 3.34 | 10.00 | 0.25 | 0.08 |
#[must_use]
pub fn of_refund(payment: &Payment, nth: usize) -> Vec<Posting> {
    let Some(refund) = payment.refunds.get(nth) else { return Vec::new() };
    let before = payment.refunds[..nth].iter().fold(0, |sum, refund| sum + refund.amount.as_minor());
    let fee = fee_returned(payment, before + refund.amount.as_minor()) - fee_returned(payment, before);
    entry(refund.amount, Amount::from_minor(fee), -1)
}

/// The part of the fee that belongs to the first `refunded` minor units, rounded half up.
fn fee_returned(payment: &Payment, refunded: u64) -> u64 {
    let (amount, fee) = (u128::from(payment.amount.as_minor()), u128::from(payment.platform_fee_amount.as_minor()));
    if amount == 0 {
        return 0;
    }
    let part = (2 * fee * u128::from(refunded) + amount) / (2 * amount);
    // At most the fee, because at most the amount is refunded.
    u64::try_from(part.min(fee)).unwrap_or(u64::MAX)
}

fn entry(amount: Amount, fee: Amount, direction: i64) -> Vec<Posting> {
    // An amount is below 10^14 minor units, so it fits in an `i64`.
    let signed = |amount: Amount| direction * i64::try_from(amount.as_minor()).unwrap_or(i64::MAX);
    vec![
        Posting { account: LedgerAccount::GatewayClearing, minor: -signed(amount) },
        Posting { account: LedgerAccount::Merchant, minor: signed(amount) - signed(fee) },
        Posting { account: LedgerAccount::PlatformFee, minor: signed(fee) },
    ]
}
