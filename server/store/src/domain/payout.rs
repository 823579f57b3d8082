//! A payout as the server keeps it, and what is available for one.

use std::{fmt, ops::RangeInclusive};

use payments_core::{
    Amount, Balance, Booking, BookingKind, Currency, EventKind, KeyId, Payout, PayoutDestination, PayoutSchedule,
    PayoutStatus, Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{GatewayName, Scope, is_first};

/// Who asked for something, or approved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Whoever has this API key.
    Key(KeyId),
    /// A person at the platform, by name.
    Person(String),
    /// The platform's policy, or the simulator of the sandbox.
    Platform,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(id) => id.as_str(),
            Self::Person(name) => name,
            Self::Platform => "platform",
        })
    }
}

/// Where a scope's payouts in a currency go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub scope: Scope,
    #[serde(deserialize_with = "Currency::deserialize_closed")]
    pub currency: Currency,
    pub destination: PayoutDestination,
    /// The number of the account or the wallet, encrypted. Empty in the sandbox of a server that has no key for it.
    pub sealed_number: String,
    pub set_by: Actor,
    pub schedule: PayoutSchedule,
}

/// A payout with what only the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutRecord {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub scope: Scope,
    #[serde(deserialize_with = "known_payout")]
    pub payout: Payout,
    /// The number of the account or the wallet, encrypted.
    pub sealed_number: String,
    pub requested_by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Actor>,
    /// Who set the destination.
    pub destination_by: Actor,
    /// The position of its statement's first transaction.
    pub from: u64,
    /// Whether the next statement begins after this one's: not if the payout failed or was cancelled, even if the bank paid it
    /// after all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_statement: bool,
    /// The name of the operator's batch in which it was sent: letters, digits and hyphens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
}

/// A payout whose currency and environment this server knows.
fn known_payout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Payout, D::Error> {
    let payout = Payout::deserialize(deserializer)?;
    match payout.currency.is_known() && payout.environment.is_known() {
        true => Ok(payout),
        false => Err(D::Error::custom("its currency or its environment is unknown")),
    }
}

impl PayoutRecord {
    /// The record after this one, with the same content.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    /// The bookings that its status requires, in the order of their kinds.
    pub fn expected_bookings(&self) -> Vec<Booking> {
        use BookingKind::{PayoutFailed, PayoutPaid, PayoutPaidLate, PayoutRequested, PayoutReturned};
        let how_paid = if self.ends_statement { &[PayoutPaid][..] } else { &[PayoutFailed, PayoutPaidLate] };
        let after = match self.payout.status {
            PayoutStatus::Paid => how_paid.to_vec(),
            PayoutStatus::Returned => [how_paid, &[PayoutReturned]].concat(),
            PayoutStatus::Failed | PayoutStatus::Cancelled => vec![PayoutFailed],
            _ => Vec::new(),
        };
        let kinds = std::iter::once(PayoutRequested).chain(after);
        kinds.map(|kind| Booking::new(kind, self.payout.amount, Amount::ZERO)).collect()
    }

    /// The events that its state requires, oldest first.
    pub fn expected_events(&self) -> Vec<EventKind> {
        let payout = &self.payout;
        let ended = match payout.status {
            PayoutStatus::Failed => vec![EventKind::PayoutFailed],
            PayoutStatus::Cancelled => vec![EventKind::PayoutCancelled],
            PayoutStatus::Paid | PayoutStatus::Returned => {
                let failed = (!self.ends_statement).then_some(EventKind::PayoutFailed);
                let returned = (payout.status == PayoutStatus::Returned).then_some(EventKind::PayoutReturned);
                failed.into_iter().chain([EventKind::PayoutPaid]).chain(returned).collect()
            }
            _ => Vec::new(),
        };
        let approved = payout.approved_at.map(|_| EventKind::PayoutApproved);
        std::iter::once(EventKind::PayoutCreated).chain(approved).chain(ended).collect()
    }

    /// The invariants that it violates, checked without any other record.
    pub fn faults(&self) -> Vec<&'static str> {
        let payout = &self.payout;
        let is_paid = matches!(payout.status, PayoutStatus::Paid | PayoutStatus::Returned);
        let rules = [
            (!matches!(payout.status, PayoutStatus::Other(_)), "is in an unknown state"),
            (payout.amount > Amount::ZERO, "is of nothing"),
            (payout.statement.closing_balance.as_minor() >= 0, "takes more than there was"),
            (payout.environment == self.scope.environment, "is of another environment"),
            (payout.status.is_open() == payout.ended_at.is_none(), "endedAt does not match its state"),
            (is_paid == payout.paid_at.is_some(), "paidAt does not match its state"),
            (is_paid == payout.reference.is_some(), "its reference does not match its state"),
            (payout.approved_at.is_some() == self.approved_by.is_some(), "approvedAt does not match who approved it"),
            (is_paid || !self.ends_statement, "ends a statement and is not paid"),
            (self.approved_by.as_ref().is_none_or(|by| may_approve(self, by)), "was approved by who may not"),
            (payout.updated_at >= payout.created_at, "updated_at is before created_at"),
        ];
        rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
    }
}

/// Whether someone may approve a payout: neither who asked for it, nor who set its destination.
pub fn may_approve(payout: &PayoutRecord, by: &Actor) -> bool {
    *by == Actor::Platform || ![&payout.requested_by, &payout.destination_by].contains(&by)
}

/// The operator's rules for what is available.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutRules {
    /// The days whose payments by a gateway are still held, by their [numbers](held_day).
    pub holds: Vec<(GatewayName, RangeInclusive<u32>)>,
    /// What stays in each merchant's balance, in minor units.
    pub reserve_minor: i128,
}

/// A merchant's money in a currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Funds {
    pub balance: i128,
    /// What payments brought that gateways still hold.
    pub pending: i128,
    /// What refunds take that the server has asked gateways for.
    pub under_way: i128,
}

impl Funds {
    /// `held` is what each gateway holds of what payments brought, which may be negative.
    pub fn new(balance: i128, under_way: i128, held: &[i128]) -> Self {
        Self { balance, pending: held.iter().map(|held| (*held).max(0)).sum(), under_way }
    }

    /// What a payout can take.
    pub fn available(self, reserve_minor: i128) -> Amount {
        let minor = self.balance - self.pending - self.under_way - reserve_minor;
        Amount::from_minor(u64::try_from(minor.max(0)).unwrap_or(u64::MAX))
    }
}

/// What a condition of a payout's commit demands of the merchant's money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PayoutCondition {
    #[default]
    None,
    /// A new payout takes no more than is available, and no other one is open.
    Available(PayoutRules),
    /// The balance is not negative.
    NotOverdrawn,
}

/// Whether bookings of a kind count for a gateway's held days: those of payments and what takes from them.
pub fn is_held(booking: Booking) -> bool {
    use BookingKind::{DisputeReinstated, DisputeWithdrawn, Paid, RefundFailed, Refunded};
    matches!(booking.kind, Paid | Refunded | RefundFailed | DisputeWithdrawn | DisputeReinstated)
}

/// The number of the day of a time in Dhaka, which is six hours ahead of UTC all year, counted from 1970.
pub fn held_day(time: Timestamp) -> u32 {
    const MILLIS_AN_HOUR: i64 = 60 * 60 * 1000;
    u32::try_from((time.as_millis() + 6 * MILLIS_AN_HOUR) / (24 * MILLIS_AN_HOUR)).unwrap_or_default()
}

/// The balance that a statement closes with.
pub fn closing_balance(balance_minor: i128, amount: Amount) -> Balance {
    Balance::from_minor(balance_minor - i128::from(amount.as_minor()))
}
