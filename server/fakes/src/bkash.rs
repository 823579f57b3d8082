//! Fake of bKash tokenized checkout, mode 0011, version 1.2.0-beta, after its public documents and clients.
//!
//! Base address: `{url}/v1.2.0-beta`. Credentials: [`APP_KEY`], [`APP_SECRET`], [`USERNAME`], [`PASSWORD`]. Wallets:
//! [`WALLET`] pays, [`POOR_WALLET`] has no money, [`BLOCKED_WALLET`] is blocked. It accepts any OTP and PIN.

mod answers;
mod customer;
mod known;
mod payment;
mod tokens;

use std::{collections::BTreeMap, sync::Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};

pub use self::known::{APP_KEY, APP_SECRET, BLOCKED_WALLET, PASSWORD, POOR_WALLET, USERNAME, WALLET};
use self::{
    answers::{failure, not_found, text, unauthorized, unknown_payment},
    payment::Payment,
    tokens::Tokens,
};
use crate::{Answer, Call, Entry, Instead, Program, books_json, escaped, lock};

const API: &str = "/v1.2.0-beta/tokenized/checkout";

/// The fake.
#[derive(Debug, Default)]
pub struct Bkash(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    payments: BTreeMap<String, Payment>,
    tokens: Tokens,
}

impl Bkash {
    /// Creates a fake without payments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The payments and the money that it took.
    pub fn books(&self) -> Vec<Entry> {
        lock(&self.0).payments.values().map(Payment::entry).collect()
    }

    /// Approves a payment with a wallet, as its customer does. Returns the return URL.
    pub fn approve(&self, payment: &str, wallet: &str) -> Option<String> {
        let mut state = lock(&self.0);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        if wallet == BLOCKED_WALLET {
            return Some(payment.back("failure"));
        }
        payment.wallet = Some(wallet.to_owned());
        Some(payment.back("success"))
    }

    /// Cancels a payment, as its customer does. Returns the return URL.
    pub fn cancel(&self, payment: &str) -> Option<String> {
        let mut state = lock(&self.0);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        payment.is_cancelled = true;
        Some(payment.back("cancel"))
    }

    /// Reports another amount for a payment from now on.
    pub fn falsify_amount(&self, payment: &str, amount: &str) {
        if let Some(payment) = lock(&self.0).payments.get_mut(payment) {
            payment.amount = amount.to_owned();
        }
    }

    /// Takes a payment's money after all, even if it was refused before, but only if the merchant had requested it.
    pub fn take_late(&self, payment: &str) {
        if let Some(payment) = lock(&self.0).payments.get_mut(payment).filter(|payment| payment.is_asked_for) {
            payment.take();
        }
    }

    /// Takes a payment's money, as an execute with an unknown outcome does.
    pub fn take(&self, payment: &str) {
        if let Some(payment) = lock(&self.0).payments.get_mut(payment) {
            payment.take();
        }
    }

    /// The ids of all transactions.
    pub fn transactions(&self) -> Vec<String> {
        lock(&self.0).payments.values().filter_map(|payment| payment.transaction.clone()).collect()
    }

    /// The number of token calls within the last hour.
    pub fn token_calls(&self) -> usize {
        lock(&self.0).tokens.calls.len()
    }

    /// Refuses all tokens that it has granted so far.
    pub fn revoke_tokens(&self) {
        lock(&self.0).tokens.revoke();
    }

    /// Refuses all refresh tokens that it has granted so far, as bKash does after a month.
    pub fn expire_refresh_tokens(&self) {
        lock(&self.0).tokens.refresh_tokens.clear();
    }

    fn create(&self, body: &Value, base_url: &str) -> Result<Value, Answer> {
        let payments = &mut lock(&self.0).payments;
        let payment = Payment::new(body, payments.len() as u64)?;
        if payments.values().any(|known| known.invoice == payment.invoice) {
            // This failure has its own shape.
            return Err(Answer::ok(&json!({"internalCode": "duplicate_invoice", "externalCode": "2029",
                "errorMessageEn": "Duplicate merchant invoice number", "errorMessageBn": "ইনভয়েস নম্বরটি আগে ব্যবহৃত হয়েছে"})));
        }
        let json = payment.created_json(base_url);
        payments.insert(payment.id.clone(), payment);
        Ok(json)
    }

