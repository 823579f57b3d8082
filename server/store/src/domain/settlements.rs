//! Rows of gateways' statements: what a gateway settled to the bank, kept for itself, or took back.

use payments_core::{Booking, BookingKind, Currency, Day, Environment, PaymentId, RefundStatus, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CostRow, GatewayName, Session};

/// How many settled rows a payment may have.
pub const MAX_SETTLED: usize = 100;

/// What a row of a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    Payment,
    Refund,
    Dispute,
    /// What the gateway kept. The whole row is a cost.
    Fee,
    Other,
}

impl RowKind {
    pub const ALL: [Self; 5] = [Self::Payment, Self::Refund, Self::Dispute, Self::Fee, Self::Other];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Fee => "fee",
            Self::Other => "other",
        }
    }
}

/// A row of a gateway's statement. Amounts are in minor units; those that the gateway takes are negative.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct StatementRow {
    /// The gateway's id of the row.
    pub id: String,
    pub kind: RowKind,
    /// The names by which the gateway may know the payment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    pub gross: i64,
    /// What the gateway kept of the gross. Negative if it returned some.
    #[serde(default)]
    pub fee: i64,
    pub net: i64,
    #[serde(deserialize_with = "Currency::deserialize_closed")]
    pub currency: Currency,
    pub date: Day,
}

impl StatementRow {
    /// The row's cost.
    pub fn cost(&self) -> CostRow {
        let minor = if self.kind == RowKind::Fee { self.net.saturating_neg() } else { self.fee };
        CostRow { id: self.id.clone(), minor, currency: Some(self.currency) }
    }
}

/// An imported row. It says for good where the row is booked: in its payment's cell, or as one without a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledRow {
    #[serde(default, skip_serializing_if = "super::is_first")]
    pub version: u64,
    pub gateway: GatewayName,
    pub row: StatementRow,
    pub imported_at: Timestamp,
    /// The payment to which the row belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<PaymentId>,
    /// When a person found the payment of a row that had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    /// Our amount, if the row's gross is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<i64>,
}

impl SettledRow {
    pub fn new(gateway: GatewayName, row: StatementRow, imported_at: Timestamp) -> Self {
        Self { version: 0, gateway, row, imported_at, payment: None, resolved_at: None, ours: None }
    }

    /// The row with its payment.
    pub fn of(self, session: &Session) -> Self {
        let ours = session.our_amount(&self.row).filter(|ours| *ours != self.row.gross);
        Self { payment: Some(session.payment.id.clone()), ours, ..self }
    }

    /// The row's bookings that are not its payment's, with their times.
    pub fn bookings(&self) -> impl Iterator<Item = (Timestamp, Booking)> {
        let of = |kind| Booking { kind, minor: self.row.net, fee_minor: 0 };
        let is_unmatched = self.payment.is_none() || self.resolved_at.is_some();
        let unmatched = is_unmatched.then(|| (self.imported_at, of(BookingKind::RowUnmatched)));
        unmatched.into_iter().chain(self.resolved_at.map(|at| (at, of(BookingKind::RowResolved))))
    }
}

/// A settled row of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRow {
    /// The gateway's id of the row.
    pub row: String,
    pub kind: RowKind,
    /// What the bank got, in minor units.
    pub net: i64,
    /// Whether a person found this payment, so that the row is booked elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_resolved: bool,
}

impl PaymentRow {
    /// The booking; `None` if no money moved, or if it is not the payment's.
    pub fn booking(&self) -> Option<Booking> {
        let booking = Booking { kind: BookingKind::RowSettled, minor: self.net, fee_minor: 0 };
        (self.net != 0 && !self.is_resolved).then_some(booking)
    }
}

impl Session {
    /// Whether rows of this gateway can belong to the payment: it was paid there.
    pub fn was_paid_at(&self, gateway: GatewayName) -> bool {
        let is_there = self.attempt.as_ref().is_some_and(|attempt| attempt.gateway == gateway);
        is_there && self.payment.paid_at.is_some() && self.payment.environment == Environment::Live
    }

    /// Whether the payment lacks this settled row, and has room for it.
    pub fn lacks_row(&self, id: &str) -> bool {
        let is_new = self.settled.iter().all(|it| it.row != id) || planted!(RowCountedTwice);
        is_new && self.settled.len() < MAX_SETTLED
    }

    /// Adds a settled row. Returns its booking.
    pub fn settle(&mut self, settled: &SettledRow) -> Option<Booking> {
        let StatementRow { id, kind, net, .. } = &settled.row;
        let row = PaymentRow { row: id.clone(), kind: *kind, net: *net, is_resolved: settled.resolved_at.is_some() };
        let booking = row.booking();
        self.settled.push(row);
        booking
    }

    fn settled_of(&self, kind: RowKind) -> usize {
        self.settled.iter().filter(|it| it.kind == kind).count()
    }

