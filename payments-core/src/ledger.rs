//! The double-entry ledger: its accounts, and what each change of the books posts to them.
//!
//! A [`Booking`] is one change of the books. Its kind is a row of the chart below; its postings sum to zero. What others owe
//! the platform is negative, what the platform owes is positive.
//!
//! | change | postings: `A` the amount, `F` the fee in it, `N` the rest |
//! |---|---|
//! | paid | GatewayClearing −A, Merchant +N, PlatformFee +F |
//! | refunded | GatewayClearing +A, Merchant −N, PlatformFee −F |
//! | a refund sent by hand, from the bank | GatewayClearing −A, Bank +A |
//! | a refund that was booked failed | GatewayClearing −A, Merchant +N, PlatformFee +F |
//! | money withdrawn for a dispute | GatewayClearing +A, Merchant −N, PlatformFee −F |
//! | money reinstated after a dispute | GatewayClearing −A, Merchant +N, PlatformFee +F |
//! | a gateway's cost | GatewayCost −A, GatewayClearing +A |
//! | a gateway's cost that the merchant bears | Merchant −A, GatewayClearing +A |
//! | a settled row | GatewayClearing +A, Bank −A |
//! | a settled row without a payment | Suspense +A, Bank −A |
//! | such a row, resolved | Suspense −A, GatewayClearing +A |
//! | the platform takes its fees | PlatformFee −A, Bank +A |
//! | the owner pays in | Bank −A, Owner +A |
//! | a bank's charge | GatewayCost −A, Bank +A |
//! | a payout requested | Merchant −A, PayoutsInTransit +A |
//! | a payout paid | PayoutsInTransit −A, Bank +A |
//! | a payout failed or cancelled | PayoutsInTransit −A, Merchant +A |
//! | a payout paid after it had failed | Merchant −A, Bank +A |
//! | a payout returned after it was paid | Bank −A, Merchant +A |
//!
//! A row never changes, because stored bookings name it. A new rule is a new row.

use serde::{Deserialize, Serialize};

use crate::{Amount, Payment};

/// An account of the books, in one environment and currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerAccount {
    /// Captured by a gateway and not yet settled to the bank. Each gateway has one.
    GatewayClearing,
    /// The platform's bank account.
    Bank,
    /// The platform's own money, which it put in or took out.
    Owner,
    /// The balance of a merchant: what the platform owes it.
    Merchant,
    /// The platform's fees, until it takes them.
    PlatformFee,
    /// What gateways and banks kept.
    GatewayCost,
    /// Reserved for a payout.
    PayoutsInTransit,
    /// Settled rows without a payment, until a person resolves them.
    Suspense,
}

impl LedgerAccount {
    /// All accounts.
    pub const ALL: [Self; 8] = [
        Self::GatewayClearing,
        Self::Bank,
        Self::Owner,
        Self::Merchant,
        Self::PlatformFee,
        Self::GatewayCost,
        Self::PayoutsInTransit,
        Self::Suspense,
    ];

    /// Its name, as it is stored and exported.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GatewayClearing => "gateway_clearing",
            Self::Bank => "bank",
            Self::Owner => "owner",
            Self::Merchant => "merchant",
            Self::PlatformFee => "platform_fee",
            Self::GatewayCost => "gateway_cost",
            Self::PayoutsInTransit => "payouts_in_transit",
            Self::Suspense => "suspense",
        }
    }

    /// Whether each developer has one. The others are the platform's.
    #[must_use]
    pub const fn is_of_a_developer(self) -> bool {
        matches!(self, Self::Merchant | Self::PlatformFee | Self::PayoutsInTransit)
    }
}

/// A posting: a change of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The account.
    pub account: LedgerAccount,
    /// The change in minor units (paisa, cents) of the booking's currency.
    pub minor: i64,
}

/// The kind of a booking: a row of the [chart](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BookingKind {
    /// A payment was paid.
    Paid,
    /// A payment was refunded, or a part of it.
    Refunded,
    /// A person sent a refund's money by hand, from the bank.
    RefundSent,
    /// A refund that was booked failed.
    RefundFailed,
    /// The gateway withdrew money for a dispute.
    DisputeWithdrawn,
    /// The gateway reinstated money after a dispute.
    DisputeReinstated,
    /// What a gateway kept.
    GatewayCost,
    /// What a gateway kept, and the merchant bears.
    MerchantCost,
    /// A row of a settlement that belongs to a payment.
    RowSettled,
    /// A row of a settlement that belongs to no payment.
    RowUnmatched,
    /// A person resolved a row that belonged to no payment.
    RowResolved,
    /// The platform took its fees.
    FeesTaken,
    /// The owner paid in.
    OwnerPaidIn,
    /// A bank's charge.
    BankCharged,
    /// A merchant requested a payout.
    PayoutRequested,
    /// The bank paid a payout.
    PayoutPaid,
    /// A payout failed or was cancelled.
    PayoutFailed,
    /// The bank paid a payout that had failed.
    PayoutPaidLate,
    /// The bank returned a payout.
    PayoutReturned,
}

/// The part of a booking's amount that a posting has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Amount,
    Fee,
    Rest,
}

