//! Fake of Stripe Checkout Sessions and the money that they move, after Stripe's public reference.
//!
//! Base address: `{url}`. The secret key is [`SECRET_KEY`], the secret of events [`WEBHOOK_SECRET`]. On the customer's
//! page [`CARD`] pays, [`DECLINED_CARD`] is declined, [`SLOW_CARD`] pays later.

mod balance;
mod charge;
mod control;
mod customer;
mod dispute;
mod events;
mod expand;
mod kind;
mod known;
mod page;
mod payout;
mod read;
mod refund;
mod refusal;
mod replays;
mod session;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use http::{Method, StatusCode};
use serde_json::Value;

pub use self::events::SignedEvent;
pub use self::known::{
    CARD, CHARGE_FEE_FIXED, CHARGE_FEE_PER_MILLE, DECLINED_CARD, DISPUTE_FEE, DISPUTE_RESPONSE_TIME, SECRET_KEY,
    SLOW_CARD, VERSION, WEBHOOK_SECRET, charge_fee,
};
use self::{
    balance::Balance,
    dispute::Dispute,
    events::{Events, Target},
    payout::Payout,
    refund::{Beginning, Refund},
    refusal::{error, invalid_key, no_such, refused},
    replays::{Replays, other_parameters},
    session::Session,
};
use crate::{Answer, Call, Entry, Form, Instead, Program, lock};

/// The fake.
#[derive(Debug, Default)]
pub struct Stripe {
    state: Mutex<State>,
    replays: Replays,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<String, Session>,
    refunds: BTreeMap<String, Refund>,
    disputes: Vec<Dispute>,
    holds_withdrawals: bool,
    payouts: Vec<Payout>,
    balance: Balance,
    next_refund: Beginning,
    refuses_session: bool,
    events: Events,
    versions: BTreeSet<String>,
}

impl Stripe {
    /// Creates a fake without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends each event to this address `times` times from now on.
    pub fn send_events_to(&self, address: &str, times: u32) {
        lock(&self.state).events.target = Target::Address(address.to_owned(), times);
    }

    /// Keeps events for [`take_events`](Self::take_events) from now on.
    pub fn keep_events(&self) {
        lock(&self.state).events.target = Target::Kept(Vec::new());
    }

    /// Sends events that one step makes in the reverse order from now on, such as `charge.refunded` before `refund.created`.
    pub fn reverse_events(&self, are_reversed: bool) {
        lock(&self.state).events.are_reversed = are_reversed;
    }

    /// Takes the events that were kept.
    pub fn take_events(&self) -> Vec<SignedEvent> {
        lock(&self.state).events.take()
    }

    /// The payments and the money that it took and refunded.
    pub fn books(&self) -> Vec<Entry> {
        lock(&self.state).sessions.values().map(Session::entry).collect()
    }

    /// Pays a session with a card, as its customer does. Returns the return URL, or `None` if the session is not open or
    /// the card is declined.
    pub fn pay(&self, session: &str, card: &str) -> Option<String> {
        let State { sessions, balance, events, .. } = &mut *lock(&self.state);
        let session = sessions.get_mut(session)?;
        session.expire_if_due();
        if !session.is_open() || card == DECLINED_CARD {
            return None;
        }
        let target = session.complete(card == SLOW_CARD);
        balance.book_charge(session);
        events.send("checkout.session.completed", &session.json(""));
        Some(target)
    }

    /// Goes back to the shop from an open session, as its customer does. Returns the merchant's address for it.
    pub fn cancel(&self, session: &str) -> Option<String> {
        let state = lock(&self.state);
        state.sessions.get(session).filter(|session| session.is_open())?.cancel_url.clone()
    }

    /// Ends a slow payment.
    pub fn finish(&self, session: &str, succeeds: bool) {
        let State { sessions, balance, events, .. } = &mut *lock(&self.state);
        let Some(session) = sessions.get_mut(session) else { return };
        if let Some(kind) = session.finish(succeeds) {
            balance.book_charge(session);
            events.send(kind, &session.json(""));
        }
    }

    /// Takes a session's money after all, even if the session was refused or had failed.
    pub fn take_late(&self, session: &str) {
        let State { sessions, balance, .. } = &mut *lock(&self.state);
        if let Some(session) = sessions.get_mut(session) {
            session.take();
            balance.book_charge(session);
        }
    }

    /// Refuses the next session because of the merchant's account.
    pub fn refuse_next_session(&self) {
        lock(&self.state).refuses_session = true;
    }

    /// Reports another amount for a session from now on.
    pub fn falsify_amount(&self, session: &str, amount: u64) {
        if let Some(session) = lock(&self.state).sessions.get_mut(session) {
            session.amount = amount;
        }
    }

    /// Forgets all idempotency keys, as Stripe does after a day.
    pub fn forget_keys(&self) {
        self.replays.forget();
    }

