//! bKash tokenized checkout, mode 0011, version 1.2.0-beta, as its public documents and clients describe it.
//!
//! Base address: `{url}/v1.2.0-beta`. Credentials: [`APP_KEY`], [`APP_SECRET`], [`USERNAME`], [`PASSWORD`]. Wallets:
//! [`WALLET`] pays, [`POOR_WALLET`] has no money, [`BLOCKED_WALLET`] is blocked; any OTP and PIN do.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Answer, Ask, Entry, Program, escaped, lock, token};

/// The app key that it knows.
pub const APP_KEY: &str = "4f6o0cjiki2rfm34kfdadl1eqq";
/// The app secret that it knows.
pub const APP_SECRET: &str = "2is7hdktrekvrbljjh44ll3d9l1dtjo4pasmjvs5vl5qr3fug4b";
/// The user name that it knows.
pub const USERNAME: &str = "sandboxTokenizedUser02";
/// The password that it knows.
pub const PASSWORD: &str = "sandboxTokenizedUser02@12345";
/// A wallet with money.
pub const WALLET: &str = "01770618575";
/// A wallet without.
pub const POOR_WALLET: &str = "01823074817";
/// A wallet that is blocked.
pub const BLOCKED_WALLET: &str = "01823074818";

const HOUR: Duration = Duration::from_secs(3600);
const CALLS_AN_HOUR: usize = 2;
const API: &str = "/v1.2.0-beta/tokenized/checkout";

/// The fake.
#[derive(Debug, Default)]
pub struct Bkash(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    payments: HashMap<String, Payment>,
    invoices: HashSet<String>,
    tokens: HashMap<String, Instant>,
    refresh_tokens: HashSet<String>,
    token_calls: Vec<Instant>,
    blocked_until: Option<Instant>,
    made: u64,
}

#[derive(Debug, Clone)]
struct Payment {
    id: String,
    invoice: String,
    amount: String,
    amount_minor: u64,
    payer_reference: String,
    callback: String,
    wallet: Option<String>,
    is_cancelled: bool,
    transaction: Option<String>,
    /// How often its money was taken.
    taken: u32,
}

impl Bkash {
    /// One without payments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it took.
    pub fn books(&self) -> Vec<Entry> {
        let state = lock(&self.0);
        let entry = |payment: &Payment| Entry {
            id: payment.id.clone(),
            reference: payment.invoice.clone(),
            amount_minor: payment.amount_minor,
            taken: payment.taken,
            refunded: 0,
        };
        state.payments.values().map(entry).collect()
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
        lock(&self.0).token_calls.len()
    }

    fn token(&self, ask: &Ask, body: &Value, is_refresh: bool) -> Answer {
        let mut state = lock(&self.0);
        let now = Instant::now();
        if state.blocked_until.is_some_and(|until| now < until) {
            return failure("9999", "Credential is blocked: too many token requests");
        }
        state.token_calls.retain(|at| now.duration_since(*at) < HOUR);
        if state.token_calls.len() >= CALLS_AN_HOUR {
            state.blocked_until = Some(now + HOUR);
            return failure("9999", "Credential is blocked: too many token requests");
        }
        state.token_calls.push(now);
        if ask.header("username") != USERNAME || ask.header("password") != PASSWORD {
            return Answer::json(StatusCode::UNAUTHORIZED, &json!({"message": "Unauthorized"}));
        }
        if text(body, "app_key") != Some(APP_KEY) {
            return failure("2001", "Invalid App Key");
        }
        if text(body, "app_secret") != Some(APP_SECRET) {
            return failure("2001", "Invalid App Secret");
        }
        if is_refresh && !text(body, "refresh_token").is_some_and(|given| state.refresh_tokens.contains(given)) {
            return failure("2079", "Invalid refresh token");
        }
        state.made += 1;
        let (id, refresh) =
            (token("eyJ.fake.", state.made, "id_token"), token("eyJ.fake.", state.made, "refresh_token"));
        state.tokens.insert(id.clone(), now + HOUR);
        state.refresh_tokens.insert(refresh.clone());
        Answer::json(
            StatusCode::OK,
            &json!({"statusCode": "0000", "statusMessage": "Successful", "id_token": id, "token_type": "Bearer",
                "expires_in": 3600, "refresh_token": refresh}),
        )
    }

    /// What every call but those for tokens must carry.
    fn refuse(&self, ask: &Ask) -> Option<Answer> {
        let message = |text: &str| Answer::json(StatusCode::UNAUTHORIZED, &json!({"message": text}));
        if ask.header("x-app-key") != APP_KEY {
            return Some(message("Forbidden: invalid app key"));
        }
        // The token alone: `Bearer …` is no token it knows.
        match lock(&self.0).tokens.get(ask.header("authorization")) {
            None => Some(message("Unauthorized")),
            Some(until) if Instant::now() >= *until => Some(message("The incoming token has expired")),
            Some(_) => None,
        }
    }

