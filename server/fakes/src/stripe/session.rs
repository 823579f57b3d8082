//! Checkout Sessions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    State,
    charge::Charge,
    known::CARD,
    refusal::{invalid, refuse_unknown, refused},
};
use crate::{Answer, Entry, Form, escaped, now, token};

/// The smallest charge, in cents.
const SMALLEST: u64 = 50;
/// The largest amount, in cents.
pub(super) const LARGEST: u64 = 99_999_999;

const NAME: &str = "line_items[0][price_data][product_data][name]";
const CURRENCY: &str = "line_items[0][price_data][currency]";
const UNIT_AMOUNT: &str = "line_items[0][price_data][unit_amount]";
const QUANTITY: &str = "line_items[0][quantity]";
const REQUIRED: [&str; 6] = ["mode", "success_url", QUANTITY, CURRENCY, UNIT_AMOUNT, NAME];
/// How the names of metadata begin: of the session or refund, and of the payment intent.
pub(super) const METADATA: &str = "metadata[";
const INTENT_METADATA: &str = "payment_intent_data[metadata][";
const OPTIONAL: [&str; 6] =
    ["client_reference_id", "expires_at", "cancel_url", "customer_email", METADATA, INTENT_METADATA];

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) intent: String,
    reference: Option<String>,
    metadata: BTreeMap<String, String>,
    /// The metadata of the payment intent, which its charge copies.
    pub(super) intent_metadata: BTreeMap<String, String>,
    pub(super) amount: u64,
    pub(super) currency: String,
    status: &'static str,
    payment_status: &'static str,
    intent_status: &'static str,
    pub(super) name: String,
    success_url: String,
    pub(super) cancel_url: Option<String>,
    expires_at: u64,
    created: u64,
    pub(super) taken: u32,
    pub(super) charge: Option<Charge>,
    /// The refunded money, in minor units; `refunds` counts its refunds.
    pub(super) refunded: u64,
    pub(super) refunds: u32,
    /// The money that disputes hold, in minor units, and whether the charge was ever disputed.
    pub(super) disputed: u64,
    /// The fees of the charge and of its disputes, in minor units.
    pub(super) kept: u64,
    pub(super) is_disputed: bool,
    pub(super) number: u64,
}

