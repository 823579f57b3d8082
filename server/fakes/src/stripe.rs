//! Stripe Checkout Sessions, payment intents and refunds, as Stripe's public reference describes them.
//!
//! Base address: `{url}`. The secret key is [`SECRET_KEY`]; events are signed with [`WEBHOOK_SECRET`]. On the customer's
//! page [`CARD`] pays, [`DECLINED_CARD`] is declined, [`SLOW_CARD`] pays later.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Answer, Ask, Entry, Program, escaped, lock, token};

/// The secret key that it knows.
pub const SECRET_KEY: &str = "sk_test_fake_4eC39HqLyjWDarjtT1zdp7dc";
/// What its events are signed with.
pub const WEBHOOK_SECRET: &str = "whsec_fake_a1b2c3d4e5f60718293a4b5c6d7e8f90";
/// A card that pays.
pub const CARD: &str = "4242424242424242";
/// A card that is declined.
pub const DECLINED_CARD: &str = "4000000000000002";
/// A way to pay that takes its time: the session is complete, and paid once [`Stripe::finish`] says so.
pub const SLOW_CARD: &str = "4000000000000077";

/// The statuses of a refund.
const REFUND_STATUSES: [&str; 5] = ["pending", "requires_action", "succeeded", "failed", "canceled"];

/// The smallest charge, in cents.
const SMALLEST: u64 = 50;

/// The fake.
#[derive(Debug, Default)]
pub struct Stripe {
    state: Mutex<State>,
    /// POSTs under an idempotency key go one after another.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<String, Session>,
    refunds: HashMap<String, Refund>,
    kept: HashMap<String, (String, Answer)>,
    events_to: Option<String>,
    next_refund: Option<&'static str>,
    times: u32,
    made: u64,
}

#[derive(Debug, Clone)]
struct Session {
    id: String,
    intent: String,
    reference: Option<String>,
    metadata: BTreeMap<String, String>,
    amount: u64,
    currency: String,
    status: &'static str,
    payment_status: &'static str,
    intent_status: &'static str,
    name: String,
    success_url: String,
    cancel_url: Option<String>,
    expires_at: u64,
    created: u64,
    taken: u32,
    refunded: u64,
}

#[derive(Debug, Clone)]
struct Refund {
    id: String,
    intent: String,
    amount: u64,
    currency: String,
    status: &'static str,
    reason: Option<String>,
    metadata: BTreeMap<String, String>,
    created: u64,
}

impl Stripe {
    /// One without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on events go to this address, each so many times.
    pub fn send_events_to(&self, address: &str, times: u32) {
        let mut state = lock(&self.state);
        state.events_to = Some(address.to_owned());
        state.times = times;
    }

    /// What it took and gave back.
    pub fn books(&self) -> Vec<Entry> {
        let state = lock(&self.state);
        let entry = |session: &Session| Entry {
            id: session.id.clone(),
            reference: session.reference.clone().unwrap_or_default(),
            amount_minor: session.amount,
            taken: session.taken,
            refunded: u32::from(session.refunded > 0),
        };
        state.sessions.values().map(entry).collect()
    }

    /// The customer enters a card's number. Returns where the browser is sent to, or `None` if the session is not open or
    /// the card was declined.
    pub fn pay(&self, session: &str, card: &str) -> Option<String> {
        let mut state = lock(&self.state);
        let session = state.sessions.get_mut(session)?;
        session.expire_in_time();
        if session.status != "open" || card == DECLINED_CARD {
            return None;
        }
        session.status = "complete";
        if card == SLOW_CARD {
            session.intent_status = "processing";
        } else {
            session.take();
        }
        let target = session.success_url.replace("{CHECKOUT_SESSION_ID}", &session.id);
        let session = session.clone();
        self.send(&mut state, "checkout.session.completed", &session.json(""));
        Some(target)
    }