    fn create(&self, body: &Value, base_url: &str) -> Answer {
        let fields = ["mode", "payerReference", "callbackURL", "amount", "currency", "intent", "merchantInvoiceNumber"];
        for field in fields {
            match body.get(field) {
                Some(Value::String(text)) if !text.is_empty() && text.len() <= 255 => {}
                _ => return failure("2065", &format!("Mandatory field missing or not a string: {field}")),
            }
        }
        let field = |name| text(body, name).unwrap_or_default().to_owned();
        if field("mode") != "0011" {
            return failure("2054", "Invalid mode");
        }
        if field("intent") != "sale" {
            return failure("2008", "Invalid intent");
        }
        if field("currency") != "BDT" {
            return failure("2007", "Invalid currency");
        }
        let Some(amount_minor) = minor(&field("amount")) else { return failure("2006", "Invalid amount") };
        if url::Url::parse(&field("callbackURL")).is_err() {
            return failure("2065", "Invalid callbackURL");
        }
        let mut state = lock(&self.0);
        if !state.invoices.insert(field("merchantInvoiceNumber")) {
            // One of the shapes of failure that is not like the others.
            let body = json!({"internalCode": "duplicate_invoice", "externalCode": "2029",
                "errorMessageEn": "Duplicate merchant invoice number", "errorMessageBn": "ইনভয়েস নম্বরটি আগে ব্যবহৃত হয়েছে"});
            return Answer::json(StatusCode::OK, &body);
        }
        state.made += 1;
        let id = token("TR0011", state.made, "payment");
        let payment = Payment {
            id: id.clone(),
            invoice: field("merchantInvoiceNumber"),
            amount: field("amount"),
            amount_minor,
            payer_reference: field("payerReference"),
            callback: field("callbackURL"),
            wallet: None,
            is_cancelled: false,
            transaction: None,
            taken: 0,
        };
        let answer = json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": id,
            "bkashURL": format!("{base_url}/customer/{id}"),
            "callbackURL": payment.callback, "successCallbackURL": payment.back("success"),
            "failureCallbackURL": payment.back("failure"), "cancelledCallbackURL": payment.back("cancel"),
            "amount": payment.amount, "intent": "sale", "currency": "BDT",
            "paymentCreateTime": "2026-01-01T12:00:00:000 GMT+0600", "transactionStatus": "Initiated",
            "merchantInvoiceNumber": payment.invoice,
        });
        state.payments.insert(id, payment);
        Answer::json(StatusCode::OK, &answer)
    }

    fn execute(&self, body: &Value) -> Answer {
        let mut state = lock(&self.0);
        state.made += 1;
        let made = state.made;
        let Some(payment) = text(body, "paymentID").and_then(|id| state.payments.get_mut(id)) else {
            return Answer::json(StatusCode::OK, &json!({"errorCode": "2002", "errorMessage": "Invalid Payment ID"}));
        };
        if payment.transaction.is_some() {
            return failure("2062", "The payment has already been completed");
        }
        if payment.is_cancelled {
            return failure("2069", "The payment was cancelled");
        }
        let Some(wallet) = payment.wallet.clone() else { return failure("2060", "The payment is not verified yet") };
        if wallet == POOR_WALLET {
            return failure("2023", "Insufficient Balance");
        }
        payment.transaction = Some(token("", made, "trx").to_uppercase());
        payment.taken += 1;
        let answer = json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": payment.id,
            "payerReference": payment.payer_reference, "customerMsisdn": wallet, "trxID": payment.transaction,
            "amount": payment.amount, "transactionStatus": "Completed",
            "paymentExecuteTime": "2026-01-01T12:01:00:000 GMT+0600", "currency": "BDT", "intent": "sale",
            "merchantInvoiceNumber": payment.invoice,
        });
        Answer::json(StatusCode::OK, &answer)
    }

    fn status(&self, body: &Value) -> Answer {
        let state = lock(&self.0);
        let Some(payment) = text(body, "paymentID").and_then(|id| state.payments.get(id)) else {
            return Answer::json(StatusCode::OK, &json!({"errorCode": "2002", "errorMessage": "Invalid Payment ID"}));
        };
        let mut answer = json!({
            "statusCode": "0000", "statusMessage": "Successful", "paymentID": payment.id, "mode": "0011",
            "paymentCreateTime": "2026-01-01T12:00:00:000 GMT+0600", "amount": payment.amount, "currency": "BDT",
            "intent": "sale", "merchantInvoice": payment.invoice, "payerReference": payment.payer_reference,
            "userVerificationStatus": if payment.wallet.is_some() { "Complete" } else { "Incomplete" },
            "verificationStatus": if payment.wallet.is_some() { "Complete" } else { "Incomplete" },
            "transactionStatus": if payment.transaction.is_some() { "Completed" } else { "Initiated" },
        });
        if let Some(transaction) = &payment.transaction {
            answer["trxID"] = json!(transaction);
        }
        Answer::json(StatusCode::OK, &answer)
    }

    fn search(&self, body: &Value) -> Answer {
        let state = lock(&self.0);
        let wanted = text(body, "trxID");
        let found =
            state.payments.values().find(|payment| wanted.is_some() && payment.transaction.as_deref() == wanted);
        match found {
            Some(payment) => Answer::json(
                StatusCode::OK,
                &json!({"statusCode": "0000", "statusMessage": "Successful", "trxID": wanted,
                    "transactionStatus": "Completed", "amount": payment.amount, "currency": "BDT",
                    "customerMsisdn": payment.wallet, "initiationTime": "2026-01-01T12:00:00:000 GMT+0600",
                    "completedTime": "2026-01-01T12:01:00:000 GMT+0600", "transactionType": "bKash Tokenized Checkout via API"}),
            ),
            None => failure("2033", "Transaction not found"),
        }
    }

    fn customer(&self, ask: &Ask, id: &str) -> Answer {
        if ask.method == Method::POST {
            let form = ask.form();
            let field =
                |name: &str| form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
            let target = match field("action") {
                "cancel" => self.cancel(id),
                _ => self.approve(id, field("wallet")),
            };
            return target.map_or_else(|| gone(id), Answer::see_other);
        }
        match lock(&self.0).payments.get(id).filter(|payment| payment.is_open()) {
            None => gone(id),
            Some(payment) => Answer::html(format!(
                "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
                 <title>bKash (fake)</title><h1>bKash (fake)</h1><p>Pay ৳{} for {}</p><form method=post>\
                 <label>Wallet <input name=wallet value={WALLET}></label><label>OTP <input name=otp value=123456></label>\
                 <label>PIN <input name=pin type=password value=12121></label>\
                 <button name=action value=confirm id=confirm>Confirm</button>\
                 <button name=action value=cancel id=cancel>Close</button></form></html>",
                escaped(&payment.amount),
                escaped(&payment.invoice)
            )),
        }
    }

    fn control(&self, ask: &Ask) -> Answer {
        let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        let id = text(&body, "paymentID").unwrap_or_default();
        let target = match ask.path.as_str() {
            "/_control/approve" => self.approve(id, text(&body, "wallet").unwrap_or(WALLET)),
            "/_control/cancel" => self.cancel(id),
            "/_control/books" => {
                let books = self.books().into_iter().map(|entry| {
                    json!({"id": entry.id, "reference": entry.reference, "amountMinor": entry.amount_minor,
                        "taken": entry.taken})
                });
                return Answer::json(StatusCode::OK, &books.collect());
            }
            _ => return not_found(),
        };
        match target {
            Some(target) => Answer::json(StatusCode::OK, &json!({"location": target})),
            None => not_found(),
        }
    }
}