impl BookingKind {
    /// Its row of the chart: for each posting the account, the sign, and the part of the amount.
    const fn row(self) -> &'static [(LedgerAccount, i64, Part)] {
        use LedgerAccount::{
            Bank, GatewayClearing, GatewayCost, Merchant, Owner, PayoutsInTransit, PlatformFee, Suspense,
        };
        use Part::{Amount, Fee, Rest};
        match self {
            Self::Paid | Self::RefundFailed | Self::DisputeReinstated => {
                &[(GatewayClearing, -1, Amount), (Merchant, 1, Rest), (PlatformFee, 1, Fee)]
            }
            Self::Refunded | Self::DisputeWithdrawn => {
                &[(GatewayClearing, 1, Amount), (Merchant, -1, Rest), (PlatformFee, -1, Fee)]
            }
            Self::RefundSent => &[(GatewayClearing, -1, Amount), (Bank, 1, Amount)],
            Self::GatewayCost => &[(GatewayCost, -1, Amount), (GatewayClearing, 1, Amount)],
            Self::MerchantCost => &[(Merchant, -1, Amount), (GatewayClearing, 1, Amount)],
            Self::RowSettled => &[(GatewayClearing, 1, Amount), (Bank, -1, Amount)],
            Self::RowUnmatched => &[(Suspense, 1, Amount), (Bank, -1, Amount)],
            Self::RowResolved => &[(Suspense, -1, Amount), (GatewayClearing, 1, Amount)],
            Self::FeesTaken => &[(PlatformFee, -1, Amount), (Bank, 1, Amount)],
            Self::OwnerPaidIn => &[(Bank, -1, Amount), (Owner, 1, Amount)],
            Self::BankCharged => &[(GatewayCost, -1, Amount), (Bank, 1, Amount)],
            Self::PayoutRequested => &[(Merchant, -1, Amount), (PayoutsInTransit, 1, Amount)],
            Self::PayoutPaid => &[(PayoutsInTransit, -1, Amount), (Bank, 1, Amount)],
            Self::PayoutFailed => &[(PayoutsInTransit, -1, Amount), (Merchant, 1, Amount)],
            Self::PayoutPaidLate => &[(Merchant, -1, Amount), (Bank, 1, Amount)],
            Self::PayoutReturned => &[(Bank, -1, Amount), (Merchant, 1, Amount)],
        }
    }

    /// Whether it changes a merchant's balance.
    #[must_use]
    pub fn is_of_a_merchant(self) -> bool {
        self.row().iter().any(|(account, ..)| *account == LedgerAccount::Merchant)
    }
}

/// A change of the books, in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Booking {
    /// Its row of the chart.
    pub kind: BookingKind,
    /// The whole amount in minor units. A settled row may be negative.
    pub minor: i64,
    /// The part of the amount that is the platform's fee, in minor units.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fee_minor: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(minor: &i64) -> bool {
    *minor == 0
}

impl Booking {
    /// A booking of an amount with the fee in it.
    #[must_use]
    pub fn new(kind: BookingKind, amount: Amount, fee: Amount) -> Self {
        // An amount is below 10^14 minor units, so it fits in an `i64`.
        let minor = |amount: Amount| i64::try_from(amount.as_minor()).unwrap_or(i64::MAX);
        Self { kind, minor: minor(amount), fee_minor: minor(fee) }
    }

    /// Its postings, which sum to zero. None of them is zero.
    pub fn postings(self) -> impl Iterator<Item = Posting> {
        let of = move |part: Part| match part {
            Part::Amount => self.minor,
            Part::Fee => self.fee_minor,
            Part::Rest => self.minor - self.fee_minor,
        };
        let postings = self.kind.row().iter();
        let postings =
            postings.map(move |(account, sign, part)| Posting { account: *account, minor: sign * of(*part) });
        postings.filter(|posting| posting.minor != 0)
    }

    /// How it changes an account.
    #[must_use]
    pub fn change_of(self, account: LedgerAccount) -> i64 {
        self.postings().filter(|posting| posting.account == account).map(|posting| posting.minor).sum()
    }
}

/// The part of the fee that a new refund of `amount` returns, or a new withdrawal for a dispute that returns fees.
///
/// Together with the refunds that stand and the money that such disputes took, it returns the same part of the fee as of the
/// amount, rounded half up. So the parts of a whole payment return exactly its fee:
///
/// | of 10.00 with a fee of 0.25 | running total | fee returned so far | with this refund |
/// |---|---|---|---|
/// | 3.33 | 3.33 | 0.08 | 0.08 |
/// | 3.33 | 6.66 | 0.17 | 0.09 |
/// | 3.34 | 10.00 | 0.25 | 0.08 |
#[must_use]
pub fn fee_returned_with(payment: &Payment, amount: Amount) -> Amount {
    let refunds = payment.refunds.iter().filter(|refund| refund.stands());
    let refunds = refunds.map(|refund| (refund.amount, refund.fee_returned.unwrap_or_default()));
    let disputes = payment.disputes.iter().filter_map(|it| Some((it.amount_taken(), it.fee_returned?)));
    let (before, returned) = refunds
        .chain(disputes)
        .fold((0, 0), |(before, returned), (amount, fee)| (before + amount.as_minor(), returned + fee.as_minor()));
    let part = part_of(payment.platform_fee_amount, Amount::from_minor(before + amount.as_minor()), payment.amount);
    Amount::from_minor(part.as_minor().saturating_sub(returned))
}

/// The part of a fee on `amount` that belongs to `part` of the amount, rounded half up. At most the fee, because a dispute may
/// take again what was refunded.
pub(crate) fn part_of(fee: Amount, part: Amount, amount: Amount) -> Amount {
    let (whole, part, amount) =
        (u128::from(fee.as_minor()), u128::from(part.as_minor()), u128::from(amount.as_minor()));
    if amount == 0 {
        return Amount::ZERO;
    }
    let rounded = (2 * whole * part + amount) / (2 * amount);
    u64::try_from(rounded).map_or(fee, |minor| fee.min(Amount::from_minor(minor)))
}

#[cfg(test)]
mod tests;