    /// Runs a call on the payment with the body's `paymentID`.
    fn on_payment<T>(&self, body: &Value, call: impl FnOnce(&mut Payment) -> T) -> Result<T, Answer> {
        let payments = &mut lock(&self.0).payments;
        text(body, "paymentID").and_then(|id| payments.get_mut(id)).map(call).ok_or_else(unknown_payment)
    }

    fn search(&self, body: &Value) -> Result<Value, Answer> {
        let id = text(body, "trxID");
        let state = lock(&self.0);
        let found = state.payments.values().find(|payment| id.is_some() && payment.transaction.as_deref() == id);
        found.map(Payment::transaction_json).ok_or_else(|| failure("2033", "Transaction not found"))
    }

    fn customer(&self, call: &Call, id: &str) -> Answer {
        if call.method == Method::POST {
            let form = call.form();
            let field = |name| form.get(name).map_or("", String::as_str);
            let target = match field("action") {
                "cancel" => self.cancel(id),
                _ => self.approve(id, field("wallet")),
            };
            return target.map_or_else(|| closed(id), Answer::see_other);
        }
        match lock(&self.0).payments.get(id).filter(|payment| payment.is_open()) {
            None => closed(id),
            Some(payment) => payment.page(),
        }
    }

    fn control(&self, call: &Call) -> Answer {
        let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let id = text(&body, "paymentID").unwrap_or_default();
        let target = match call.path.as_str() {
            "/_control/approve" => self.approve(id, text(&body, "wallet").unwrap_or(WALLET)),
            "/_control/cancel" => self.cancel(id),
            "/_control/books" => return books_json(&self.books()),
            _ => None,
        };
        target.map_or_else(not_found, |target| Answer::ok(&json!({"location": target})))
    }
}

impl Program for Bkash {
    fn answer(&self, call: &Call, base_url: &str) -> Answer {
        if let Some(id) = call.path.strip_prefix("/customer/") {
            return self.customer(call, id);
        }
        if call.path.starts_with("/_control/") {
            return self.control(call);
        }
        let Some(path) = call.path.strip_prefix(API).filter(|_| call.method == Method::POST) else {
            return not_found();
        };
        if !call.header("content-type").starts_with("application/json") {
            return Answer::json(StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!({"message": "Unsupported Media Type"}));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&call.body) else {
            return Answer::json(StatusCode::BAD_REQUEST, &json!({"message": "Bad Request"}));
        };
        if let "/token/grant" | "/token/refresh" = path {
            return lock(&self.0).tokens.grant(call, &body, path == "/token/refresh");
        }
        if let Some(refusal) = lock(&self.0).tokens.refuse(call) {
            return refusal;
        }
        let answer = match path {
            "/create" => self.create(&body, base_url),
            "/execute" => {
                self.on_payment(&body, |payment| payment.execute().map(|()| payment.executed_json())).flatten()
            }
            "/payment/status" => self.on_payment(&body, |payment| payment.status_json()),
            "/general/searchTransaction" => self.search(&body),
            _ => Err(not_found()),
        };
        Answer::of(answer)
    }

    fn instead(&self, instead: Instead) -> Answer {
        match instead {
            Instead::Unauthorized => unauthorized("Unauthorized"),
            Instead::Forbidden => Answer::json(StatusCode::FORBIDDEN, &json!({"message": "Forbidden"})),
            Instead::NotFound => not_found(),
            Instead::Page => Answer::proxy_page(),
            Instead::Code(code) => failure(code, "The process failed"),
        }
    }

    fn settings(&self, base_url: &str) -> String {
        format!(
            "[bkash]\nbase_url = \"{base_url}/v1.2.0-beta\"\napp_key = \"{APP_KEY}\"\napp_secret = \"{APP_SECRET}\"\n\
             username = \"{USERNAME}\"\npassword = \"{PASSWORD}\"\n"
        )
    }

    fn operation(&self, call: &Call) -> Option<&'static str> {
        match call.path.strip_prefix(API)? {
            "/token/grant" | "/token/refresh" => Some("token"),
            "/create" => Some("create"),
            "/execute" => Some("execute"),
            "/payment/status" => Some("status"),
            _ => Some("other"),
        }
    }
}

fn closed(id: &str) -> Answer {
    Answer::html(format!("<!doctype html><title>bKash (fake)</title><p>Payment {} is not open.</p>", escaped(id)))
}