impl Payment {
    fn is_open(&self) -> bool {
        !self.is_cancelled && self.transaction.is_none()
    }

    fn back(&self, status: &str) -> String {
        let joint = if self.callback.contains('?') { '&' } else { '?' };
        format!("{}{joint}paymentID={}&status={status}&signature=fake", self.callback, self.id)
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
            return self.token(ask, &body, path == "/token/refresh");
        }
        if let Some(refusal) = self.refuse(ask) {
            return refusal;
        }
        match path {
            "/create" => self.create(&body, base_url),
            "/execute" => self.execute(&body),
            "/payment/status" => self.status(&body),
            "/general/searchTransaction" => self.search(&body),
            _ => not_found(),
        }
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

/// Failures come with status 200.
fn failure(code: &str, message: &str) -> Answer {
    Answer::json(StatusCode::OK, &json!({"statusCode": code, "statusMessage": message}))
}

fn not_found() -> Answer {
    Answer::json(StatusCode::NOT_FOUND, &json!({"message": "no such resource"}))
}

fn gone(id: &str) -> Answer {
    Answer::html(format!("<!doctype html><title>bKash (fake)</title><p>Payment {} is not open.</p>", escaped(id)))
}

fn text<'b>(body: &'b Value, name: &str) -> Option<&'b str> {
    body.get(name).and_then(Value::as_str)
}

/// A decimal text above zero, with at most two decimals, in minor units.
fn minor(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 2 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let minor = format!("{whole}{decimals:0<2}").parse().ok()?;
    (minor > 0).then_some(minor)
}