impl Session {
    /// Creates a session from a form.
    pub(super) fn new(form: &Form, number: u64) -> Result<Self, Answer> {
        refuse_unknown(form.keys(), &[&REQUIRED[..], &OPTIONAL].concat())?;
        if let Some(name) = REQUIRED.into_iter().find(|name| form.get(*name).is_none_or(String::is_empty)) {
            let message = format!("Missing required param: {name}.");
            return Err(refused(Some("parameter_missing"), &message, Some(name)));
        }
        if form["mode"] != "payment" {
            return Err(invalid("mode", "Only mode payment is known here."));
        }
        let number_in = |name: &str| form.get(name).and_then(|text| text.parse::<u64>().ok());
        let (Some(unit), Some(quantity)) = (number_in(UNIT_AMOUNT), number_in(QUANTITY)) else {
            return Err(invalid("line_items", "Invalid integer."));
        };
        let Some(amount) = unit.checked_mul(quantity).filter(|amount| *amount <= LARGEST) else {
            return Err(refused(Some("amount_too_large"), "Amount must be no more than $999,999.99", None));
        };
        if amount < SMALLEST {
            let message = "The Checkout Session's total amount due must add up to at least $0.50 usd";
            return Err(refused(Some("amount_too_small"), message, None));
        }
        let currency = form[CURRENCY].clone();
        if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(invalid(CURRENCY, "Invalid currency."));
        }
        let now = now();
        let expires_at = number_in("expires_at").unwrap_or(now + 24 * 3600);
        if !(now + 30 * 60..=now + 24 * 3600).contains(&expires_at) {
            let message =
                "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.";
            return Err(invalid("expires_at", message));
        }
        for name in ["success_url", "cancel_url"] {
            if form.get(name).is_some_and(|text| url::Url::parse(text).is_err()) {
                return Err(refused(Some("url_invalid"), "Not a valid URL", Some(name)));
            }
        }
        Ok(Self {
            id: token("cs_test_", number, "session"),
            intent: token("pi_", number, "intent"),
            reference: form.get("client_reference_id").cloned(),
            metadata: metadata(form, METADATA)?,
            intent_metadata: metadata(form, INTENT_METADATA)?,
            amount,
            currency,
            status: "open",
            payment_status: "unpaid",
            intent_status: "requires_payment_method",
            name: form[NAME].clone(),
            success_url: form["success_url"].clone(),
            cancel_url: form.get("cancel_url").cloned(),
            expires_at,
            created: now,
            taken: 0,
            charge: None,
            refunded: 0,
            refunds: 0,
            disputed: 0,
            kept: 0,
            is_disputed: false,
            number,
        })
    }

    /// Whether it is charged, and this is its id, its payment intent, its charge or its reference.
    fn is_charged_as(&self, id: &str) -> bool {
        let charge = self.charge.as_ref();
        charge.is_some_and(|charge| self.id == id || self.intent == id || charge.id == id || self.is_of(id))
    }

    /// Whether the merchant gave the session this reference.
    pub(super) fn is_of(&self, reference: &str) -> bool {
        self.reference.as_deref() == Some(reference)
    }

    pub(super) fn is_open(&self) -> bool {
        self.status == "open"
    }

    /// Completes the session and takes the money unless the card is slow. Returns the return URL.
    pub(super) fn complete(&mut self, is_slow: bool) -> String {
        self.status = "complete";
        if is_slow {
            self.intent_status = "processing";
        } else {
            self.take();
        }
        self.success_url.replace("{CHECKOUT_SESSION_ID}", &self.id)
    }

    /// Ends a slow payment. Returns the type of its event, or `None` if no payment is processing.
    pub(super) fn finish(&mut self, succeeds: bool) -> Option<&'static str> {
        if self.intent_status != "processing" {
            return None;
        }
        if succeeds {
            self.take();
            return Some("checkout.session.async_payment_succeeded");
        }
        self.intent_status = "requires_payment_method";
        Some("checkout.session.async_payment_failed")
    }

    pub(super) fn take(&mut self) {
        self.payment_status = "paid";
        self.intent_status = "succeeded";
        self.taken += 1;
        self.charge.get_or_insert_with(|| Charge::new(self.number));
    }

    /// Expires the session on the merchant's request.
    pub(super) fn expire(&mut self) -> Result<(), Answer> {
        self.expire_if_due();
        if !self.is_open() {
            let status = self.status;
            let message =
                format!("Only Checkout Sessions with a status in [\"open\"] can be expired. This one is {status}.");
            return Err(refused(None, &message, None));
        }
        self.status = "expired";
        Ok(())
    }

    /// Expires the session if it is past `expires_at`.
    pub(super) fn expire_if_due(&mut self) {
        if self.is_open() && now() >= self.expires_at {
            self.status = "expired";
        }
    }

    /// The customer's page.
    pub(super) fn page(&self, problem: &str) -> Answer {
        Answer::html(format!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
             <title>Card processor (fake)</title><h1>Card processor (fake)</h1>{problem}<p>{}: {}.{:02} {}</p>\
             <form method=post><label>Card <input name=card value={CARD}></label>\
             <button name=action value=pay id=pay>Pay</button>\
             <button name=action value=cancel id=cancel>Back</button></form></html>",
            escaped(&self.name),
            self.amount / 100,
            self.amount % 100,
            escaped(&self.currency)
        ))
    }

    pub(super) fn entry(&self) -> Entry {
        Entry {
            id: self.id.clone(),
            reference: self.reference.clone().unwrap_or_default(),
            amount_minor: self.amount,
            is_refused: self.status == "complete" && self.intent_status == "requires_payment_method",
            taken: self.taken,
            refunded: self.refunds,
            refunded_minor: self.refunded,
            disputed_minor: self.disputed,
            kept_minor: self.kept,
        }
    }

    pub(super) fn intent_json(&self) -> Value {
        let received = if self.charge.is_some() { self.amount } else { 0 };
        json!({"id": self.intent, "object": "payment_intent", "amount": self.amount, "amount_received": received,
            "created": self.created, "currency": self.currency, "last_payment_error": null,
            "latest_charge": self.charge.as_ref().map(|charge| &charge.id), "livemode": false,
            "metadata": self.intent_metadata, "status": self.intent_status})
    }

    /// The charge, or null before it succeeds.
    pub(super) fn charge_json(&self) -> Value {
        let Some(charge) = &self.charge else { return Value::Null };
        json!({
            "id": charge.id, "object": "charge", "amount": self.amount, "amount_captured": self.amount,
            "amount_refunded": self.refunded, "balance_transaction": charge.row, "captured": true,
            "created": charge.created, "currency": self.currency, "description": null, "disputed": self.is_disputed,
            "failure_balance_transaction": null, "failure_code": null, "failure_message": null, "livemode": false,
            "metadata": self.intent_metadata, "paid": true, "payment_intent": self.intent,
            "payment_method_details": {"card": {"brand": "visa", "last4": "4242"}, "type": "card"},
            "refunded": self.refunded == self.amount, "status": "succeeded",
        })
    }

    pub(super) fn json(&self, base_url: &str) -> Value {
        let is_open = self.is_open();
        json!({
            "id": self.id, "object": "checkout.session", "amount_subtotal": self.amount, "amount_total": self.amount,
            "cancel_url": self.cancel_url, "client_reference_id": self.reference, "created": self.created,
            "currency": self.currency, "expires_at": self.expires_at, "livemode": false, "metadata": self.metadata,
            "mode": "payment",
            // In the current API version an open session has no payment intent.
            "payment_intent": if is_open { Value::Null } else { json!(self.intent) },
            "payment_method_types": ["card"], "payment_status": self.payment_status, "status": self.status,
            "success_url": self.success_url,
            "url": if is_open { json!(format!("{base_url}/pay/{}", self.id)) } else { Value::Null },
        })
    }
}

impl State {
    /// The charged session with this id, payment intent, charge or reference.
    pub(super) fn charged(&self, id: &str) -> Option<String> {
        self.sessions.values().find(|session| session.is_charged_as(id)).map(|session| session.id.clone())
    }
}

/// Reads metadata, whose names begin with `prefix`.
pub(super) fn metadata(form: &Form, prefix: &str) -> Result<BTreeMap<String, String>, Answer> {
    let mut pairs = BTreeMap::new();
    for (name, value) in form.iter() {
        let Some(key) = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(']')) else { continue };
        for (what, text, most) in [("key", key, 40), ("value", value.as_str(), 500)] {
            let length = text.chars().count();
            if length > most {
                let message = format!(
                    "Metadata {what}s can have up to {most} characters, but you passed in a {what} that is {length} characters."
                );
                return Err(invalid(name, &message));
            }
        }
        pairs.insert(key.to_owned(), value.clone());
    }
    if pairs.len() > 50 {
        return Err(invalid(prefix.trim_end_matches('['), "Metadata can have up to 50 keys."));
    }
    Ok(pairs)
}
