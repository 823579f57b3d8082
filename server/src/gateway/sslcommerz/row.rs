//! A transaction as SSLCommerz reports it, and what it means for the payment.
//!
//! | status | meaning |
//! |---|---|
//! | `VALID`, `VALIDATED` | the money is taken, before and after the first validation |
//! | `PENDING` | the customer has opened the page and has not finished |
//! | `FAILED`, `EXPIRED`, `UNATTEMPTED` | this transaction took no money; another one of the session still may |
//! | `CANCELLED` | the customer cancelled |
//! | another | not decided |

use payments_core::{Currency, Payment};
use serde_json::Value;

use crate::{
    domain::{CostRow, GatewayAttempt},
    gateway::{
        contract::{AttemptState, Receipt, is_amount},
        decimal::decimal,
    },
};

/// Fields are empty if the report lacks them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) status: String,
    pub(super) tran_id: String,
    pub(super) val_id: String,
    pub(super) bank_tran_id: String,
    tran_date: String,
    amount: String,
    store_amount: String,
    currency: String,
    currency_type: String,
    currency_amount: String,
    risk_level: String,
    risk_title: String,
    error: String,
}

/// A field, which is a text or a number; empty if it is missing.
pub(super) fn text(object: &Value, field: &str) -> String {
    match &object[field] {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The first characters of a text.
pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

impl Row {
    pub(super) fn read(object: &Value) -> Self {
        let text = |field| text(object, field);
        Self {
            status: text("status"),
            tran_id: text("tran_id"),
            val_id: text("val_id"),
            bank_tran_id: text("bank_tran_id"),
            tran_date: text("tran_date"),
            amount: text("amount"),
            store_amount: text("store_amount"),
            currency: text("currency"),
            currency_type: text("currency_type"),
            currency_amount: text("currency_amount"),
            risk_level: text("risk_level"),
            risk_title: text("risk_title"),
            error: text("error"),
        }
    }

    pub(super) fn is_paid(&self) -> bool {
        matches!(&*self.status, "VALID" | "VALIDATED")
    }

    /// What a validation says of this transaction. Without a validation the row itself counts: it is an answer to a question
    /// of ours too, and SSLCommerz sometimes validates nothing although it has the money.
    pub(super) fn state(
        &self,
        validated: Option<&Self>,
        others: &[&Self],
        payment: &Payment,
        attempt: &GatewayAttempt,
    ) -> AttemptState {
        let row = validated.unwrap_or(self);
        let ours = [(&row.currency, &row.amount), (&row.currency_type, &row.currency_amount)];
        let fits = row.is_paid()
            && row.tran_id == attempt.invoice
            && (&row.val_id, &row.bank_tran_id) == (&self.val_id, &self.bank_tran_id)
            && !row.val_id.is_empty()
            && !row.bank_tran_id.is_empty()
            && ours.iter().all(|(currency, amount)| is_amount(payment, currency, decimal(amount)));
        let transaction = Some(self.bank_tran_id.clone()).filter(|id| !id.is_empty());
        let surplus = surplus(self, others);
        let what = match &*row.risk_level {
            _ if !fits => {
                let validated = validated.map(|it| format!(", and validates {}", it.shown())).unwrap_or_default();
                let (amount, currency, invoice) = (payment.amount, payment.currency.code(), &attempt.invoice);
                format!("SSLCommerz reports {}{validated}; expected {amount} {currency} for {invoice}", self.shown())
            }
            "0" => {
                let (transaction, cost) = (self.bank_tran_id.clone(), row.cost());
                return AttemptState::Paid(Receipt { transaction, cost, surplus });
            }
            level => format!(
                "SSLCommerz took the money in transaction {} and calls it {:?} (risk_level {level:?}): look at it in \
                 SSLCommerz's panel; resolve this as paid, or send the money back there and resolve this as failed",
                self.bank_tran_id, row.risk_title
            ),
        };
        let what = [Some(what), surplus].into_iter().flatten().collect::<Vec<_>>().join("; ");
        AttemptState::Discrepancy { what, transaction }
    }

    fn shown(&self) -> String {
        let Self { status, tran_id, bank_tran_id, amount, currency, currency_type, currency_amount, .. } = self;
        format!(
            "transaction {bank_tran_id:?} as {status:?}: {amount} {currency} ({currency_amount} {currency_type}) for {tran_id:?}"
        )
    }

    /// What SSLCommerz keeps. Its statements have the same id.
    fn cost(&self) -> Option<CostRow> {
        let kept = decimal(&self.amount)?.checked_sub(decimal(&self.store_amount)?)?;
        let (minor, currency) = (i64::try_from(kept.as_minor()).ok()?, self.currency.parse::<Currency>().ok());
        Some(CostRow { id: self.val_id.clone(), minor, currency })
    }
}

/// The transaction that paid the attempt, and those that did so too: the known one, or the first.
pub(super) fn paid<'r>(rows: &'r [Row], known: Option<&str>) -> Option<(&'r Row, Vec<&'r Row>)> {
    let mut paid: Vec<_> = rows.iter().filter(|row| row.is_paid()).collect();
    paid.sort_by_key(|row| (Some(&*row.bank_tran_id) != known, &row.tran_date));
    let (first, others) = paid.split_first()?;
    Some((first, others.iter().copied().filter(|row| row.bank_tran_id != first.bank_tran_id).collect()))
}

/// What a person sends back if the customer paid more than once.
fn surplus(first: &Row, others: &[&Row]) -> Option<String> {
    let each = others.iter().map(|row| format!("{} {} in transaction {}", row.amount, row.currency, row.bank_tran_id));
    let each = each.collect::<Vec<_>>().join(", ");
    let tran_id = &first.tran_id;
    (!each.is_empty()).then(|| {
        format!("SSLCommerz took money for {tran_id} more than once, also {each}: send that back in SSLCommerz's panel")
    })
}

/// The state of an attempt of which no transaction is paid.
pub(super) fn unpaid(rows: &[Row]) -> AttemptState {
    let is_any = |words: &[&str]| rows.iter().any(|row| words.contains(&&*row.status));
    let is_known = |row: &Row| matches!(&*row.status, "PENDING" | "FAILED" | "EXPIRED" | "UNATTEMPTED" | "CANCELLED");
    match rows.last() {
        None => AttemptState::Open,
        Some(_) if !rows.iter().all(is_known) => AttemptState::Pending,
        Some(_) if is_any(&["PENDING"]) => AttemptState::Open,
        Some(last) if is_any(&["FAILED", "EXPIRED", "UNATTEMPTED"]) => {
            let why = if last.error.is_empty() { &last.status } else { &last.error };
            AttemptState::Failed { why: Some(cut(why, 200)), code: Some(last.status.clone()) }
        }
        Some(_) => AttemptState::Cancelled,
    }
}

#[cfg(test)]
mod tests;
