//! Payouts of the merchant's balance to a bank account.

use serde_json::{Value, json};

use super::{State, Stripe, balance::PaidOut};
use crate::{lock, now, token};

#[derive(Debug)]
pub(super) struct Payout {
    pub(super) id: String,
    amount: i64,
    currency: String,
    /// The balance transaction.
    row: String,
    created: u64,
    status: &'static str,
    reconciliation_status: &'static str,
    pub(super) number: u64,
}

impl Stripe {
    /// Makes all pending money available.
    pub fn make_available(&self) {
        lock(&self.state).balance.make_available();
    }

    /// Pays out all available money of one currency that is not paid out yet. Returns the id of the payout, or `None` if no
    /// currency has money. The money of a charge becomes available after two days, or by
    /// [`make_available`](Self::make_available).
    pub fn pay_out(&self) -> Option<String> {
        let State { payouts, balance, events, .. } = &mut *lock(&self.state);
        let number = payouts.len() as u64;
        let id = token("po_", number, "payout");
        let PaidOut { amount, currency, row } = balance.pay_out(&id)?;
        let mut payout = Payout {
            id: id.clone(),
            amount,
            currency,
            row,
            created: now(),
            status: "pending",
            reconciliation_status: "in_progress",
            number,
        };
        let mut step = vec![("payout.created", payout.json())];
        payout.status = "paid";
        step.push(("payout.paid", payout.json()));
        payout.reconciliation_status = "completed";
        step.push(("payout.reconciliation_completed", payout.json()));
        payouts.push(payout);
        events.send_all(step);
        Some(id)
    }
}

impl Payout {
    pub(super) fn json(&self) -> Value {
        json!({
            "id": self.id, "object": "payout", "amount": self.amount, "application_fee": null,
            "application_fee_amount": null, "arrival_date": self.created, "automatic": true,
            "balance_transaction": self.row, "created": self.created, "currency": self.currency,
            "description": "STRIPE PAYOUT", "destination": "ba_fake", "failure_balance_transaction": null,
            "failure_code": null, "failure_message": null, "livemode": false, "metadata": {}, "method": "standard",
            "original_payout": null, "payout_method": null, "reconciliation_status": self.reconciliation_status,
            "reversed_by": null, "source_type": "card", "statement_descriptor": null, "status": self.status,
            "trace_id": {"status": "pending", "value": null}, "type": "bank_account",
        })
    }
}
