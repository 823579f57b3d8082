//! Signed events to one address.

use serde_json::{Value, json};

use super::known::WEBHOOK_SECRET;
use crate::{now, token};

#[derive(Debug, Default)]
pub(super) struct Events {
    /// The address, and how many times each event goes there.
    pub(super) target: Option<(String, u32)>,
    made: u64,
}

impl Events {
    pub(super) fn send(&mut self, kind: &str, object: &Value) {
        self.made += 1;
        let Some((address, times)) = self.target.clone() else { return };
        let event = json!({
            "id": token("evt_", self.made, kind), "object": "event", "api_version": "2025-03-31.basil",
            "created": now(), "type": kind, "livemode": false, "pending_webhooks": 1,
            "request": {"id": null, "idempotency_key": null}, "data": {"object": object},
        });
        let body = event.to_string();
        tokio::spawn(async move {
            let Ok(secret) = webhook_verify::Secret::new(WEBHOOK_SECRET) else { return };
            let signature = webhook_verify::Signer::new(secret).sign_at(body.as_bytes(), now()).to_string();
            let http = reqwest::Client::new();
            for _ in 0..times {
                let request = http.post(&address).header("content-type", "application/json; charset=utf-8");
                // Stripe retries a failed delivery; the fake does not.
                let _ = request.header("stripe-signature", &signature).body(body.clone()).send().await;
            }
        });
    }
}
