//! Payments.

use serde_json::{Value, json};

use super::{
    answers::{failure, text},
    known::{POOR_WALLET, WALLET},
};
use crate::{Answer, Entry, escaped, token};

#[derive(Debug)]
pub(super) struct Payment {
    pub(super) id: String,
    pub(super) invoice: String,
    pub(super) amount: String,
    amount_minor: u64,
    payer_reference: String,
    callback: String,
    pub(super) wallet: Option<String>,
    pub(super) is_cancelled: bool,
    pub(super) transaction: Option<String>,
    /// Whether the merchant has requested the money.
    pub(super) is_asked_for: bool,
    /// Whether the fake answered that it does not take the money.
    is_refused: bool,
    /// How often the money was taken.
    taken: u32,
}

impl Payment {
    /// Creates a payment from a request body.
    pub(super) fn new(body: &Value, number: u64) -> Result<Self, Answer> {
        let fields = ["mode", "payerReference", "callbackURL", "amount", "currency", "intent", "merchantInvoiceNumber"];
        for field in fields {
            match body.get(field) {
                Some(Value::String(text)) if !text.is_empty() && text.len() <= 255 => {}
                _ => return Err(failure("2065", &format!("Mandatory field missing or not a string: {field}"))),
            }
        }
        let field = |name| text(body, name).unwrap_or_default().to_owned();
        for (name, wanted, code) in [("mode", "0011", "2054"), ("intent", "sale", "2008"), ("currency", "BDT", "2007")]
        {
            if field(name) != wanted {
                return Err(failure(code, &format!("Invalid {name}")));
            }
        }
        let amount_minor = minor(&field("amount")).ok_or_else(|| failure("2006", "Invalid amount"))?;
        if url::Url::parse(&field("callbackURL")).is_err() {
            return Err(failure("2065", "Invalid callbackURL"));
        }
        Ok(Self {
            id: token("TR0011", number, "payment"),
            invoice: field("merchantInvoiceNumber"),
            amount: field("amount"),
            amount_minor,
            payer_reference: field("payerReference"),
            callback: field("callbackURL"),
            wallet: None,
            is_cancelled: false,
            transaction: None,
            is_asked_for: false,
            is_refused: false,
            taken: 0,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.is_cancelled && self.transaction.is_none()
    }

    /// The return URL with this status.
    pub(super) fn back(&self, status: &str) -> String {
        let joint = if self.callback.contains('?') { '&' } else { '?' };
        format!("{}{joint}paymentID={}&status={status}&signature=fake", self.callback, self.id)
    }

    /// Takes the money.
    pub(super) fn execute(&mut self) -> Result<(), Answer> {
        self.is_asked_for = true;
        if self.transaction.is_some() {
            return Err(failure("2062", "The payment has already been completed"));
        }
        if self.is_cancelled {
            self.is_refused = true;
            return Err(failure("2069", "The payment was cancelled"));
        }
        match self.wallet.as_deref() {
            None => Err(failure("2060", "The payment is not verified yet")),
            Some(POOR_WALLET) => {
                self.is_refused = true;
                Err(failure("2023", "Insufficient Balance"))
            }
            Some(_) => {
                self.take();
                Ok(())
            }
        }
    }

    pub(super) fn take(&mut self) {
        self.transaction = Some(self.id.replace("TR0011", "").to_uppercase());
        self.taken += 1;
    }

    /// The customer's page.
    pub(super) fn page(&self) -> Answer {
        Answer::html(format!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
             <title>bKash (fake)</title><h1>bKash (fake)</h1><p>Pay ৳{} for {}</p><form method=post>\
             <label>Wallet <input name=wallet value={WALLET}></label><label>OTP <input name=otp value=123456></label>\
             <label>PIN <input name=pin type=password value=12121></label>\
             <button name=action value=confirm id=confirm>Confirm</button>\
             <button name=action value=cancel id=cancel>Close</button></form></html>",
            escaped(&self.amount),
            escaped(&self.invoice)
        ))
    }

    pub(super) fn entry(&self) -> Entry {
        Entry {
            id: self.id.clone(),
            reference: self.invoice.clone(),
            amount_minor: self.amount_minor,
            is_refused: self.is_refused,
            taken: self.taken,
            refunded: 0,
            refunded_minor: 0,
            disputed_minor: 0,
            kept_minor: 0,
        }
    }

    pub(super) fn created_json(&self, base_url: &str) -> Value {
        json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": self.id,
            "bkashURL": format!("{base_url}/customer/{}", self.id),
            "callbackURL": self.callback, "successCallbackURL": self.back("success"),
            "failureCallbackURL": self.back("failure"), "cancelledCallbackURL": self.back("cancel"),
            "amount": self.amount, "intent": "sale", "currency": "BDT",
            "paymentCreateTime": "2026-01-01T12:00:00:000 GMT+0600", "transactionStatus": "Initiated",
            "merchantInvoiceNumber": self.invoice,
        })
    }

    pub(super) fn executed_json(&self) -> Value {
        json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": self.id,
            "payerReference": self.payer_reference, "customerMsisdn": self.wallet, "trxID": self.transaction,
            "amount": self.amount, "transactionStatus": "Completed",
            "paymentExecuteTime": "2026-01-01T12:01:00:000 GMT+0600", "currency": "BDT", "intent": "sale",
            "merchantInvoiceNumber": self.invoice,
        })
    }

    pub(super) fn status_json(&self) -> Value {
        let verified = if self.wallet.is_some() { "Complete" } else { "Incomplete" };
        let mut answer = json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": self.id, "mode": "0011",
            "paymentCreateTime": "2026-01-01T12:00:00:000 GMT+0600", "amount": self.amount, "currency": "BDT",
            "intent": "sale", "merchantInvoice": self.invoice, "payerReference": self.payer_reference,
            "userVerificationStatus": verified, "verificationStatus": verified,
            "transactionStatus": if self.transaction.is_some() { "Completed" } else { "Initiated" },
        });
        if let Some(transaction) = &self.transaction {
            answer["trxID"] = json!(transaction);
        }
        answer
    }

    pub(super) fn transaction_json(&self) -> Value {
        json!({"statusCode": "0000", "statusMessage": "Successful", "trxID": self.transaction,
            "transactionStatus": "Completed", "amount": self.amount, "currency": "BDT",
            "customerMsisdn": self.wallet, "initiationTime": "2026-01-01T12:00:00:000 GMT+0600",
            "completedTime": "2026-01-01T12:01:00:000 GMT+0600", "transactionType": "bKash Tokenized Checkout via API"})
    }
}

/// Reads a decimal above zero, with at most two decimals, as minor units.
fn minor(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 2 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let minor = format!("{whole}{decimals:0<2}").parse().ok()?;
    (minor > 0).then_some(minor)
}
