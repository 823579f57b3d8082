//! One request to a merchant's endpoint (API specification, "Delivery").

use std::{error::Error, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Incoming};
use payments_core::{Delivery, DeliveryError, DeliveryStatus, WebhookEndpoint};
use tokio::time::{Instant, timeout, timeout_at};
use webhook_verify::{Secret, Signer};

use super::{
    TargetPolicy,
    client::{Body, HttpClient},
    fault::Fault,
    lookups::{ATTEMPT_OF, AttemptOf, Lookups},
    places::Places,
};
use crate::{ambient::Ambient, descriptors::Shares, metrics::PlaceGauges};

/// All of an attempt: looking the name up, connecting, TLS, sending, and the answer as far as it is kept.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(8);
/// The same with what it waits until this server begins a lookup, of which it may need two.
pub(crate) const LONGEST_ATTEMPT: Duration = Duration::from_secs(10);
/// How long a test ping waits for a place.
const PING_WAIT: Duration = Duration::from_secs(2);
/// All of a test ping.
pub(crate) const LONGEST_PING: Duration = LONGEST_ATTEMPT.saturating_add(PING_WAIT);
/// How much of an answer's body is read and kept; the rest is left on the wire.
const KEPT_BODY_BYTES: usize = 1024;
const USER_AGENT: &str = concat!("payments-server/", env!("CARGO_PKG_VERSION"));

/// Calls endpoints.
pub(crate) struct Sender {
    ambient: Arc<dyn Ambient>,
    targets: TargetPolicy,
    client: HttpClient,
    header_names: HeaderNames,
    /// Pings need descriptors too. They have places of their own, so that deliveries to endpoints that hang delay none.
    pings: Arc<Places>,
}

/// Nothing was sent, because this server has not enough of something. The delivery is as it was.
#[derive(Debug, thiserror::Error)]
#[error("this server has not enough {0} to send webhooks")]
pub(crate) struct Exhausted(pub(crate) &'static str);

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
        shares: Shares,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let client = HttpClient::new(targets, Lookups::system(), shares.kept)?;
        let header_names = HeaderNames {
            signature: format!("X-{header_word}-Signature"),
            event: format!("X-{header_word}-Event"),
            delivery: format!("X-{header_word}-Delivery"),
        };
        let pings = Places::new(shares.pings, PlaceGauges::default());
        Ok(Self { ambient, targets, client, header_names, pings })
    }

    /// Makes the attempt of a test ping, once there is a place for it.
    pub(crate) async fn ping(&self, endpoint: &WebhookEndpoint, delivery: &mut Delivery) -> Result<(), Exhausted> {
        let place = Places::take(Arc::clone(&self.pings), Some(endpoint.developer_id.clone()));
        let mut place = timeout(PING_WAIT, place).await.map_err(|_| Exhausted("places for test pings"))?;
        place.loaded(2 * delivery.payload.as_str().len());
        self.attempt(endpoint, delivery).await
    }

    /// Makes the one attempt of a delivery and writes its outcome into it.
    pub(crate) async fn attempt(&self, endpoint: &WebhookEndpoint, delivery: &mut Delivery) -> Result<(), Exhausted> {
        let attempt = AttemptOf::new(endpoint.developer_id.clone());
        let called = ATTEMPT_OF.scope(attempt.clone(), self.call(&attempt, endpoint, delivery)).await;
        let outcome = match called {
            Ok(outcome) => outcome,
            Err(Fault::Delivery(error)) => Outcome { error: Some(error), ..Outcome::default() },
            Err(Fault::Exhausted(what)) => return Err(Exhausted(what)),
        };
        delivery.attempts += 1;
        delivery.status = outcome.status();
        delivery.response_status = outcome.response_status;
        delivery.response_body = outcome.response_body;
        delivery.delivered_at = outcome.response_status.map(|_| self.ambient.now());
        delivery.duration_ms = Some(u64::try_from(attempt.begun().elapsed().as_millis()).unwrap_or(u64::MAX));
        delivery.error = outcome.error;
        tracing::info!(delivery = %delivery.id, endpoint = %delivery.webhook_id, event = %delivery.event,
            status = %delivery.status, response = delivery.response_status, took_ms = delivery.duration_ms,
            error = delivery.error.as_ref().map(|error| &*error.message), "webhook attempted");
        Ok(())
    }

    async fn call(
        &self,
        attempt: &AttemptOf,
        endpoint: &WebhookEndpoint,
        delivery: &Delivery,
    ) -> Result<Outcome, Fault> {
        // Names are judged when they are looked up; an address written out is not looked up.
        let url = self.targets.check_url(&endpoint.url).map_err(Fault::not_allowed)?;
        let secret = Secret::new(endpoint.secret.reveal()).map_err(|error| Fault::not_sent(&error))?;
        let (signer, body) = (Signer::new(secret), Bytes::copy_from_slice(delivery.payload.as_str().as_bytes()));
        let request = || {
            let signature = signer.sign_at(&body, self.ambient.now().as_unix_seconds());
            Request::post(url.as_str())
                .header("Accept", "*/*")
                .header("User-Agent", USER_AGENT)
                .header("Content-Type", "application/json")
                .header(&self.header_names.signature, signature.as_str())
                .header(&self.header_names.event, delivery.event.as_str())
                .header(&self.header_names.delivery, delivery.id.as_str())
                .body(Body::new(body.clone()))
        };
        let response = in_time(attempt, self.client.send(request)).await.ok_or_else(Fault::timeout)??;
        Ok(Outcome::answered(response, attempt.begun() + ATTEMPT).await)
    }
}

/// Waits for the head of the answer, unless the attempt's time is over before.
async fn in_time<T>(attempt: &AttemptOf, part: impl Future<Output = T>) -> Option<T> {
    let mut part = pin!(part);
    loop {
        let ends = attempt.begun() + ATTEMPT;
        match timeout_at(ends, &mut part).await {
            Ok(outcome) => return Some(outcome),
            // It waited for a lookup meanwhile, which is not the endpoint's time.
            Err(_) if attempt.begun() + ATTEMPT > ends => {}
            Err(_) => return None,
        }
    }
}

/// What came of an attempt.
#[derive(Default)]
struct Outcome {
    response_status: Option<u16>,
    response_body: Option<String>,
    /// Why there is no answer.
    error: Option<DeliveryError>,
}

impl Outcome {
    fn status(&self) -> DeliveryStatus {
        match self.response_status {
            Some(200..=299) => DeliveryStatus::Success,
            _ => DeliveryStatus::Failed,
        }
    }

    /// Keeps the beginning of the answer and drops the connection with the rest: a receiver may send gigabytes. Whatever
    /// becomes of the body, the status has come.
    async fn answered(response: Response<Incoming>, until: Instant) -> Self {
        let response_status = Some(response.status().as_u16());
        let (mut body, mut kept) = (response.into_body(), Vec::new());
        while kept.len() < KEPT_BODY_BYTES {
            match timeout_at(until, body.frame()).await {
                Ok(Some(Ok(frame))) => kept.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Ok(Some(Err(_)) | None) | Err(_) => break,
            }
        }
        kept.truncate(KEPT_BODY_BYTES);
        Self { response_status, response_body: Some(utf8_beginning(&kept)), error: None }
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
