//! Refunds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    refusal::{invalid, no_such, refuse_unknown, refused},
    session::{Session, metadata},
};
use crate::{Answer, Form, now, token};

/// The statuses of a refund.
pub(super) const STATUSES: [&str; 5] = ["pending", "requires_action", "succeeded", "failed", "canceled"];

#[derive(Debug)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) intent: String,
    amount: u64,
    currency: String,
    pub(super) status: &'static str,
    reason: Option<String>,
    metadata: BTreeMap<String, String>,
    created: u64,
    number: u64,
}

impl Refund {
    /// Creates a refund from a form.
    pub(super) fn new(
        form: &Form,
        number: u64,
        status: &'static str,
        sessions: &mut BTreeMap<String, Session>,
    ) -> Result<Self, Answer> {
        refuse_unknown(form, &["payment_intent", "amount", "reason"])?;
        let Some(intent) = form.get("payment_intent") else {
            return Err(refused(Some("parameter_missing"), "One of charge or payment_intent is needed.", None));
        };
        let known = ["duplicate", "fraudulent", "requested_by_customer"];
        if form.get("reason").is_some_and(|word| !known.contains(&word.as_str())) {
            let message = "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer";
            return Err(invalid("reason", message));
        }
        let session = sessions.values_mut().find(|session| session.intent == *intent);
        let session = session.ok_or_else(|| no_such("payment_intent", intent))?;
        if session.taken == 0 {
            let message = "This PaymentIntent does not have a successful charge to refund.";
            return Err(refused(Some("payment_intent_unexpected_state"), message, None));
        }
        let left = session.amount - session.refunded;
        let amount = form.get("amount").map_or(Ok(left), |text| text.parse());
        let amount = amount.map_err(|_| invalid("amount", "Invalid integer."))?;
        if left == 0 {
            return Err(refused(Some("charge_already_refunded"), "Charge has already been refunded.", None));
        }
        if amount == 0 || amount > left {
            return Err(invalid("amount", "Refund amount is greater than the unrefunded amount on the charge."));
        }
        if !["failed", "canceled"].contains(&status) {
            session.refunded += amount;
            session.refunds += 1;
        }
        Ok(Self {
            id: token("re_", number, "refund"),
            intent: session.intent.clone(),
            amount,
            currency: session.currency.clone(),
            status,
            reason: form.get("reason").cloned(),
            metadata: metadata(form),
            created: now(),
            number,
        })
    }

    /// A page of the refunds of a payment intent, newest first.
    pub(super) fn list(refunds: &BTreeMap<String, Self>, query: &Form) -> Result<Value, Answer> {
        let limit = query.get("limit").map_or(Ok(10), |text| text.parse());
        let limit: usize = limit.map_err(|_| invalid("limit", "Invalid integer."))?;
        let intent = query.get("payment_intent").map_or("", String::as_str);
        let mut all: Vec<&Self> = refunds.values().filter(|refund| refund.intent == intent).collect();
        all.sort_by_key(|refund| std::cmp::Reverse(refund.number));
        if let Some(after) = query.get("starting_after") {
            let after = all.iter().position(|refund| refund.id == *after).ok_or_else(|| no_such("refund", after))?;
            all.drain(..=after);
        }
        let data: Vec<Value> = all.iter().take(limit).map(|refund| refund.json()).collect();
        Ok(json!({"object": "list", "url": "/v1/refunds", "has_more": all.len() > data.len(), "data": data}))
    }

    pub(super) fn json(&self) -> Value {
        json!({"id": self.id, "object": "refund", "amount": self.amount, "currency": self.currency,
            "payment_intent": self.intent, "status": self.status, "reason": self.reason, "metadata": self.metadata,
            "created": self.created})
    }
}
