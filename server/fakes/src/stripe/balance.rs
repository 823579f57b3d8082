//! Balance transactions: one for each movement of money in the merchant's balance.

use serde_json::{Value, json};

use super::{State, Stripe, known::charge_fee, session::Session};
use crate::{lock, now, token};

/// How long the money of a charge is pending, in seconds.
const PENDING: u64 = 2 * 24 * 3600;

/// The merchant's balance.
#[derive(Debug, Default)]
pub(super) struct Balance {
    rows: Vec<Row>,
    has_late_fees: bool,
}

/// A balance transaction.
#[derive(Debug)]
pub(super) struct Row {
    id: String,
    movement: Movement,
    source: String,
    amount: i64,
    fee: u64,
    currency: String,
    created: u64,
    available_on: u64,
    /// The payout that holds it.
    payout: Option<String>,
}

/// The money of a payout.
pub(super) struct PaidOut {
    pub(super) amount: i64,
    pub(super) currency: String,
    /// The balance transaction of the payout itself.
    pub(super) row: String,
}

/// Why money moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Movement {
    Charge,
    Refund,
    RefundFailure,
    Dispute,
    DisputeReversal,
    Payout,
}

impl Movement {
    /// The `type`, the `reporting_category`, and the description of the fee.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::Charge => ["charge", "charge", "Stripe processing fees"],
            Self::Refund => ["refund", "refund", ""],
            Self::RefundFailure => ["refund_failure", "refund_failure", ""],
            Self::Dispute => ["adjustment", "dispute", "Dispute fee"],
            Self::DisputeReversal => ["adjustment", "dispute_reversal", ""],
            Self::Payout => ["payout", "payout", ""],
        }
    }
}

impl Stripe {
    /// Makes the balance transactions of charges, and so their fees, unknown until [`make_fee_known`](Self::make_fee_known).
    pub fn delay_fees(&self, are_late: bool) {
        lock(&self.state).balance.has_late_fees = are_late;
    }

    /// Makes the fee of a charge known. `of` is the id of the session, the payment intent or the charge, or the reference.
    /// Returns whether the fee was unknown.
    pub fn make_fee_known(&self, of: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(session) = state.charged(of) else { return false };
        let State { sessions, balance, events, .. } = &mut *state;
        let Some(session) = sessions.get_mut(&session) else { return false };
        let is_booked = balance.book_known_charge(session);
        if is_booked {
            events.send("charge.updated", &session.charge_json());
        }
        is_booked
    }
}

impl Balance {
    /// Books the charge of a session, unless it is booked or its fee comes later.
    pub(super) fn book_charge(&mut self, session: &mut Session) {
        if !self.has_late_fees {
            self.book_known_charge(session);
        }
    }

    /// Books the charge of a session. Returns whether it was not booked yet.
    fn book_known_charge(&mut self, session: &mut Session) -> bool {
        let Some(charge) = session.charge.as_ref().filter(|charge| charge.row.is_none()) else { return false };
        let (amount, source) = (session.amount, charge.id.clone());
        let fee = charge_fee(amount);
        let row = self.book(session, Movement::Charge, &source, amount.cast_signed(), fee);
        session.kept += fee;
        if let Some(charge) = &mut session.charge {
            charge.row = Some(row);
        }
        true
    }

    /// Books a movement of money of a session's charge. Returns the id of its balance transaction.
    pub(super) fn book(
        &mut self,
        session: &Session,
        movement: Movement,
        source: &str,
        amount: i64,
        fee: u64,
    ) -> String {
        let charged = session.charge.as_ref().map_or(0, |charge| charge.created);
        let created = now();
        self.add(Row {
            id: String::new(),
            movement,
            source: source.to_owned(),
            amount,
            fee,
            currency: session.currency.clone(),
            created,
            // Money of a charge does not become available before the charge.
            available_on: created.max(charged + PENDING),
            payout: None,
        })
    }

    fn add(&mut self, row: Row) -> String {
        let id = token("txn_", self.rows.len() as u64, "balance transaction");
        self.rows.push(Row { id: id.clone(), ..row });
        id
    }

    /// Makes all pending money available.
    pub(super) fn make_available(&mut self) {
        self.rows.iter_mut().for_each(|row| row.available_on = row.available_on.min(now()));
    }

    /// Puts the available money of the first currency that has any into a payout.
    pub(super) fn pay_out(&mut self, payout: &str) -> Option<PaidOut> {
        let is_free = |row: &Row| row.payout.is_none() && row.is_available();
        let mut sums: Vec<(&String, i64)> = Vec::new();
        for row in self.rows.iter().filter(|row| is_free(row)) {
            match sums.iter_mut().find(|(currency, _)| *currency == &row.currency) {
                Some((_, sum)) => *sum += row.net(),
                None => sums.push((&row.currency, row.net())),
            }
        }
        let (currency, amount) = sums.into_iter().find(|(_, sum)| *sum > 0)?;
        let currency = currency.clone();
        for row in self.rows.iter_mut().filter(|row| is_free(row) && row.currency == currency) {
            row.payout = Some(payout.to_owned());
        }
        let row = self.add(Row {
            id: String::new(),
            movement: Movement::Payout,
            source: payout.to_owned(),
            amount: -amount,
            fee: 0,
            currency: currency.clone(),
            created: now(),
            available_on: now(),
            payout: Some(payout.to_owned()),
        });
        Some(PaidOut { amount, currency, row })
    }

    /// All balance transactions, or those of a payout, newest first.
    pub(super) fn newest_first(&self, payout: Option<&String>) -> Vec<Value> {
        let is_of = |row: &&Row| payout.is_none() || row.payout.as_ref() == payout;
        self.rows.iter().rev().filter(is_of).map(Row::json).collect()
    }

    /// The balance transaction with this id.
    pub(super) fn row(&self, id: &str) -> Option<Value> {
        self.rows.iter().find(|row| row.id == id).map(Row::json)
    }
}

impl Row {
    const fn net(&self) -> i64 {
        self.amount - self.fee.cast_signed()
    }

    fn is_available(&self) -> bool {
        now() >= self.available_on
    }

    fn json(&self) -> Value {
        let [kind, category, fee_description] = self.movement.words();
        let mut fees = Vec::new();
        if self.fee > 0 {
            fees.push(json!({"amount": self.fee, "application": null, "currency": self.currency,
                "description": fee_description, "type": "stripe_fee"}));
        }
        json!({
            "id": self.id, "object": "balance_transaction", "amount": self.amount, "available_on": self.available_on,
            "balance_type": "payments", "created": self.created, "currency": self.currency, "description": null,
            "exchange_rate": null, "fee": self.fee, "fee_details": fees, "net": self.net(),
            "reporting_category": category, "source": self.source,
            "status": if self.is_available() { "available" } else { "pending" }, "type": kind,
        })
    }
}
