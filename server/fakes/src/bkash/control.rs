//! The customer, the switches and the books: what tests control, in Rust and by `/_control/…`.

use serde_json::{Value, json};

use super::{
    BLOCKED_WALLET, Bkash, WALLET,
    answers::{not_found, text},
    payment::Payment,
};
use crate::{Answer, Call, Entry, books_json, lock};

/// What a test switches on or off.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Switches {
    pub(super) needs_bearer: bool,
    pub(super) refuses_mode: bool,
    /// Whether a wallet's second equal payment is refused. If not set, only v2 refuses it.
    pub(super) refuses_equal_payments: Option<bool>,
    pub(super) balance_is_empty: bool,
}

impl Bkash {
    /// The payments and the money that it took.
    pub fn books(&self) -> Vec<Entry> {
        lock(&self.state).payments.values().map(Payment::entry).collect()
    }

    /// Approves a payment with a wallet, as its customer does. Returns the return URL.
    pub fn approve(&self, payment: &str, wallet: &str) -> Option<String> {
        let mut state = lock(&self.state);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        if wallet == BLOCKED_WALLET {
            return Some(payment.back("failure"));
        }
        payment.wallet = Some(wallet.to_owned());
        Some(payment.back("success"))
    }

    /// Cancels a payment, as its customer does. Returns the return URL.
    pub fn cancel(&self, payment: &str) -> Option<String> {
        let mut state = lock(&self.state);
        let payment = state.payments.get_mut(payment).filter(|payment| payment.is_open())?;
        payment.is_cancelled = true;
        Some(payment.back("cancel"))
    }

    /// Reports another amount for a payment from now on.
    pub fn falsify_amount(&self, payment: &str, amount: &str) {
        if let Some(payment) = lock(&self.state).payments.get_mut(payment) {
            payment.amount = amount.to_owned();
        }
    }

    /// Takes a payment's money after all, even if it was refused before, but only if the merchant had requested it.
    pub fn take_late(&self, payment: &str) {
        let mut state = lock(&self.state);
        if state.payments.get(payment).is_some_and(|payment| payment.is_asked_for) {
            state.take(payment);
        }
    }

    /// Takes a payment's money, as an execute with an unknown outcome does.
    pub fn take(&self, payment: &str) {
        lock(&self.state).take(payment);
    }

    /// The ids of all transactions.
    pub fn transactions(&self) -> Vec<String> {
        lock(&self.state).payments.values().filter_map(|payment| payment.transaction.clone()).collect()
    }

    /// The number of token calls within the last hour.
    pub fn token_calls(&self) -> usize {
        lock(&self.state).tokens.calls.len()
    }

    /// Refuses all tokens that it has granted so far.
    pub fn revoke_tokens(&self) {
        lock(&self.state).tokens.revoke();
    }

    /// Refuses all refresh tokens that it has granted so far, as bKash does after a month.
    pub fn expire_refresh_tokens(&self) {
        lock(&self.state).tokens.refresh_tokens.clear();
    }

    /// Accepts a token only after `Bearer`, or only without it, as at the start.
    pub fn require_bearer(&self, required: bool) {
        lock(&self.state).switches.needs_bearer = required;
    }

    /// Refuses a create of v2 with the field `mode`, which is ignored at the start.
    pub fn refuse_mode(&self, refused: bool) {
        lock(&self.state).switches.refuses_mode = refused;
    }

    /// Refuses to execute a wallet's second payment of an amount within two minutes, in both versions. At the start only v2
    /// refuses it.
    pub fn refuse_equal_payments(&self, refused: bool) {
        lock(&self.state).switches.refuses_equal_payments = Some(refused);
    }

    /// Makes the merchant's balance too small for any refund.
    pub fn empty_balance(&self, empty: bool) {
        lock(&self.state).switches.balance_is_empty = empty;
    }

    pub(super) fn control(&self, call: &Call) -> Answer {
        let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let id = text(&body, "paymentID").unwrap_or_default();
        let target = match call.path.as_str() {
            "/_control/approve" => self.approve(id, text(&body, "wallet").unwrap_or(WALLET)),
            "/_control/cancel" => self.cancel(id),
            "/_control/take" => {
                self.take(id);
                return Answer::ok(&json!({}));
            }
            "/_control/falsify_amount" => {
                self.falsify_amount(id, text(&body, "amount").unwrap_or_default());
                return Answer::ok(&json!({}));
            }
            "/_control/books" => return books_json(&self.books()),
            "/_control/switches" => return self.switch(&body),
            "/_control/notices" => {
                let times = body.get("times").and_then(Value::as_u64).unwrap_or(1);
                self.send_notices_to(text(&body, "url").unwrap_or_default(), u32::try_from(times).unwrap_or(1));
                text(&body, "certificate_url").inspect(|url| self.set_certificate_url(url));
                return Answer::ok(&json!({}));
            }
            _ => None,
        };
        target.map_or_else(not_found, |target| Answer::ok(&json!({"location": target})))
    }

    fn switch(&self, body: &Value) -> Answer {
        let is_on = |name: &str| body.get(name).and_then(Value::as_bool);
        is_on("require_bearer").inspect(|is_on| self.require_bearer(*is_on));
        is_on("refuse_mode").inspect(|is_on| self.refuse_mode(*is_on));
        is_on("refuse_equal_payments").inspect(|is_on| self.refuse_equal_payments(*is_on));
        is_on("empty_balance").inspect(|is_on| self.empty_balance(*is_on));
        Answer::ok(&json!({}))
    }
}