    /// A slow payment comes to its end.
    pub fn finish(&self, session: &str, succeeds: bool) {
        let mut state = lock(&self.state);
        let Some(session) = state.sessions.get_mut(session).filter(|session| session.intent_status == "processing")
        else {
            return;
        };
        let kind = if succeeds {
            session.take();
            "checkout.session.async_payment_succeeded"
        } else {
            session.intent_status = "requires_payment_method";
            "checkout.session.async_payment_failed"
        };
        let session = session.clone();
        self.send(&mut state, kind, &session.json(""));
    }

    /// The next refund has this status from the beginning: `pending`, `requires_action`, `succeeded`, `failed` or
    /// `canceled`. A failed or a canceled one gives nothing back.
    pub fn next_refund_is(&self, status: &'static str) {
        lock(&self.state).next_refund = Some(status);
    }

    /// A refund that was made is taken back: the customer's bank did not take it.
    pub fn fail_refund(&self, refund: &str) {
        let mut state = lock(&self.state);
        let Some(refund) = state.refunds.get_mut(refund) else { return };
        refund.status = "failed";
        let refund = refund.clone();
        self.send(&mut state, "refund.updated", &refund.json());
        self.send(&mut state, "refund.failed", &refund.json());
    }

    /// From now on it says that a session was over another amount, as a gateway that was told wrong would.
    pub fn falsify_amount(&self, session: &str, amount: u64) {
        if let Some(session) = lock(&self.state).sessions.get_mut(session) {
            session.amount = amount;
        }
    }

    /// The ids of its refunds.
    pub fn refunds(&self) -> Vec<String> {
        lock(&self.state).refunds.keys().cloned().collect()
    }

    fn send(&self, state: &mut State, kind: &str, object: &Value) {
        state.made += 1;
        let Some(address) = state.events_to.clone() else { return };
        let event = json!({
            "id": token("evt_", state.made, kind), "object": "event", "api_version": "2025-03-31.basil",
            "created": now(), "type": kind, "livemode": false, "pending_webhooks": 1,
            "request": {"id": null, "idempotency_key": null}, "data": {"object": object},
        });
        let body = event.to_string();
        let times = state.times;
        tokio::spawn(async move {
            let Ok(secret) = webhook_verify::Secret::new(WEBHOOK_SECRET) else { return };
            let signature = webhook_verify::Signer::new(secret).sign_at(body.as_bytes(), now()).to_string();
            let http = reqwest::Client::new();
            for _ in 0..times {
                let request = http.post(&address).header("content-type", "application/json; charset=utf-8");
                // Like the real one it would try again; here whoever is not there misses it.
                let _ = request.header("stripe-signature", &signature).body(body.clone()).send().await;
            }
        });
    }

    /// A POST under an `Idempotency-Key`: the same request gets the same answer, another one is refused.
    fn once(self: &Arc<Self>, ask: &Ask, base_url: &str) -> Answer {
        let key = ask.header("idempotency-key").to_owned();
        if key.is_empty() {
            return self.post(ask, base_url);
        }
        if key.len() > 255 {
            return error("idempotency_error", None, "Idempotency keys are at most 255 characters long.", None);
        }
        let _turn = lock(&self.turn);
        let mut form = ask.form();
        form.sort();
        let fingerprint = format!("{} {form:?}", ask.path);
        let kept = lock(&self.state).kept.get(&key).cloned();
        match kept {
            Some((known, answer)) if known == fingerprint => {
                let mut answer = answer;
                answer.headers.push(("idempotent-replayed", "true".into()));
                answer
            }
            Some(_) => {
                let message =
                    "Keys for idempotent requests can only be used with the same parameters they were first used with.";
                error("idempotency_error", None, message, None)
            }
            None => {
                let answer = self.post(ask, base_url);
                // What was refused before anything ran may be tried again under the same key.
                if answer.status == StatusCode::OK {
                    lock(&self.state).kept.insert(key, (fingerprint, answer.clone()));
                }
                answer
            }
        }
    }

