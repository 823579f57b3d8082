//! Signed events, which are sent to an address or kept for a test.

use serde_json::{Value, json};

use super::known::{VERSION, WEBHOOK_SECRET};
use crate::{now, token};

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) target: Target,
    /// Whether the events of one step are sent in the reverse order.
    pub(super) are_reversed: bool,
    made: u64,
}

/// Where events go.
#[derive(Debug, Default)]
pub(super) enum Target {
    #[default]
    Nowhere,
    /// Sends each event to this address, this many times.
    Address(String, u32),
    /// Keeps events for [`Stripe::take_events`](super::Stripe::take_events).
    Kept(Vec<SignedEvent>),
}

/// Maximum number of kept events.
const MOST_KEPT: usize = 1_000;

/// An event as it is sent.
#[derive(Debug, Clone)]
pub struct SignedEvent {
    /// The header `Stripe-Signature`.
    pub signature: String,
    /// The body.
    pub body: String,
}

impl Events {
    /// Sends an event.
    pub(super) fn send(&mut self, kind: &str, object: &Value) {
        self.send_all(vec![(kind, object.clone())]);
    }

    /// Sends the events of one step, one after another.
    pub(super) fn send_all(&mut self, mut step: Vec<(&str, Value)>) {
        if self.are_reversed {
            step.reverse();
        }
        let signed: Vec<_> = step.into_iter().filter_map(|(kind, object)| self.sign(kind, &object)).collect();
        match &mut self.target {
            Target::Nowhere => {}
            Target::Kept(events) => {
                let room = MOST_KEPT.saturating_sub(events.len());
                events.extend(signed.into_iter().take(room));
            }
            Target::Address(address, times) => {
                let (address, times) = (address.clone(), *times);
                tokio::spawn(async move {
                    let http = reqwest::Client::new();
                    for event in signed.iter().flat_map(|event| (0..times).map(move |_| event)) {
                        let request = http.post(&address).header("content-type", "application/json; charset=utf-8");
                        // Stripe retries a failed delivery; the fake does not.
                        let _ =
                            request.header("stripe-signature", &event.signature).body(event.body.clone()).send().await;
                    }
                });
            }
        }
    }

    /// Makes an event. `None` if events go nowhere.
    fn sign(&mut self, kind: &str, object: &Value) -> Option<SignedEvent> {
        self.made += 1;
        if matches!(self.target, Target::Nowhere) {
            return None;
        }
        let event = json!({
            "id": token("evt_", self.made, kind), "object": "event", "api_version": VERSION,
            "created": now(), "type": kind, "livemode": false, "pending_webhooks": 1,
            "request": {"id": null, "idempotency_key": null}, "data": {"object": object},
        });
        let body = event.to_string();
        let secret = webhook_verify::Secret::new(WEBHOOK_SECRET).ok()?;
        let signature = webhook_verify::Signer::new(secret).sign_at(body.as_bytes(), now()).to_string();
        Some(SignedEvent { signature, body })
    }

    pub(super) fn take(&mut self) -> Vec<SignedEvent> {
        match &mut self.target {
            Target::Kept(events) => std::mem::take(events),
            _ => Vec::new(),
        }
    }
}