    /// The refunds that the gateway made, with their times and amounts.
    fn gateway_refunds(&self) -> impl Iterator<Item = (Timestamp, i64)> {
        let made = self.payment.refunds.iter();
        let made = made.filter(|it| !it.requires_manual_settlement && it.status == RefundStatus::Succeeded);
        made.map(|it| (it.created_at, i64::try_from(it.amount.as_minor()).unwrap_or(i64::MAX)))
    }

    /// Since when the payment, or a refund of it, waits for its settled row.
    pub fn unsettled_since(&self) -> Option<Timestamp> {
        let gateway = self.attempt.as_ref()?.gateway;
        if !self.was_paid_at(gateway) {
            return None;
        }
        let paid = self.payment.paid_at.filter(|_| self.settled_of(RowKind::Payment) == 0);
        paid.or_else(|| self.gateway_refunds().map(|(at, _)| at).nth(self.settled_of(RowKind::Refund)))
    }

    /// Our amount for a row; `None` if it has none. Of a refund it is one of that amount, or the next one without a row.
    fn our_amount(&self, row: &StatementRow) -> Option<i64> {
        match row.kind {
            RowKind::Payment => i64::try_from(self.payment.amount.as_minor()).ok(),
            RowKind::Refund => {
                let amounts: Vec<_> = self.gateway_refunds().map(|(_, minor)| -minor).collect();
                let same = amounts.iter().find(|minor| **minor == row.gross);
                same.or_else(|| amounts.get(self.settled_of(RowKind::Refund))).copied().or(Some(0))
            }
            RowKind::Dispute | RowKind::Fee | RowKind::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_core::LedgerAccount;

    use super::*;
    use crate::domain::samples::{at, attempt, session};

    fn row(kind: RowKind, gross: i64, fee: i64) -> StatementRow {
        let (currency, date) = (Currency::Bdt, "2026-03-01".parse().unwrap());
        StatementRow { id: "r1".into(), kind, references: Vec::new(), gross, fee, net: gross - fee, currency, date }
    }

    const WALLET: GatewayName = GatewayName::of("wallet");

    fn paid() -> Session {
        let mut session = session();
        session.payment.paid_at = Some(at(9));
        session.attempt = Some(attempt("a"));
        session
    }

    #[test]
    fn a_payment_is_unsettled_until_its_row_is_there_and_each_row_is_booked_once() {
        let mut session = paid();
        assert_eq!(session.unsettled_since(), Some(at(9)));
        let settled = SettledRow::new(WALLET, row(RowKind::Payment, 10_000, 150), at(20)).of(&session);
        assert_eq!((settled.ours, settled.bookings().count(), settled.row.cost().minor), (None, 0, 150));
        let booking = session.settle(&settled).unwrap();
        assert_eq!((booking.kind, booking.minor), (BookingKind::RowSettled, 9_850));
        assert_eq!((session.unsettled_since(), session.lacks_row("r1"), session.lacks_row("r2")), (None, false, true));
        let refund = serde_json::json!([{"id": "ref_2", "amount": 40, "currency": "BDT", "reason": null, "status":
            "succeeded", "requiresManualSettlement": false, "createdAt": at(30), "settledAt": null}]);
        session.payment.refunds = serde_json::from_value(refund).unwrap();
        assert_eq!(session.unsettled_since(), Some(at(30)));
        for (gross, ours) in [(-4_000, None), (-3_999, Some(-4_000))] {
            let settled = SettledRow::new(WALLET, row(RowKind::Refund, gross, 0), at(40)).of(&session);
            assert_eq!(settled.ours, ours);
        }
    }

    #[test]
    fn a_row_without_a_payment_is_suspended_and_its_resolution_moves_it_to_the_gateway() {
        let mut settled = SettledRow::new(WALLET, row(RowKind::Payment, 500, 10), at(20));
        let sum = |it: &SettledRow, account| it.bookings().map(|(_, booking)| booking.change_of(account)).sum::<i64>();
        let accounts = [LedgerAccount::Suspense, LedgerAccount::Bank, LedgerAccount::GatewayClearing];
        assert_eq!(accounts.map(|account| sum(&settled, account)), [490, -490, 0]);
        let mut session = paid();
        settled = SettledRow { resolved_at: Some(at(30)), ..settled }.of(&session);
        assert_eq!(accounts.map(|account| sum(&settled, account)), [0, -490, 490]);
        assert_eq!((session.settle(&settled), settled.ours), (None, Some(10_000)));
    }

    #[test]
    fn only_a_live_payment_that_was_paid_at_the_gateway_has_its_rows() {
        assert!(paid().was_paid_at(WALLET) && !paid().was_paid_at(GatewayName::of("cards")));
        let mut unpaid = paid();
        unpaid.payment.paid_at = None;
        assert!(!unpaid.was_paid_at(WALLET) && unpaid.unsettled_since().is_none());
        let fee = row(RowKind::Fee, -1_500, 0);
        assert_eq!(fee.cost().minor, 1_500);
    }
}