    fn post(self: &Arc<Self>, ask: &Ask, base_url: &str) -> Answer {
        if !ask.header("content-type").starts_with("application/x-www-form-urlencoded") && !ask.body.is_empty() {
            return error("invalid_request_error", None, "Bodies are form-encoded.", None);
        }
        let form = ask.form();
        match ask.path.as_str() {
            "/v1/checkout/sessions" => self.create_session(&form, base_url),
            "/v1/refunds" => self.create_refund(&form),
            path => match path.strip_prefix("/v1/checkout/sessions/").and_then(|rest| rest.strip_suffix("/expire")) {
                Some(id) => self.expire(id),
                None => no_such("path", path),
            },
        }
    }

    fn create_session(&self, form: &[(String, String)], base_url: &str) -> Answer {
        const KNOWN: [&str; 10] = [
            "mode",
            "client_reference_id",
            "expires_at",
            "success_url",
            "cancel_url",
            "customer_email",
            "line_items[0][quantity]",
            "line_items[0][price_data][currency]",
            "line_items[0][price_data][unit_amount]",
            "line_items[0][price_data][product_data][name]",
        ];
        if let Some(refusal) = unknown(form, &KNOWN) {
            return refusal;
        }
        for name in KNOWN
            .into_iter()
            .filter(|name| !matches!(*name, "client_reference_id" | "expires_at" | "cancel_url" | "customer_email"))
        {
            if value(form, name).is_none_or(str::is_empty) {
                return error(
                    "invalid_request_error",
                    Some("parameter_missing"),
                    &format!("Missing required param: {name}."),
                    Some(name),
                );
            }
        }
        if value(form, "mode") != Some("payment") {
            return invalid("mode", "Only mode payment is known here.");
        }
        let field = |name: &str| value(form, name).unwrap_or_default().to_owned();
        let number = |name: &str| field(name).parse::<u64>().ok();
        let (Some(unit), Some(quantity)) =
            (number("line_items[0][price_data][unit_amount]"), number("line_items[0][quantity]"))
        else {
            return invalid("line_items", "Invalid integer.");
        };
        let Some(amount) = unit.checked_mul(quantity).filter(|amount| *amount <= 99_999_999) else {
            return error(
                "invalid_request_error",
                Some("amount_too_large"),
                "Amount must be no more than $999,999.99",
                None,
            );
        };
        if amount < SMALLEST {
            let message = "The Checkout Session's total amount due must add up to at least $0.50 usd";
            return error("invalid_request_error", Some("amount_too_small"), message, None);
        }
        let currency = field("line_items[0][price_data][currency]");
        if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return invalid("line_items[0][price_data][currency]", "Invalid currency.");
        }
        let now = now();
        let expires_at = number("expires_at").unwrap_or(now + 24 * 3600);
        if !(now + 30 * 60..=now + 24 * 3600).contains(&expires_at) {
            let message =
                "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.";
            return invalid("expires_at", message);
        }
        for name in ["success_url", "cancel_url"] {
            if value(form, name).is_some_and(|text| url::Url::parse(text).is_err()) {
                return error("invalid_request_error", Some("url_invalid"), "Not a valid URL", Some(name));
            }
        }
        let mut state = lock(&self.state);
        state.made += 1;
        let session = Session {
            id: token("cs_test_", state.made, "session"),
            intent: token("pi_", state.made, "intent"),
            reference: value(form, "client_reference_id").map(str::to_owned),
            metadata: metadata(form),
            amount,
            currency,
            status: "open",
            payment_status: "unpaid",
            intent_status: "requires_payment_method",
            name: field("line_items[0][price_data][product_data][name]"),
            success_url: field("success_url"),
            cancel_url: value(form, "cancel_url").map(str::to_owned),
            expires_at,
            created: now,
            taken: 0,
            refunded: 0,
        };
        let answer = Answer::json(StatusCode::OK, &session.json(base_url));
        state.sessions.insert(session.id.clone(), session);
        answer
    }

    fn expire(&self, id: &str) -> Answer {
        let mut state = lock(&self.state);
        let Some(session) = state.sessions.get_mut(id) else { return no_such("checkout session", id) };
        session.expire_in_time();
        if session.status != "open" {
            let message = format!(
                "Only Checkout Sessions with a status in [\"open\"] can be expired. This one is {}.",
                session.status
            );
            return error("invalid_request_error", None, &message, None);
        }
        session.status = "expired";
        let session = session.clone();
        self.send(&mut state, "checkout.session.expired", &session.json(""));
        Answer::json(StatusCode::OK, &session.json(""))
    }

    fn create_refund(&self, form: &[(String, String)]) -> Answer {
        if let Some(refusal) = unknown(form, &["payment_intent", "amount", "reason"]) {
            return refusal;
        }
        let Some(intent) = value(form, "payment_intent") else {
            return error(
                "invalid_request_error",
                Some("parameter_missing"),
                "One of charge or payment_intent is needed.",
                None,
            );
        };
        let reason = value(form, "reason");
        if reason.is_some_and(|word| !["duplicate", "fraudulent", "requested_by_customer"].contains(&word)) {
            return invalid("reason", "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer");
        }
        let mut state = lock(&self.state);
        state.made += 1;
        let made = state.made;
        let next = state.next_refund;
        let Some(session) = state.sessions.values_mut().find(|session| session.intent == intent) else {
            return no_such("payment_intent", intent);
        };
        if session.taken == 0 {
            return error(
                "invalid_request_error",
                Some("payment_intent_unexpected_state"),
                "This PaymentIntent does not have a successful charge to refund.",
                None,
            );
        }
        let left = session.amount - session.refunded;
        let amount = match value(form, "amount").map(str::parse::<u64>) {
            None => left,
            Some(Ok(amount)) => amount,
            Some(Err(_)) => return invalid("amount", "Invalid integer."),
        };
        if left == 0 {
            return error(
                "invalid_request_error",
                Some("charge_already_refunded"),
                "Charge has already been refunded.",
                None,
            );
        }
        if amount == 0 || amount > left {
            return invalid("amount", "Refund amount is greater than the unrefunded amount on the charge.");
        }
        let status = next.unwrap_or("succeeded");
        if !["failed", "canceled"].contains(&status) {
            session.refunded += amount;
        }
        let refund = Refund {
            id: token("re_", made, "refund"),
            intent: intent.to_owned(),
            amount,
            currency: session.currency.clone(),
            status,
            reason: reason.map(str::to_owned),
            metadata: metadata(form),
            created: now(),
        };
        state.next_refund = None;
        state.refunds.insert(refund.id.clone(), refund.clone());
        self.send(&mut state, "refund.updated", &refund.json());
        Answer::json(StatusCode::OK, &refund.json())
    }

    fn get(&self, path: &str, base_url: &str) -> Answer {
        let mut state = lock(&self.state);
        if let Some(id) = path.strip_prefix("/v1/checkout/sessions/") {
            return match state.sessions.get_mut(id) {
                Some(session) => {
                    session.expire_in_time();
                    Answer::json(StatusCode::OK, &session.json(base_url))
                }
                None => no_such("checkout session", id),
            };
        }
        if let Some(id) = path.strip_prefix("/v1/payment_intents/") {
            return match state.sessions.values().find(|session| session.intent == id) {
                Some(session) => Answer::json(
                    StatusCode::OK,
                    &json!({"id": id, "object": "payment_intent", "amount": session.amount, "currency": session.currency,
                        "status": session.intent_status, "metadata": {}}),
                ),
                None => no_such("payment_intent", id),
            };
        }
        if let Some(id) = path.strip_prefix("/v1/refunds/") {
            return match state.refunds.get(id) {
                Some(refund) => Answer::json(StatusCode::OK, &refund.json()),
                None => no_such("refund", id),
            };
        }
        no_such("path", path)
    }

    fn customer(&self, ask: &Ask, id: &str) -> Answer {
        let mut problem = "";
        if ask.method == Method::POST {
            let form = ask.form();
            if value(&form, "action") == Some("cancel") {
                let cancel = lock(&self.state).sessions.get(id).and_then(|session| session.cancel_url.clone());
                return cancel.map_or_else(|| no_such("page", id), Answer::see_other);
            }
            match self.pay(id, value(&form, "card").unwrap_or_default()) {
                Some(target) => return Answer::see_other(target),
                None => problem = "<p role=alert>Your card was declined.</p>",
            }
        }
        let state = lock(&self.state);
        match state.sessions.get(id).filter(|session| session.status == "open") {
            Some(session) => Answer::html(format!(
                "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
                 <title>Card processor (fake)</title><h1>Card processor (fake)</h1>{problem}<p>{}: {}.{:02} {}</p>\
                 <form method=post><label>Card <input name=card value={CARD}></label>\
                 <button name=action value=pay id=pay>Pay</button>\
                 <button name=action value=cancel id=cancel>Back</button></form></html>",
                escaped(&session.name),
                session.amount / 100,
                session.amount % 100,
                escaped(&session.currency)
            )),
            None => Answer::html(
                "<!doctype html><title>Card processor (fake)</title><p>This page is not open any more.</p>".into(),
            ),
        }
    }

    fn control(&self, ask: &Ask) -> Answer {
        let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        match ask.path.as_str() {
            "/_control/pay" => {
                let card = if text("card").is_empty() { CARD } else { text("card") };
                match self.pay(text("session"), card) {
                    Some(target) => Answer::json(StatusCode::OK, &json!({"location": target})),
                    None => Answer::json(StatusCode::CONFLICT, &json!({"error": "not open, or declined"})),
                }
            }
            "/_control/finish" => {
                self.finish(text("session"), body.get("succeeds").and_then(Value::as_bool).unwrap_or(true));
                Answer::json(StatusCode::OK, &json!({}))
            }
            "/_control/fail_refund" => {
                self.fail_refund(text("refund"));
                Answer::json(StatusCode::OK, &json!({}))
            }
            "/_control/next_refund" => match REFUND_STATUSES.into_iter().find(|known| *known == text("status")) {
                Some(status) => {
                    self.next_refund_is(status);
                    Answer::json(StatusCode::OK, &json!({}))
                }
                None => Answer::json(StatusCode::BAD_REQUEST, &json!({"error": "no such status of a refund"})),
            },
            "/_control/events" => {
                let times = body.get("times").and_then(Value::as_u64).unwrap_or(1);
                self.send_events_to(text("url"), u32::try_from(times).unwrap_or(1));
                Answer::json(StatusCode::OK, &json!({}))
            }
            "/_control/books" => {
                let books = self.books().into_iter().map(|entry| {
                    json!({"id": entry.id, "reference": entry.reference, "amountMinor": entry.amount_minor,
                        "taken": entry.taken, "refunded": entry.refunded})
                });
                Answer::json(StatusCode::OK, &books.collect())
            }
            path => no_such("path", path),
        }
    }
}

