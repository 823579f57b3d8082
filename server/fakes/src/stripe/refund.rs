//! Refunds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    State, Stripe,
    balance::Movement,
    dispute::Dispute,
    refusal::{invalid, no_such, refuse_unknown, refused},
    session::{METADATA, Session, metadata},
};
use crate::{Answer, Form, lock, now, token};

/// The statuses of a refund.
pub(super) const STATUSES: [&str; 5] = ["pending", "requires_action", "succeeded", "failed", "canceled"];
/// Why a refund is pending.
pub(super) const PENDING_REASONS: [&str; 3] = ["processing", "insufficient_funds", "charge_pending"];
/// Why the customer's bank rejects a refund.
const FAILURE_REASON: &str = "expired_or_canceled_card";

#[derive(Debug)]
pub(super) struct Refund {
    id: String,
    session: String,
    intent: String,
    charge: String,
    amount: u64,
    currency: String,
    status: &'static str,
    pending_reason: &'static str,
    reason: Option<String>,
    metadata: BTreeMap<String, String>,
    created: u64,
    /// The balance transactions of the refund and of its failure.
    row: Option<String>,
    failure_row: Option<String>,
    pub(super) number: u64,
}

/// How the next refund begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    status: &'static str,
    pending_reason: &'static str,
}

impl Default for Beginning {
    fn default() -> Self {
        Self { status: "succeeded", pending_reason: "processing" }
    }
}

impl Stripe {
    /// Sets the initial status of the next refund: `pending`, `requires_action`, `succeeded`, `failed` or `canceled`. A
    /// failed or canceled refund moves no money.
    pub fn next_refund_is(&self, status: &'static str) {
        lock(&self.state).next_refund = Beginning { status, ..Beginning::default() };
    }

    /// Makes the next refund pending for this reason: `processing`, `insufficient_funds` or `charge_pending`. A refund that
    /// waits for funds has no balance transaction until it succeeds.
    pub fn next_refund_waits(&self, pending_reason: &'static str) {
        lock(&self.state).next_refund = Beginning { status: "pending", pending_reason };
    }

    /// Refunds all money of a session, as a person does in the dashboard. The refund has no metadata.
    pub fn refund_by_hand(&self, reference: &str) {
        let _ = lock(&self.state).refund_by_hand(reference, None);
    }

    /// Refunds a part of a session's money, as a person does in the dashboard. The refund has no metadata. Returns its id, or
    /// `None` if Stripe refuses it.
    pub fn refund_part_by_hand(&self, reference: &str, minor: u64) -> Option<String> {
        let refund = lock(&self.state).refund_by_hand(reference, Some(minor))?;
        refund["id"].as_str().map(str::to_owned)
    }

    /// Makes a pending refund succeed, or one that requires an action. Returns whether it did.
    pub fn succeed_refund(&self, refund: &str) -> bool {
        let State { sessions, refunds, balance, events, .. } = &mut *lock(&self.state);
        let Some(refund) = refunds.get_mut(refund) else { return false };
        let Some(session) = sessions.get(&refund.session) else { return false };
        if !["pending", "requires_action"].contains(&refund.status) {
            return false;
        }
        refund.status = "succeeded";
        if refund.row.is_none() {
            refund.row = Some(balance.book(session, Movement::Refund, &refund.id, -refund.amount.cast_signed(), 0));
        }
        events.send("refund.updated", &refund.json());
        true
    }

    /// Fails a refund later, as if the customer's bank rejected it. The money is back in the merchant's balance.
    pub fn fail_refund(&self, refund: &str) {
        let State { sessions, refunds, balance, events, .. } = &mut *lock(&self.state);
        let Some(refund) = refunds.get_mut(refund) else { return };
        let Some(session) = sessions.get_mut(&refund.session) else { return };
        if !refund.moves_money() {
            return;
        }
        refund.status = "failed";
        session.refunded -= refund.amount;
        session.refunds -= 1;
        if refund.row.is_some() {
            let amount = refund.amount.cast_signed();
            refund.failure_row = Some(balance.book(session, Movement::RefundFailure, &refund.id, amount, 0));
        }
        events.send_all(vec![("refund.updated", refund.json()), ("refund.failed", refund.json())]);
    }

    /// The ids of all refunds.
    pub fn refunds(&self) -> Vec<String> {
        lock(&self.state).refunds.keys().cloned().collect()
    }
}