    /// The API versions that requests named; an empty one if a request named none.
    pub fn versions(&self) -> Vec<String> {
        lock(&self.state).versions.iter().cloned().collect()
    }

    fn post(&self, call: &Call, base_url: &str) -> Result<Value, Answer> {
        if !call.header("content-type").starts_with("application/x-www-form-urlencoded") && !call.body.is_empty() {
            return Err(refused(None, "Bodies are form-encoded.", None));
        }
        let form = call.form();
        match call.path.as_str() {
            "/v1/checkout/sessions" => self.create_session(&form, base_url),
            "/v1/refunds" => lock(&self.state).refund(&form),
            path => match path.strip_prefix("/v1/checkout/sessions/").and_then(|rest| rest.strip_suffix("/expire")) {
                Some(id) => self.expire(id),
                None => Err(no_such("path", path)),
            },
        }
    }

    fn create_session(&self, form: &Form, base_url: &str) -> Result<Value, Answer> {
        let State { sessions, refuses_session, .. } = &mut *lock(&self.state);
        if std::mem::take(refuses_session) {
            let message = "Your account cannot currently make live charges.";
            return Err(refused(Some("account_invalid"), message, None));
        }
        let session = Session::new(form, sessions.len() as u64)?;
        let json = session.json(base_url);
        sessions.insert(session.id.clone(), session);
        Ok(json)
    }

    fn expire(&self, id: &str) -> Result<Value, Answer> {
        let State { sessions, events, .. } = &mut *lock(&self.state);
        let session = sessions.get_mut(id).ok_or_else(|| no_such("checkout session", id))?;
        session.expire()?;
        let json = session.json("");
        events.send("checkout.session.expired", &json);
        Ok(json)
    }

    fn customer(&self, call: &Call, id: &str) -> Answer {
        let mut problem = "";
        if call.method == Method::POST {
            let form = call.form();
            if form.get("action").is_some_and(|action| action == "cancel") {
                let cancel = lock(&self.state).sessions.get(id).and_then(|session| session.cancel_url.clone());
                return cancel.map_or_else(|| no_such("page", id), Answer::see_other);
            }
            match self.pay(id, form.get("card").map_or("", String::as_str)) {
                Some(target) => return Answer::see_other(target),
                None => problem = "<p role=alert>Your card was declined.</p>",
            }
        }
        match lock(&self.state).sessions.get(id).filter(|session| session.is_open()) {
            Some(session) => session.page(problem),
            None => Answer::html(
                "<!doctype html><title>Card processor (fake)</title><p>This page is not open any more.</p>".into(),
            ),
        }
    }
}

impl Program for Stripe {
    fn answer(&self, call: &Call, base_url: &str) -> Answer {
        if let Some(id) = call.path.strip_prefix("/pay/") {
            return self.customer(call, id);
        }
        if call.path.starts_with("/_control/") {
            return self.control(call);
        }
        if call.header("authorization") != format!("Bearer {SECRET_KEY}") {
            return invalid_key();
        }
        let version = call.header("stripe-version");
        let date = version.split('.').next().unwrap_or_default();
        if !version.is_empty() && (date.len() != 10 || !date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
        {
            return refused(None, "Invalid Stripe API version", None);
        }
        lock(&self.state).versions.insert(version.to_owned());
        match call.method {
            Method::POST => self.replays.once(call, || Answer::of(self.post(call, base_url))),
            Method::GET => Answer::of(self.get(call, base_url)),
            _ => refused(None, "Unrecognized request method", None),
        }
    }

    fn instead(&self, instead: Instead) -> Answer {
        let invalid = "invalid_request_error";
        match instead {
            Instead::Unauthorized => invalid_key(),
            Instead::Forbidden => {
                let message = "The provided key does not have the required permissions for this endpoint.";
                error(StatusCode::FORBIDDEN, invalid, Some("more_permissions_required"), message, None)
            }
            // The key is of another account.
            Instead::NotFound => no_such("payment_intent", "pi_of_another_account"),
            Instead::Page => Answer::proxy_page(),
            Instead::Code(_) => other_parameters(),
        }
    }

    fn settings(&self, base_url: &str) -> String {
        format!(
            "[stripe]\nbase_url = \"{base_url}\"\nsecret_key = \"{SECRET_KEY}\"\nwebhook_secret = \"{WEBHOOK_SECRET}\"\n"
        )
    }

    fn operation(&self, call: &Call) -> Option<&'static str> {
        let path = call.path.strip_prefix("/v1/")?;
        Some(match (&call.method, path) {
            (&Method::POST, "checkout/sessions") => "create",
            (&Method::POST, "refunds") => "refund",
            (&Method::POST, path) if path.ends_with("/expire") => "expire",
            (&Method::GET, _) if call.query.get("created[gte]").is_some() => "list",
            (&Method::GET, _) => "retrieve",
            _ => "other",
        })
    }
}
