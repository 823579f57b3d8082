//! Fake of SSLCommerz version 4, after its public documents and clients.
//!
//! Base address: `{url}`. Credentials: [`STORE_ID`], [`STORE_PASSWORD`]. Amounts in its books are in taka, to which it converts
//! other currencies at fixed rates ([`in_taka`]); the refunds of a payment are in taka too.

mod answers;
mod attempt;
mod control;
mod customer;
mod hash;
mod known;
mod money;
mod notices;
mod page;
mod query;
mod refund;
mod request;
#[cfg(test)]
mod tests;
mod time;

use std::{pin::Pin, sync::Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use self::{
    answers::{NO_STORE, invalid_request, no_session, refused, wrong_credentials},
    attempt::Attempt,
    notices::Notices,
    refund::Refund,
};
pub use self::{
    hash::signed,
    known::{LARGEST, SMALLEST, STORE_ID, STORE_PASSWORD, in_taka, store_amount},
    notices::Notice,
};
use crate::{Answer, Call, Entry, Form, Instead, Program, lock};

const SESSION: &str = "/gwprocess/v4/api.php";
const VALIDATE: &str = "/validator/api/validationserverAPI.php";
const TRANSACTION: &str = "/validator/api/merchantTransIDvalidationAPI.php";
const PAGE: &str = "/gwprocess/v4/gw.php";

/// The fake.
#[derive(Debug, Default)]
pub struct SslCommerz(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    attempts: Vec<Attempt>,
    refunds: Vec<Refund>,
    notices: Notices,
    /// The number of transactions and refunds, for their ids.
    made: u64,
    next_refund: Option<&'static str>,
    is_lenient: bool,
    takes_multipart: bool,
    takes_refunds_without_id: bool,
    is_in_maintenance: bool,
    is_inactive: bool,
}

impl SslCommerz {
    /// Creates a fake without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The sessions and the money that it took and refunded.
    pub fn books(&self) -> Vec<Entry> {
        lock(&self.0).attempts.iter().map(Attempt::entry).collect()
    }

    /// Keeps notices for [`take_notices`](Self::take_notices) from now on.
    pub fn keep_notices(&self) {
        lock(&self.0).notices.kept.get_or_insert_default();
    }

    /// Takes the notices that were kept.
    pub fn take_notices(&self) -> Vec<Notice> {
        lock(&self.0).notices.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends when the merchant has answered the notices that were sent so far.
    pub fn notices_sent(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        lock(&self.0).notices.sent()
    }

    /// Sends a session's last notice again. Returns whether there is one.
    pub fn repeat_notice(&self, session: &str) -> bool {
        let State { attempts, notices, .. } = &mut *lock(&self.0);
        let attempt = attempts.iter().find(|attempt| attempt.key == session);
        let notice = attempt.and_then(|attempt| Some((attempt.field("ipn_url"), attempt.last_notice.clone()?)));
        let Some((url, form)) = notice.filter(|(url, _)| !url.is_empty()) else { return false };
        notices.send(Notice { url: url.to_owned(), form });
        true
    }

    /// Reports another amount for a session from now on, in minor units of its currency. The books keep the true one.
    pub fn falsify_amount(&self, session: &str, minor: u64) {
        self.on(session, |attempt| attempt.falsified = Some(minor.min(LARGEST)));
    }

    /// Reports that a session is risky, or that it is safe. The money of a risky one is taken.
    pub fn set_risk(&self, session: &str, is_risky: bool) {
        self.on(session, |attempt| attempt.is_risky = is_risky);
    }

    /// Answers validations of a session with nothing, although it is paid.
    pub fn silence_validation(&self, session: &str, is_silent: bool) {
        self.on(session, |attempt| attempt.is_validation_silent = is_silent);
    }

    /// Answers every call with an HTML page and status 200.
    pub fn set_maintenance(&self, is_on: bool) {
        lock(&self.0).is_in_maintenance = is_on;
    }

    /// Refuses every call because the store is inactive.
    pub fn deactivate_store(&self, is_inactive: bool) {
        lock(&self.0).is_inactive = is_inactive;
    }

    /// Requires all mandatory fields and known words in them, which it does at the beginning; or only the essential fields.
    pub fn be_strict(&self, is_strict: bool) {
        lock(&self.0).is_lenient = !is_strict;
    }

    /// Reads sessions from multipart bodies too.
    pub fn take_multipart(&self, is_on: bool) {
        lock(&self.0).takes_multipart = is_on;
    }

    /// Accepts refunds without `refund_trans_id`, as of old clients.
    pub fn take_refunds_without_id(&self, is_on: bool) {
        lock(&self.0).takes_refunds_without_id = is_on;
    }

    fn on(&self, session: &str, change: impl FnOnce(&mut Attempt)) {
        if let Some(attempt) = lock(&self.0).attempt(session) {
            change(attempt);
        }
    }
}

impl State {
    fn session(&mut self, call: &Call, base_url: &str) -> Answer {
        // A body that is not read has no credentials.
        let form = request::read(call, self.takes_multipart).unwrap_or_default();
        if self.refusal(&form).is_some() {
            return no_session(NO_STORE);
        }
        if let Err(reason) = request::check(&form, !self.is_lenient) {
            return no_session(&reason);
        }
        let attempt = Attempt::new(form, self.attempts.len() as u64);
        let answer = begun(&attempt.key, base_url);
        self.attempts.push(attempt);
        Answer::ok(&answer)
    }

    /// Why wrong credentials are refused, and every call while the store is inactive.
    fn refusal(&self, form: &Form) -> Option<&'static str> {
        let is = |name, known: &str| form.get(name).is_some_and(|given| given == known);
        if !is("store_id", STORE_ID) || !is("store_passwd", STORE_PASSWORD) {
            return Some("FAILED");
        }
        self.is_inactive.then_some("INACTIVE")
    }
}

/// The reply to a new session.
fn begun(key: &str, base_url: &str) -> Value {
    let redirect = format!("{base_url}/gwprocess/v4/bankgw/indexhtml.php?Q=REDIRECT&SESSIONKEY={key}&cardname=");
    json!({
        "status": "SUCCESS", "failedreason": "", "sessionkey": key,
        "gw": {"visa": "city_visa,ebl_visa", "master": "city_master", "amex": "city_amex", "othercards": "qcash",
            "internetbanking": "city,bankasia", "mobilebanking": "bkash,dbblmobilebanking"},
        "redirectGatewayURL": redirect, "redirectGatewayURLFailed": "",
        "directPaymentURLBank": "", "directPaymentURLCard": "", "directPaymentURL": "",
        "GatewayPageURL": format!("{base_url}{PAGE}?Q=PAY&SESSIONKEY={key}"),
        "storeBanner": "", "storeLogo": "", "store_name": "Test box",
        "desc": [{"name": "VISA", "type": "visa", "logo": "", "gw": "visacard", "r_flag": "1",
            "redirectGatewayURL": format!("{redirect}visacard")}],
        "is_direct_pay_enable": "0",
    })
}

impl Program for SslCommerz {
    fn answer(&self, call: &Call, base_url: &str) -> Answer {
        if call.path == PAGE {
            return self.customer(call, call.query.get("SESSIONKEY").map_or("", String::as_str));
        }
        if call.path.starts_with("/_control/") {
            return self.control(call);
        }
        let Some(operation) = self.operation(call) else { return answers::page(StatusCode::NOT_FOUND, "Not Found") };
        let state = &mut *lock(&self.0);
        if state.is_in_maintenance {
            return answers::page(StatusCode::OK, "We are under maintenance");
        }
        let is_known = call.method == Method::POST || call.method == Method::GET && operation != "session";
        if !is_known {
            return answers::page(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        }
        if operation == "session" {
            return state.session(call, base_url);
        }
        if let Some(word) = state.refusal(&call.query) {
            return refused(word);
        }
        if call.query.get("format").is_some_and(|format| format != "json") {
            return invalid_request();
        }
        match operation {
            "validate" => state.validate(&call.query),
            "refund" => state.refund(&call.query),
            "refund_query" => state.refund_query(&call.query["refund_ref_id"]),
            _ => state.query(&call.query),
        }
    }

    /// The browser goes back once the merchant has answered the notice.
    fn before_sent(&self, call: &Call) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match self.operation(call) {
            // The merchant may ask while it answers a notice.
            Some(_) => Box::pin(std::future::ready(())),
            None => self.notices_sent(),
        }
    }

    fn operation(&self, call: &Call) -> Option<&'static str> {
        let has = |name: &str| call.query.contains_key(name);
        match call.path.as_str() {
            SESSION => Some("session"),
            VALIDATE => Some("validate"),
            TRANSACTION if has("bank_tran_id") || has("refund_amount") => Some("refund"),
            TRANSACTION if has("refund_ref_id") => Some("refund_query"),
            TRANSACTION => Some("query"),
            _ => None,
        }
    }

    fn instead(&self, instead: Instead) -> Answer {
        match instead {
            Instead::Unauthorized => wrong_credentials(),
            // The live gateway knows the addresses of its merchants.
            Instead::Forbidden => answers::page(StatusCode::FORBIDDEN, "Forbidden"),
            Instead::NotFound => answers::page(StatusCode::NOT_FOUND, "Not Found"),
            Instead::Page => Answer::proxy_page(),
            Instead::Code(_) => invalid_request(),
        }
    }

    fn settings(&self, base_url: &str) -> String {
        format!(
            "[sslcommerz]\nbase_url = \"{base_url}\"\nstore_id = \"{STORE_ID}\"\nstore_password = \"{STORE_PASSWORD}\"\n"
        )
    }
}
