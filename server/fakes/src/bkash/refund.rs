//! Refunds of a payment.

use serde_json::{Value, json};

use super::{
    answers::{Refusal, refusal, text},
    clock,
    dialect::Dialect,
    payment::{Payment, minor},
};
use crate::now;

const MAX_REFUNDS: usize = 10;
const EQUAL_WITHIN_SECONDS: u64 = 600;
const WINDOW_SECONDS: u64 = 60 * 86_400;

#[derive(Debug)]
pub(super) struct Refund {
    id: String,
    amount: String,
    pub(super) minor: u64,
    at: u64,
    sku: String,
    reason: String,
}

impl Payment {
    /// Sends money back. `is_short` says that the merchant has none.
    pub(super) fn refund(&mut self, dialect: Dialect, body: &Value, is_short: bool) -> Result<Value, Refusal> {
        let amount_name = if dialect == Dialect::V1 { "amount" } else { "refundAmount" };
        let amount = text(body, amount_name).ok_or_else(|| refusal("2065", "Mandatory field missing"))?;
        let field = |name, missing, too_long, label| match text(body, name).unwrap_or_default() {
            "" => Err(refusal(missing, format!("{label} is required"))),
            text if text.len() > 255 => Err(refusal(too_long, format!("{label} is too long"))),
            text => Ok(text.to_owned()),
        };
        let sku = field("sku", "2073", "2075", "SKU")?;
        let reason = field("reason", "2078", "2076", "Reason")?;
        let minor =
            minor(amount).filter(|_| has_two_decimals(amount)).ok_or_else(|| refusal("2006", "Invalid amount"))?;
        let given = dialect.text(body, "trxID").ok_or_else(|| refusal("2065", "Mandatory field missing"))?;
        let Some(transaction) = &self.transaction else { return Err(refusal("2127", "Payment is not completed")) };
        if given != transaction {
            return Err(refusal("2077", "Invalid transaction"));
        }
        let at = now();
        if at > self.taken_at + WINDOW_SECONDS {
            return Err(refusal("2071", "Refund window is over"));
        }
        let is_equal = |it: &Refund| it.minor == minor && at < it.at + EQUAL_WITHIN_SECONDS;
        if self.refunds.len() >= MAX_REFUNDS || self.refunds.iter().any(is_equal) {
            // No document has a code for these two refusals.
            return Err(refusal("2901", "Refund limit reached or duplicate refund"));
        }
        if minor > self.refundable() {
            return Err(refusal("2072", "Refund amount exceed payment amount"));
        }
        if is_short {
            return Err(refusal("2023", "Insufficient Balance"));
        }
        let id = format!("{transaction}R{:02}", self.refunds.len() + 1);
        let refund = Refund { id, amount: amount.to_owned(), minor, at, sku, reason };
        let json = self.refund_json(dialect, &refund);
        self.refunds.push(refund);
        Ok(json)
    }

    /// Reports the refunds: all of them in v2, the last one in v1.
    pub(super) fn refund_status(&self, dialect: Dialect, body: &Value) -> Result<Value, Refusal> {
        let given = dialect.text(body, "trxID").ok_or_else(|| refusal("2065", "Mandatory field missing"))?;
        if self.transaction.as_deref() != Some(given) {
            return Err(refusal("3045", "Transaction is not of this payment"));
        }
        if dialect == Dialect::V1 {
            let last = self.refunds.last().ok_or_else(|| refusal("2033", "Transaction not found"))?;
            return Ok(self.refund_json(dialect, last));
        }
        let refund = |it: &Refund| {
            json!({"refundTrxId": it.id, "refundTransactionStatus": "Completed", "refundAmount": it.amount,
                "completedTime": clock::in_reply(it.at)})
        };
        Ok(json!({"originalTrxID": self.transaction, "originalTrxAmount": self.amount,
            "originalTrxCompletedTime": clock::in_reply(self.taken_at),
            "refundTransactions": self.refunds.iter().map(refund).collect::<Vec<_>>()}))
    }

    fn refund_json(&self, dialect: Dialect, refund: &Refund) -> Value {
        let mut json = json!({"originalTrxID": self.transaction, "refundTrxID": refund.id, "currency": "BDT",
            "completedTime": clock::in_reply(refund.at)});
        let more = match dialect {
            Dialect::V1 => json!({"transactionStatus": "Completed", "amount": refund.amount, "charge": "0.00"}),
            Dialect::V2 => json!({"refundTransactionStatus": "Completed", "refundAmount": refund.amount,
                "originalTrxAmount": self.amount, "sku": refund.sku, "reason": refund.reason}),
        };
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }

    /// What can still be refunded, in minor units.
    pub(super) fn refundable(&self) -> u64 {
        self.amount_minor.saturating_sub(self.refunds.iter().map(|it| it.minor).sum())
    }
}

/// Whether a decimal has two digits after its point.
pub(super) fn has_two_decimals(text: &str) -> bool {
    text.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2)
}
