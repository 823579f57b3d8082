//! Signed events, which are sent to an address or kept for a test.

use serde_json::{Value, json};

use super::known::WEBHOOK_SECRET;
use crate::{now, token};

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) target: Target,
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
    pub(super) fn send(&mut self, kind: &str, object: &Value) {
        self.made += 1;
        if matches!(self.target, Target::Nowhere) {
            return;
        }
        let event = json!({
            "id": token("evt_", self.made, kind), "object": "event", "api_version": "2025-03-31.basil",
            "created": now(), "type": kind, "livemode": false, "pending_webhooks": 1,
            "request": {"id": null, "idempotency_key": null}, "data": {"object": object},
        });
        let body = event.to_string();
        let Ok(secret) = webhook_verify::Secret::new(WEBHOOK_SECRET) else { return };
        let signature = webhook_verify::Signer::new(secret).sign_at(body.as_bytes(), now()).to_string();
        match &mut self.target {
            Target::Nowhere => {}
            Target::Kept(events) if events.len() < MOST_KEPT => events.push(SignedEvent { signature, body }),
            Target::Kept(_) => {}
            Target::Address(address, times) => {
                let (address, times) = (address.clone(), *times);
                tokio::spawn(async move {
                    let http = reqwest::Client::new();
                    for _ in 0..times {
                        let request = http.post(&address).header("content-type", "application/json; charset=utf-8");
                        // Stripe retries a failed delivery; the fake does not.
                        let _ = request.header("stripe-signature", &signature).body(body.clone()).send().await;
                    }
                });
            }
        }
    }

    pub(super) fn take(&mut self) -> Vec<SignedEvent> {
        match &mut self.target {
            Target::Kept(events) => std::mem::take(events),
            _ => Vec::new(),
        }
    }
}
