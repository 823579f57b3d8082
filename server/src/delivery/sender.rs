//! One request to a merchant's endpoint (API specification, "Delivery").

use std::{sync::Arc, time::Duration};

use payments_core::{Delivery, DeliveryStatus, WebhookEndpoint};
use reqwest::{Client, Response, redirect};
use tokio::time::timeout;
use webhook_verify::{Secret, Signer};

use super::TargetPolicy;
use crate::ambient::Ambient;

/// All of an attempt: looking the name up, connecting, TLS, sending, and the answer as far as it is kept.
pub(super) const ATTEMPT: Duration = Duration::from_secs(8);
/// How much of an answer's body is read and kept; the rest is left on the wire.
const KEPT_BODY_BYTES: usize = 1024;

/// Calls endpoints.
pub(crate) struct Sender {
    ambient: Arc<dyn Ambient>,
    targets: TargetPolicy,
    client: Client,
    header_names: HeaderNames,
}

/// `X-Service-Signature` and its like, with the operator's word.
struct HeaderNames {
    signature: String,
    event: String,
    delivery: String,
}

impl Sender {
    pub(crate) fn new(
        ambient: Arc<dyn Ambient>,
        targets: TargetPolicy,
        header_word: &str,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .user_agent(concat!("payments-server/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(targets)
            .build()?;
        let header_names = HeaderNames {
            signature: format!("X-{header_word}-Signature"),
            event: format!("X-{header_word}-Event"),
            delivery: format!("X-{header_word}-Delivery"),
        };
        Ok(Self { ambient, targets, client, header_names })
    }

    /// Makes the one attempt of a delivery and writes its outcome into it.
    pub(crate) async fn attempt(&self, endpoint: &WebhookEndpoint, delivery: &mut Delivery) {
        delivery.attempts += 1;
        let outcome = match timeout(ATTEMPT, self.call(endpoint, delivery)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::unanswered("no answer within 8 seconds"),
        };
        delivery.status = outcome.status();
        delivery.response_status = outcome.response_status;
        delivery.response_body = outcome.response_body;
        delivery.delivered_at = outcome.response_status.map(|_| self.ambient.now());
        tracing::info!(delivery = %delivery.id, endpoint = %delivery.webhook_id, event = %delivery.event,
            status = %delivery.status, response = delivery.response_status, fault = outcome.fault, "webhook attempted");
    }

    async fn call(&self, endpoint: &WebhookEndpoint, delivery: &Delivery) -> Outcome {
        // Names are judged when they are looked up; an address written out is not looked up.
        let url = match self.targets.check_url(&endpoint.url) {
            Ok(url) => url,
            Err(fault) => return Outcome::unanswered(&format!("not sent: the address {fault}")),
        };
        let secret = match Secret::new(endpoint.secret.reveal()) {
            Ok(secret) => secret,
            Err(error) => return Outcome::unanswered(&format!("not sent: the endpoint's secret is unusable: {error}")),
        };
        let body = delivery.payload.as_str();
        let signature = Signer::new(secret).sign_at(body.as_bytes(), self.ambient.now().as_unix_seconds());
        let request = self
            .client
            .post(url)
            .header("Content-Type", "application/json")
            .header(&self.header_names.signature, signature.as_str())
            .header(&self.header_names.event, delivery.event.as_str())
            .header(&self.header_names.delivery, delivery.id.as_str())
            .body(body.to_owned());
        match request.send().await {
            Ok(response) => Outcome::answered(response).await,
            Err(error) => Outcome::unanswered(&root_cause(&error)),
        }
    }
}

/// What came of an attempt.
struct Outcome {
    response_status: Option<u16>,
    response_body: Option<String>,
    /// Why there is no answer, for the log.
    fault: Option<String>,
}

impl Outcome {
    fn status(&self) -> DeliveryStatus {
        match self.response_status {
            Some(200..=299) => DeliveryStatus::Success,
            _ => DeliveryStatus::Failed,
        }
    }

    /// Keeps the beginning of the answer and drops the connection with the rest: a receiver may send gigabytes.
    async fn answered(mut response: Response) -> Self {
        let response_status = Some(response.status().as_u16());
        let mut kept = Vec::new();
        while kept.len() < KEPT_BODY_BYTES {
            match response.chunk().await {
                Ok(Some(chunk)) => kept.extend_from_slice(&chunk),
                Ok(None) | Err(_) => break,
            }
        }
        kept.truncate(KEPT_BODY_BYTES);
        Self { response_status, response_body: Some(utf8_beginning(&kept)), fault: None }
    }

    fn unanswered(why: &str) -> Self {
        Self { response_status: None, response_body: None, fault: Some(why.to_owned()) }
    }
}

/// Bytes as text: a character that the cut went through is dropped, other bytes that are no UTF-8 are marked.
fn utf8_beginning(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    String::from_utf8_lossy(whole).into_owned()
}

/// The innermost reason, such as `Connection refused`; the outer ones repeat the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_cut_inside_a_character_ends_before_it() {
        let text = "অ".repeat(400);
        let cut = utf8_beginning(&text.as_bytes()[..1024]);
        assert_eq!(cut, "অ".repeat(341));
        assert_eq!(utf8_beginning(b"ok\xffok"), "ok\u{fffd}ok");
    }
}