impl Session {
    fn take(&mut self) {
        self.payment_status = "paid";
        self.intent_status = "succeeded";
        self.taken += 1;
    }

    fn expire_in_time(&mut self) {
        if self.status == "open" && now() >= self.expires_at {
            self.status = "expired";
        }
    }

    fn json(&self, base_url: &str) -> Value {
        let is_open = self.status == "open";
        json!({
            "id": self.id, "object": "checkout.session", "amount_subtotal": self.amount, "amount_total": self.amount,
            "cancel_url": self.cancel_url, "client_reference_id": self.reference, "created": self.created,
            "currency": self.currency, "expires_at": self.expires_at, "livemode": false, "metadata": self.metadata,
            "mode": "payment",
            // An open session of the present version has none yet.
            "payment_intent": if is_open { Value::Null } else { json!(self.intent) },
            "payment_method_types": ["card"], "payment_status": self.payment_status, "status": self.status,
            "success_url": self.success_url,
            "url": if is_open { json!(format!("{base_url}/pay/{}", self.id)) } else { Value::Null },
        })
    }
}

impl Refund {
    fn json(&self) -> Value {
        json!({"id": self.id, "object": "refund", "amount": self.amount, "currency": self.currency,
            "payment_intent": self.intent, "status": self.status, "reason": self.reason, "metadata": self.metadata,
            "created": self.created})
    }
}