impl State {
    /// Creates a refund.
    pub(super) fn refund(&mut self, form: &Form) -> Result<Value, Answer> {
        let Self { sessions, refunds, disputes, balance, events, next_refund, .. } = self;
        let mut refund = Refund::new(form, refunds.len() as u64, *next_refund, sessions, disputes)?;
        *next_refund = Beginning::default();
        let Some(session) = sessions.get_mut(&refund.session) else { return Ok(Value::Null) };
        if refund.moves_money() {
            session.refunded += refund.amount;
            session.refunds += 1;
            if refund.status != "pending" || refund.pending_reason != "insufficient_funds" {
                refund.row = Some(balance.book(session, Movement::Refund, &refund.id, -refund.amount.cast_signed(), 0));
            }
        }
        let json = refund.json();
        let mut step = vec![("refund.created", json.clone())];
        if refund.moves_money() {
            step.push(("charge.refunded", session.charge_json()));
        }
        if refund.status == "failed" {
            step.push(("refund.failed", json.clone()));
        }
        refunds.insert(refund.id.clone(), refund);
        events.send_all(step);
        Ok(json)
    }

    fn refund_by_hand(&mut self, reference: &str, minor: Option<u64>) -> Option<Value> {
        let session = self.sessions.values().find(|it| it.is_of(reference) && it.taken > 0)?;
        let intent = ("payment_intent".to_owned(), session.intent.clone());
        let amount = minor.map(|minor| ("amount".to_owned(), minor.to_string()));
        self.refund(&[intent].into_iter().chain(amount).collect()).ok()
    }
}

impl Refund {
    /// Creates a refund from a form.
    fn new(
        form: &Form,
        number: u64,
        Beginning { status, pending_reason }: Beginning,
        sessions: &BTreeMap<String, Session>,
        disputes: &[Dispute],
    ) -> Result<Self, Answer> {
        refuse_unknown(form.keys(), &["payment_intent", "charge", "amount", "reason", METADATA])?;
        let known = ["duplicate", "fraudulent", "requested_by_customer"];
        if form.get("reason").is_some_and(|word| !known.contains(&word.as_str())) {
            let message = "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer";
            return Err(invalid("reason", message));
        }
        let session = refunded_session(form, sessions)?;
        let Some(charge) = &session.charge else {
            let message = "This PaymentIntent does not have a successful charge to refund.";
            return Err(refused(Some("payment_intent_unexpected_state"), message, None));
        };
        if disputes.iter().any(|dispute| dispute.forbids_refund_of(&charge.id)) {
            let message = format!("Charge {} has been charged back; cannot issue a refund.", charge.id);
            return Err(refused(Some("charge_disputed"), &message, None));
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
        Ok(Self {
            id: token("re_", number, "refund"),
            session: session.id.clone(),
            intent: session.intent.clone(),
            charge: charge.id.clone(),
            amount,
            currency: session.currency.clone(),
            status,
            pending_reason,
            reason: form.get("reason").cloned(),
            metadata: metadata(form, METADATA)?,
            created: now(),
            row: None,
            failure_row: None,
            number,
        })
    }

    /// Whether the money is back at the customer, or is on its way.
    fn moves_money(&self) -> bool {
        !["failed", "canceled"].contains(&self.status)
    }

    pub(super) fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id, "object": "refund", "amount": self.amount, "balance_transaction": self.row,
            "charge": self.charge, "created": self.created, "currency": self.currency,
            "destination_details": {"card": {"reference_status": "pending", "reference_type":
                "acquirer_reference_number", "type": "refund"}, "type": "card"},
            "metadata": self.metadata, "payment_intent": self.intent, "reason": self.reason, "receipt_number": null,
            "source_transfer_reversal": null, "status": self.status, "transfer_reversal": null,
        });
        // Stripe sends these only if they have a value.
        let failure_reason = (self.status == "failed").then_some(FAILURE_REASON);
        let pending_reason = (self.status == "pending").then_some(self.pending_reason);
        for (name, value) in [
            ("failure_balance_transaction", self.failure_row.as_deref()),
            ("failure_reason", failure_reason),
            ("pending_reason", pending_reason),
        ] {
            if let Some(value) = value {
                json[name] = json!(value);
            }
        }
        json
    }
}

/// The session of the payment intent or charge that a form names.
fn refunded_session<'s>(form: &Form, sessions: &'s BTreeMap<String, Session>) -> Result<&'s Session, Answer> {
    let (intent, charge) = (form.get("payment_intent"), form.get("charge"));
    let Some(named) = intent.or(charge) else {
        return Err(refused(Some("parameter_missing"), "One of charge or payment_intent is needed.", None));
    };
    let is_charge = |it: &&Session, id: &String| it.charge.as_ref().is_some_and(|charge| charge.id == *id);
    let kind = if intent.is_some() { "payment_intent" } else { "charge" };
    let named_by = |it: &&Session| intent.map_or_else(|| is_charge(it, named), |intent| it.intent == *intent);
    let session = sessions.values().find(named_by).ok_or_else(|| no_such(kind, named))?;
    match charge {
        Some(charge) if !is_charge(&session, charge) => {
            Err(invalid("charge", "The charge does not belong to the payment intent."))
        }
        _ => Ok(session),
    }
}
