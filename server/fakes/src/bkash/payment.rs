//! Payments.

use serde_json::{Value, json};

use super::{
    amount::{decimal, has_two_decimals, minor},
    answers::{Refusal, refusal, text},
    clock,
    dialect::Dialect,
    known::{POOR_WALLET, WALLET},
    refund::{Refunded, Refunds},
};
use crate::{Answer, Entry, escaped, now, token};

/// A payment of v2 lives for a day.
const LIFETIME_SECONDS: u64 = 86_400;
/// Two equal payments of a wallet within this time are one too many.
const EQUAL_WITHIN_SECONDS: u64 = 120;

#[derive(Debug)]
pub(super) struct Payment {
    pub(super) id: String,
    pub(super) invoice: String,
    pub(super) amount: String,
    pub(super) amount_minor: u64,
    payer_reference: String,
    callback: String,
    signature: String,
    created_at: u64,
    pub(super) wallet: Option<String>,
    pub(super) is_cancelled: bool,
    pub(super) transaction: Option<String>,
    /// When the money was taken.
    pub(super) taken_at: u64,
    /// Whether the merchant has requested the money.
    pub(super) is_asked_for: bool,
    /// Whether an execute of v2 failed. No execute takes the money after that.
    is_used_up: bool,
    /// Whether the fake answered that it does not take the money.
    is_refused: bool,
    /// How often the money was taken.
    taken: u32,
    refunds: Refunds,
}