impl Program for Stripe {
    fn answer(self: &Arc<Self>, ask: &Ask, base_url: &str) -> Answer {
        if let Some(id) = ask.path.strip_prefix("/pay/") {
            return self.customer(ask, id);
        }
        if ask.path.starts_with("/_control/") {
            return self.control(ask);
        }
        if ask.header("authorization") != format!("Bearer {SECRET_KEY}") {
            let body = json!({"error": {"type": "invalid_request_error", "message": "Invalid API Key provided"}});
            return Answer::json(StatusCode::UNAUTHORIZED, &body);
        }
        let version = ask.header("stripe-version");
        let date = version.split('.').next().unwrap_or_default();
        if !version.is_empty() && (date.len() != 10 || !date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
        {
            return error("invalid_request_error", None, "Invalid Stripe API version", None);
        }
        match ask.method {
            Method::POST => self.once(ask, base_url),
            Method::GET => self.get(&ask.path, base_url),
            _ => error("invalid_request_error", None, "Unrecognized request method", None),
        }
    }

    fn operation(&self, ask: &Ask) -> Option<&'static str> {
        let path = ask.path.strip_prefix("/v1/")?;
        Some(match (&ask.method, path) {
            (&Method::POST, "checkout/sessions") => "create",
            (&Method::POST, "refunds") => "refund",
            (&Method::POST, path) if path.ends_with("/expire") => "expire",
            (&Method::GET, _) => "retrieve",
            _ => "other",
        })
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn value<'f>(form: &'f [(String, String)], name: &str) -> Option<&'f str> {
    form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn metadata(form: &[(String, String)]) -> BTreeMap<String, String> {
    let entry = |(name, value): &(String, String)| {
        let key = name.strip_prefix("metadata[")?.strip_suffix(']')?;
        Some((key.to_owned(), value.clone()))
    };
    form.iter().filter_map(entry).collect()
}

fn unknown(form: &[(String, String)], known: &[&str]) -> Option<Answer> {
    let is_unknown = |name: &&String| !known.contains(&name.as_str()) && !name.starts_with("metadata[");
    let name = form.iter().map(|(name, _)| name).find(is_unknown)?;
    Some(error(
        "invalid_request_error",
        Some("parameter_unknown"),
        &format!("Received unknown parameter: {name}"),
        Some(name),
    ))
}

fn invalid(param: &str, message: &str) -> Answer {
    error("invalid_request_error", None, message, Some(param))
}

fn no_such(what: &str, id: &str) -> Answer {
    let body = json!({"error": {"type": "invalid_request_error", "code": "resource_missing",
        "message": format!("No such {what}: '{id}'")}});
    Answer::json(StatusCode::NOT_FOUND, &body)
}

fn error(kind: &str, code: Option<&str>, message: &str, param: Option<&str>) -> Answer {
    let mut error = json!({"type": kind, "message": message});
    if let Some(code) = code {
        error["code"] = json!(code);
    }
    if let Some(param) = param {
        error["param"] = json!(param);
    }
    Answer::json(StatusCode::BAD_REQUEST, &json!({"error": error}))
}
