//! One delivery attempt: a request to a merchant's endpoint (API specification, "Delivery").

use std::{error::Error, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Request, StatusCode, body::Incoming, header::HeaderName};
use payments_core::{
    Delivery, DeliveryStatus, Event, LoggedAttempt, SignatureScheme, Timestamp, aliased::UnknownFields,
};
use tokio::time::{Instant, timeout, timeout_at};
use webhook_verify::{Secret, SecretError, Signer};

use super::{
    TargetPolicy,
    client::{Body, Endpoints, HttpClient},
    lookups::{ATTEMPT, DeliveryAttempt, Lookups},
    permits::Permits,
    send_error::{Exhausted, SendError},
};
use crate::{ambient::Ambient, domain::Endpoint, metrics::PermitGauges, process::descriptors::Shares, trace};

/// Limits a delivery attempt: DNS lookup, connection, TLS, request, and the stored part of the response.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(8);
/// The same limit plus the waits for a free DNS lookup, at most two.
pub const LONGEST_ATTEMPT: Duration = Duration::from_secs(10);
const PING_PERMIT_TIMEOUT: Duration = Duration::from_secs(2);
pub const LONGEST_PING: Duration = LONGEST_ATTEMPT.saturating_add(PING_PERMIT_TIMEOUT);
const STORED_BODY_BYTES: usize = 1024;
const USER_AGENT: &str = concat!("payments-server/", env!("CARGO_PKG_VERSION"));

pub struct Sender {
    pub(super) ambient: Arc<dyn Ambient>,
    targets: TargetPolicy,
    endpoints: Box<dyn Endpoints>,
    /// The word that the operator uses instead of `Service` in `X-Service-Signature`.
    header_word: String,
    /// The name of the header that has the delivery's id.
    delivery_header: Option<HeaderName>,
    /// Test pings have their own permits, so endpoints that hang do not delay them.
    pings: Arc<Permits>,
}

impl Sender {
    pub fn new(
        ambient: Arc<dyn Ambient>,
        targets: TargetPolicy,
        header_word: &str,
        shares: Shares,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let endpoints = Box::new(HttpClient::new(targets.clone(), Lookups::system(), shares.reusable)?);
        Ok(Self::to(endpoints, ambient, targets, header_word, shares.pings))
    }

    /// A sender to `endpoints`, with at most `pings` test pings in flight.
    pub fn to(
        endpoints: Box<dyn Endpoints>,
        ambient: Arc<dyn Ambient>,
        targets: TargetPolicy,
        header_word: &str,
        pings: usize,
    ) -> Self {
        let pings = Permits::new(pings, PermitGauges::default());
        // Every word that the command line accepts makes a header's name.
        let delivery_header = format!("x-{header_word}-delivery").parse().ok();
        Self { ambient, targets, endpoints, header_word: header_word.to_owned(), delivery_header, pings }
    }

    /// Whether these are the headers of a delivery, which this server or another one of its kind sent.
    pub fn is_delivery(&self, headers: &HeaderMap) -> bool {
        self.delivery_header.as_ref().is_some_and(|name| headers.contains_key(name))
    }

    /// Sends a test ping once a permit is free.
    pub async fn ping(&self, endpoint: &Endpoint, delivery: &mut Delivery) -> Result<(), Exhausted> {
        let permit = Permits::acquire(Arc::clone(&self.pings), Some(endpoint.endpoint.developer_id.clone()));
        let mut permit = timeout(PING_PERMIT_TIMEOUT, permit).await.map_err(|_| Exhausted("slots for test pings"))?;
        permit.shrink_to(2 * delivery.payload.as_str().len());
        self.attempt(endpoint, delivery).await
    }

    /// Makes a delivery attempt and replaces the delivery's outcome by the new one.
    pub async fn attempt(&self, endpoint: &Endpoint, delivery: &mut Delivery) -> Result<(), Exhausted> {
        let attempt = DeliveryAttempt::new(endpoint.endpoint.developer_id.clone());
        let attempted_at = self.ambient.now();
        (delivery.response_status, delivery.response_body) = (None, None);
        (delivery.error, delivery.delivered_at) = (None, None);
        let call = trace::webhook(delivery, self.call(&attempt, endpoint, delivery));
        let called = ATTEMPT.scope(attempt.clone(), call).await;
        let mut answered = |status: StatusCode, body| {
            delivery.response_status = Some(status.as_u16());
            delivery.response_body = Some(body);
            delivery.delivered_at = Some(self.ambient.now());
            if status.is_success() { DeliveryStatus::Success } else { DeliveryStatus::Failed }
        };
        delivery.status = match called {
            Ok((status, body)) => answered(status, body),
            Err(SendError::Delivery(error)) => {
                delivery.error = Some(error);
                DeliveryStatus::Failed
            }
            Err(SendError::StatusOnly(status)) => answered(status, String::new()),
            Err(SendError::Exhausted(exhausted)) => return Err(exhausted),
        };
        delivery.attempts += 1;
        delivery.duration_ms = Some(u64::try_from(attempt.started_at().elapsed().as_millis()).unwrap_or(u64::MAX));
        if endpoint.has_retries() || delivery.attempt_log.is_some() {
            delivery.attempt_log.get_or_insert_default().push(LoggedAttempt {
                attempted_at,
                response_status: delivery.response_status,
                error: delivery.error.clone(),
                duration_ms: delivery.duration_ms,
                unknown: UnknownFields::default(),
            });
        }
        tracing::info!(delivery = %delivery.id, endpoint = %delivery.webhook_id, event = %delivery.event,
            status = %delivery.status, response = delivery.response_status, took_ms = delivery.duration_ms,
            error = delivery.error.as_ref().map(|error| &*error.message), "webhook attempted");
        Ok(())
    }