impl Payment {
    /// Creates a payment from a request body.
    pub(super) fn new(body: &Value, number: u64, dialect: Dialect) -> Result<Self, Refusal> {
        let is_v1 = dialect == Dialect::V1;
        let mode = is_v1.then_some(("mode", "2063"));
        let fields = [
            ("payerReference", "2048"),
            ("callbackURL", "2049"),
            ("amount", "2006"),
            ("currency", "2007"),
            ("intent", "2008"),
            ("merchantInvoiceNumber", "2031"),
        ];
        for (name, code) in mode.into_iter().chain(fields) {
            match body.get(name) {
                Some(Value::String(text)) if text.len() > 255 => {
                    return Err(refusal(code, format!("Invalid {name}")));
                }
                Some(Value::String(text)) if !text.is_empty() => {}
                _ => return Err(refusal("2065", format!("Mandatory field missing or not a string: {name}"))),
            }
        }
        let field = |name| text(body, name).unwrap_or_default().to_owned();
        if is_v1 && field("mode") != "0011" {
            return Err(refusal("2063", "Mode is not valid as per request data"));
        }
        for (name, wanted, code) in [("intent", "sale", "2008"), ("currency", "BDT", "2007")] {
            if field(name) != wanted {
                return Err(refusal(code, format!("Invalid {name}")));
            }
        }
        let amount = field("amount");
        let is_fit = |minor: &u64| is_v1 || (*minor >= 100 && has_two_decimals(&amount));
        let amount_minor = minor(&amount).filter(is_fit).ok_or_else(|| refusal("2006", "Invalid amount"))?;
        if url::Url::parse(&field("callbackURL")).is_err() {
            return Err(refusal("2049", "Invalid Merchant Callback URL"));
        }
        if field("merchantInvoiceNumber").contains(['<', '>', '&']) {
            return Err(refusal("2031", "Invalid merchant invoice number"));
        }
        Ok(Self {
            id: token("TR0011", number, "payment"),
            invoice: field("merchantInvoiceNumber"),
            amount_minor,
            amount,
            payer_reference: field("payerReference"),
            callback: field("callbackURL"),
            signature: token("", number, "signature"),
            created_at: now(),
            wallet: None,
            is_cancelled: false,
            transaction: None,
            taken_at: 0,
            is_asked_for: false,
            is_used_up: false,
            is_refused: false,
            taken: 0,
            refunds: Refunds::default(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.is_cancelled && !self.is_used_up && self.transaction.is_none()
    }

    /// The return URL with this status.
    pub(super) fn back(&self, status: &str) -> String {
        let joint = if self.callback.contains('?') { '&' } else { '?' };
        let Self { callback, id, signature, .. } = self;
        format!("{callback}{joint}paymentID={id}&status={status}&signature={signature}")
    }

    /// Whether this payment took the same amount from the same wallet just now.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let is_recent = self.transaction.is_some() && now() < self.taken_at + EQUAL_WITHIN_SECONDS;
        is_recent && self.wallet == other.wallet && self.amount_minor == other.amount_minor
    }

    /// Takes the money, unless `is_equal` says that an equal payment did just now. In v2 a failure uses the payment up.
    pub(super) fn execute(&mut self, dialect: Dialect, is_equal: bool) -> Result<(), Refusal> {
        self.is_asked_for = true;
        if self.transaction.is_some() {
            return Err(refusal("2062", "Payment already completed"));
        }
        let is_v2 = dialect == Dialect::V2;
        if self.is_used_up || (is_v2 && now() >= self.created_at + LIFETIME_SECONDS) {
            return Err(invalid_state());
        }
        let outcome = self.first_execute(is_v2, is_equal);
        self.is_used_up = is_v2 && outcome.is_err();
        outcome
    }

    fn first_execute(&mut self, is_v2: bool, is_equal: bool) -> Result<(), Refusal> {
        if self.is_cancelled {
            self.is_refused = true;
            return Err(refusal("2069", "Transaction has already been cancelled"));
        }
        match self.wallet.as_deref() {
            None if is_v2 => Err(invalid_state()),
            None => Err(refusal("2060", "Payment execution pre-requisite hasn't been met")),
            Some(_) if is_equal => Err(refusal("2029", "Duplicate for all transactions")),
            Some(POOR_WALLET) => {
                self.is_refused = true;
                Err(refusal("2023", "Insufficient Balance"))
            }
            Some(_) => {
                self.take();
                Ok(())
            }
        }
    }

    pub(super) fn take(&mut self) {
        self.transaction = Some(self.id.replace("TR0011", "").to_uppercase());
        self.taken_at = now();
        self.taken += 1;
    }

    /// Sends money back. `is_short` says that the merchant has none.
    pub(super) fn refund(&mut self, dialect: Dialect, body: &Value, is_short: bool) -> Result<Value, Refusal> {
        let of = self.refunded();
        self.refunds.refund(&of, dialect, body, is_short)
    }

    /// Reports the refunds: all of them in v2, the last one in v1.
    pub(super) fn refund_status(&self, dialect: Dialect, body: &Value) -> Result<Value, Refusal> {
        self.refunds.status(&self.refunded(), dialect, body)
    }

    fn refunded(&self) -> Refunded {
        let Self { transaction, amount, amount_minor, taken_at, .. } = self;
        let (transaction, amount) = (transaction.clone(), amount.clone());
        Refunded { transaction, amount, amount_minor: *amount_minor, taken_at: *taken_at }
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
            refunded: self.refunds.count(),
            refunded_minor: self.refunds.minor(),
            disputed_minor: 0,
            kept_minor: 0,
        }
    }

    pub(super) fn created_json(&self, dialect: Dialect, base_url: &str) -> Value {
        let mut json = json!({
            "paymentID": self.id, "bkashURL": format!("{base_url}/customer/{}", self.id),
            "callbackURL": self.callback, "successCallbackURL": self.back("success"),
            "failureCallbackURL": self.back("failure"), "cancelledCallbackURL": self.back("cancel"),
            "amount": self.amount, "intent": "sale", "currency": "BDT",
            "paymentCreateTime": clock::in_reply(self.created_at), "transactionStatus": "Initiated",
            "merchantInvoiceNumber": self.invoice,
        });
        if dialect == Dialect::V2 {
            json["signature"] = json!(self.signature);
        }
        json
    }

    pub(super) fn executed_json(&self, dialect: Dialect) -> Value {
        let mut json = json!({
            "paymentID": self.id, "payerReference": self.payer_reference, "customerMsisdn": self.wallet,
            "trxID": self.transaction, "amount": self.amount, "transactionStatus": "Completed",
            "paymentExecuteTime": clock::in_reply(self.taken_at), "currency": "BDT", "intent": "sale",
            "merchantInvoiceNumber": self.invoice,
        });
        if dialect == Dialect::V2 {
            json["payerType"] = json!("Customer");
            json["maxRefundableAmount"] = json!(decimal(self.refunds.left_of(self.amount_minor)));
        }
        json
    }

    /// How the payment stands. A failed or cancelled payment stays `Initiated`.
    pub(super) fn status_json(&self, dialect: Dialect) -> Value {
        let verified = if self.wallet.is_some() { "Complete" } else { "Incomplete" };
        let mut json = json!({
            "paymentID": self.id, "paymentCreateTime": clock::in_reply(self.created_at), "amount": self.amount,
            "currency": "BDT", "intent": "sale", "merchantInvoice": self.invoice,
            "payerReference": self.payer_reference, "verificationStatus": verified,
            "transactionStatus": if self.transaction.is_some() { "Completed" } else { "Initiated" },
        });
        match (dialect, &self.wallet) {
            (Dialect::V1, _) => {
                json["mode"] = json!("0011");
                json["userVerificationStatus"] = json!(verified);
            }
            (Dialect::V2, None) => {}
            (Dialect::V2, Some(wallet)) => {
                json["payerType"] = json!("Customer");
                json["payerAccount"] = json!(wallet);
            }
        }
        if let Some(transaction) = &self.transaction {
            json["trxID"] = json!(transaction);
        }
        json
    }

    pub(super) fn transaction_json(&self) -> Value {
        json!({"trxID": self.transaction, "transactionStatus": "Completed", "amount": self.amount, "currency": "BDT",
            "customerMsisdn": self.wallet, "initiationTime": clock::in_reply(self.created_at),
            "completedTime": clock::in_reply(self.taken_at), "transactionType": "bKash Tokenized Checkout via API"})
    }

    /// The message of a notice that the money was taken.
    pub(super) fn notice_json(&self) -> Option<Value> {
        let transaction = self.transaction.as_ref()?;
        Some(json!({"dateTime": clock::in_message(self.taken_at), "debitMSISDN": self.wallet,
            "creditOrganizationName": "Fake shop", "creditShortCode": "50001", "trxID": transaction,
            "transactionStatus": "Completed", "transactionType": "10002294", "amount": self.amount, "currency": "BDT",
            "transactionReference": self.payer_reference, "merchantInvoiceNumber": self.invoice}))
    }
}

fn invalid_state() -> Refusal {
    refusal("2056", "Invalid payment state")
}
