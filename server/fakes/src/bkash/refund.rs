//! Refunds of a payment.

use serde_json::{Value, json};

use super::{
    amount::{has_two_decimals, minor},
    answers::{Refusal, refusal, text},
    clock,
    dialect::Dialect,
};
use crate::now;

const MAX_REFUNDS: usize = 10;
const EQUAL_WITHIN_SECONDS: u64 = 600;
const WINDOW_SECONDS: u64 = 60 * 86_400;

/// What refunds need of their payment.
pub(super) struct Refunded {
    pub(super) transaction: Option<String>,
    pub(super) amount: String,
    pub(super) amount_minor: u64,
    /// When the money was taken.
    pub(super) taken_at: u64,
}

/// The refunds of a payment.
#[derive(Debug, Default)]
pub(super) struct Refunds(Vec<Refund>);

#[derive(Debug)]
struct Refund {
    id: String,
    amount: String,
    minor: u64,
    at: u64,
    sku: String,
    reason: String,
}

impl Refunds {
    /// Sends money back. `is_short` says that the merchant has none.
    pub(super) fn refund(
        &mut self,
        of: &Refunded,
        dialect: Dialect,
        body: &Value,
        is_short: bool,
    ) -> Result<Value, Refusal> {
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
        let Some(transaction) = &of.transaction else { return Err(refusal("2127", "Payment is not completed")) };
        if given != transaction {
            return Err(refusal("2077", "Invalid transaction"));
        }
        let at = now();
        if at > of.taken_at + WINDOW_SECONDS {
            return Err(refusal("2071", "Refund window is over"));
        }
        let is_equal = |it: &Refund| it.minor == minor && at < it.at + EQUAL_WITHIN_SECONDS;
        if self.0.len() >= MAX_REFUNDS || self.0.iter().any(is_equal) {
            // No document has a code for these two refusals.
            return Err(refusal("2901", "Refund limit reached or duplicate refund"));
        }
        if minor > self.left_of(of.amount_minor) {
            return Err(refusal("2072", "Refund amount exceed payment amount"));
        }
        if is_short {
            return Err(refusal("2023", "Insufficient Balance"));
        }
        let id = format!("{transaction}R{:02}", self.0.len() + 1);
        let refund = Refund { id, amount: amount.to_owned(), minor, at, sku, reason };
        let json = refund.json(of, dialect);
        self.0.push(refund);
        Ok(json)
    }

    /// Reports the refunds: all of them in v2, the last one in v1.
    pub(super) fn status(&self, of: &Refunded, dialect: Dialect, body: &Value) -> Result<Value, Refusal> {
        let given = dialect.text(body, "trxID").ok_or_else(|| refusal("2065", "Mandatory field missing"))?;
        if of.transaction.as_deref() != Some(given) {
            return Err(refusal("3045", "Transaction is not of this payment"));
        }
        if dialect == Dialect::V1 {
            let last = self.0.last().ok_or_else(|| refusal("2033", "Transaction not found"))?;
            return Ok(last.json(of, dialect));
        }
        let refund = |it: &Refund| {
            json!({"refundTrxId": it.id, "refundTransactionStatus": "Completed", "refundAmount": it.amount,
                "completedTime": clock::in_reply(it.at)})
        };
        Ok(json!({"originalTrxID": of.transaction, "originalTrxAmount": of.amount,
            "originalTrxCompletedTime": clock::in_reply(of.taken_at),
            "refundTransactions": self.0.iter().map(refund).collect::<Vec<_>>()}))
    }

    pub(super) fn count(&self) -> u32 {
        self.0.len().try_into().unwrap_or(u32::MAX)
    }

    /// How much was refunded, in minor units.
    pub(super) fn minor(&self) -> u64 {
        self.0.iter().map(|it| it.minor).sum()
    }

    /// What can still be refunded of an amount, in minor units.
    pub(super) fn left_of(&self, amount_minor: u64) -> u64 {
        amount_minor.saturating_sub(self.minor())
    }
}

impl Refund {
    fn json(&self, of: &Refunded, dialect: Dialect) -> Value {
        let mut json = json!({"originalTrxID": of.transaction, "refundTrxID": self.id, "currency": "BDT",
            "completedTime": clock::in_reply(self.at)});
        let more = match dialect {
            Dialect::V1 => json!({"transactionStatus": "Completed", "amount": self.amount, "charge": "0.00"}),
            Dialect::V2 => json!({"refundTransactionStatus": "Completed", "refundAmount": self.amount,
                "originalTrxAmount": of.amount, "sku": self.sku, "reason": self.reason}),
        };
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }
}