    /// Sends the request. Returns the status and the stored part of the body.
    async fn call(
        &self,
        attempt: &DeliveryAttempt,
        endpoint: &Endpoint,
        delivery: &Delivery,
    ) -> Result<(StatusCode, String), SendError> {
        // Checks a literal address here. The resolver checks the addresses of a name.
        let url = self.targets.check_url(&endpoint.endpoint.url).map_err(SendError::not_allowed)?;
        let signers = signers(endpoint, self.ambient.now()).map_err(SendError::not_sent)?;
        let body = Bytes::copy_from_slice(delivery.payload.as_str().as_bytes());
        let header = |name: &str| format!("X-{}-{name}", self.header_word);
        let is_standard = endpoint.endpoint.signature == Some(SignatureScheme::Standard);
        let standard_id = Event::id_in(&body).filter(|_| is_standard);
        let request = || {
            let now = self.ambient.now();
            let signature = signature(&signers, &body, now);
            let mut request = Request::post(url.as_str())
                .header("Accept", "*/*")
                .header("User-Agent", USER_AGENT)
                .header("Content-Type", "application/json")
                .header(header("Signature"), signature)
                .header(header("Event"), delivery.event.as_str())
                .header(header("Delivery"), delivery.id.as_str());
            if let Some(id) = standard_id {
                request = request
                    .header("Webhook-Id", id)
                    .header("Webhook-Timestamp", now.as_unix_seconds())
                    .header("Webhook-Signature", standard_signature(&signers, id, &body, now));
            }
            trace::propagate(&mut request);
            request.body(Body::new(body.clone())).map_err(SendError::not_sent)
        };
        let response = in_time(attempt, self.endpoints.send(&request)).await.ok_or_else(SendError::timeout)??;
        let (head, body) = response.into_parts();
        Ok((head.status, stored_body(body, attempt.started_at() + ATTEMPT_TIMEOUT).await))
    }
}

/// The signers of an endpoint's requests: more than one while a rotation of its secret overlaps.
fn signers(endpoint: &Endpoint, now: Timestamp) -> Result<Vec<Signer>, SecretError> {
    endpoint.secrets(now).map(|secret| Ok(Signer::new(Secret::new(secret.reveal())?))).collect()
}

/// The value of the signature header: `t=…,v1=…`, with one more `v1` for each further signer.
fn signature(signers: &[Signer], body: &[u8], now: Timestamp) -> String {
    let mut value = String::new();
    for signer in signers {
        let signed = signer.sign_at(body, now.as_unix_seconds());
        // All signers sign the same time.
        value +=
            if value.is_empty() { signed.as_str() } else { &signed.as_str()[signed.as_str().find(',').unwrap_or(0)..] };
    }
    value
}

/// The value of the signature header of Standard Webhooks: a `v1,…` of each signer.
fn standard_signature(signers: &[Signer], id: &str, body: &[u8], now: Timestamp) -> String {
    let signed = signers.iter().filter_map(|signer| signer.sign_standard_at(id, body, now.as_unix_seconds()).ok());
    signed.map(|signature| signature.to_string()).collect::<Vec<_>>().join(" ")
}

/// Waits for the head of the response, until the attempt times out.
async fn in_time<T>(attempt: &DeliveryAttempt, part: impl Future<Output = T>) -> Option<T> {
    let mut part = pin!(part);
    loop {
        let ends = attempt.started_at() + ATTEMPT_TIMEOUT;
        match timeout_at(ends, &mut part).await {
            Ok(outcome) => return Some(outcome),
            // Meanwhile the attempt has waited for a lookup, which does not count.
            Err(_) if attempt.started_at() + ATTEMPT_TIMEOUT > ends => {}
            Err(_) => return None,
        }
    }
}

/// The first bytes of a response's body. The rest is dropped with the connection, because a receiver may send gigabytes.
async fn stored_body(mut body: Incoming, until: Instant) -> String {
    let mut stored = Vec::new();
    while stored.len() < STORED_BODY_BYTES {
        match timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => stored.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            // The response's status counts even if its body fails.
            Ok(Some(Err(_)) | None) | Err(_) => break,
        }
    }
    stored.truncate(STORED_BODY_BYTES);
    utf8_prefix(&stored)
}

/// Bytes as text. Drops a character cut at the end; replaces other invalid UTF-8.
fn utf8_prefix(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    String::from_utf8_lossy(whole).into_owned()
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_body_cut_inside_a_character_ends_before_it() {
        let text = "অ".repeat(400);
        let cut = utf8_prefix(&text.as_bytes()[..1024]);
        assert_eq!(cut, "অ".repeat(341));
        assert_eq!(utf8_prefix(b"ok\xffok"), "ok\u{fffd}ok");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_a_lookup_does_not_count_as_the_endpoints_time() {
        for (waited, took, is_in_time) in [(0, 7, true), (0, 9, false), (2, 9, true), (2, 11, false)] {
            let attempt = DeliveryAttempt::new("dev_1".parse().unwrap());
            let head = async {
                sleep(Duration::from_secs(waited)).await;
                attempt.exclude(Duration::from_secs(waited));
                sleep(Duration::from_secs(took - waited)).await;
            };
            let begun = Instant::now();
            assert_eq!(in_time(&attempt, head).await.is_some(), is_in_time, "{waited} {took}");
            assert_eq!(begun.elapsed().as_secs(), took.min(8 + waited));
        }
    }
}
