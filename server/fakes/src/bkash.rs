//! bKash tokenized checkout, mode 0011, version 1.2.0-beta, as its public documents and clients describe it.
//!
//! Base address: `{url}/v1.2.0-beta`. Credentials: [`APP_KEY`], [`APP_SECRET`], [`USERNAME`], [`PASSWORD`]. Wallets:
//! [`WALLET`] pays, [`POOR_WALLET`] has no money, [`BLOCKED_WALLET`] is blocked; any OTP and PIN do.

mod answers;
mod known;
mod payment;
mod tokens;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use http::{Method, StatusCode};
use serde_json::{Value, json};

pub use self::known::{APP_KEY, APP_SECRET, BLOCKED_WALLET, PASSWORD, POOR_WALLET, USERNAME, WALLET};
use self::{
    answers::{failure, not_found, text, unknown_payment},
    payment::Payment,
    tokens::Tokens,
};
use crate::{Answer, Ask, Entry, Program, books_json, escaped, lock};

const API: &str = "/v1.2.0-beta/tokenized/checkout";

/// The fake.
#[derive(Debug, Default)]
pub struct Bkash(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    payments: HashMap<String, Payment>,
    tokens: Tokens,
}

impl Bkash {
    /// One without payments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it took.
    pub fn books(&self) -> Vec<Entry> {
        lock(&self.0).payments.values().map(Payment::entry).collect()
    }

    /// The customer enters a wallet's number, its OTP and PIN. Returns where the browser is sent back to.
    pub fn approve(&self, payment: &str, wallet: &str) -> Option<String> {
        let mut state = lock(&self.0);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        if wallet == BLOCKED_WALLET {
            return Some(payment.back("failure"));
        }
        payment.wallet = Some(wallet.to_owned());
        Some(payment.back("success"))
    }

    /// The customer gives up. Returns where the browser is sent back to.
    pub fn cancel(&self, payment: &str) -> Option<String> {
        let mut state = lock(&self.0);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        payment.is_cancelled = true;
        Some(payment.back("cancel"))
    }

    /// From now on it says that a payment was over another amount, as a gateway that was told wrong would.
    pub fn falsify_amount(&self, payment: &str, amount: &str) {
        if let Some(payment) = lock(&self.0).payments.get_mut(payment) {
            payment.amount = amount.to_owned();
        }
    }

    /// How often it was asked for a token within the last hour.
    pub fn token_calls(&self) -> usize {
        lock(&self.0).tokens.calls.len()
    }

    fn create(&self, body: &Value, base_url: &str) -> Result<Value, Answer> {
        let payments = &mut lock(&self.0).payments;
        let payment = Payment::new(body, payments.len() as u64)?;
        if payments.values().any(|known| known.invoice == payment.invoice) {
            // One of the shapes of failure that is not like the others.
            return Err(Answer::ok(&json!({"internalCode": "duplicate_invoice", "externalCode": "2029",
                "errorMessageEn": "Duplicate merchant invoice number", "errorMessageBn": "ইনভয়েস নম্বরটি আগে ব্যবহৃত হয়েছে"})));
        }
        let json = payment.created_json(base_url);
        payments.insert(payment.id.clone(), payment);
        Ok(json)
    }

    /// Runs a call on the payment that a body names.
    fn on_payment<T>(&self, body: &Value, call: impl FnOnce(&mut Payment) -> T) -> Result<T, Answer> {
        let payments = &mut lock(&self.0).payments;
        text(body, "paymentID").and_then(|id| payments.get_mut(id)).map(call).ok_or_else(unknown_payment)
    }

    fn search(&self, body: &Value) -> Result<Value, Answer> {
        let wanted = text(body, "trxID");
        let state = lock(&self.0);
        let is_wanted = |payment: &&Payment| wanted.is_some() && payment.transaction.as_deref() == wanted;
        let found = state.payments.values().find(is_wanted);
        found.map(Payment::transaction_json).ok_or_else(|| failure("2033", "Transaction not found"))
    }

    fn customer(&self, ask: &Ask, id: &str) -> Answer {
        if ask.method == Method::POST {
            let form = ask.form();
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

    fn control(&self, ask: &Ask) -> Answer {
        let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        let id = text(&body, "paymentID").unwrap_or_default();
        let target = match ask.path.as_str() {
            "/_control/approve" => self.approve(id, text(&body, "wallet").unwrap_or(WALLET)),
            "/_control/cancel" => self.cancel(id),
            "/_control/books" => return books_json(&self.books()),
            _ => None,
        };
        target.map_or_else(not_found, |target| Answer::ok(&json!({"location": target})))
    }
}

impl Program for Bkash {
    fn answer(self: &Arc<Self>, ask: &Ask, base_url: &str) -> Answer {
        if let Some(id) = ask.path.strip_prefix("/customer/") {
            return self.customer(ask, id);
        }
        if ask.path.starts_with("/_control/") {
            return self.control(ask);
        }
        let Some(path) = ask.path.strip_prefix(API).filter(|_| ask.method == Method::POST) else { return not_found() };
        if !ask.header("content-type").starts_with("application/json") {
            return Answer::json(StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!({"message": "Unsupported Media Type"}));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&ask.body) else {
            return Answer::json(StatusCode::BAD_REQUEST, &json!({"message": "Bad Request"}));
        };
        if let "/token/grant" | "/token/refresh" = path {
            return lock(&self.0).tokens.grant(ask, &body, path == "/token/refresh");
        }
        if let Some(refusal) = lock(&self.0).tokens.refuse(ask) {
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

    fn operation(&self, ask: &Ask) -> Option<&'static str> {
        match ask.path.strip_prefix(API)? {
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
