//! The dispatcher: reads the outbox and calls the endpoints.
//!
//! Each endpoint has a lane of its own, so one that is slow or dead delays nobody else's events. A delivery is one
//! request of at most 8 seconds, not repeated (API specification, "Delivery"); its outcome is logged and it leaves the
//! outbox in one commit. What was under way at a crash is still in the outbox and is sent again.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use payments_core::{DeliveryStatus, WebhookEndpoint, WebhookId};
use reqwest::{Client, Response, redirect};
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use webhook_verify::{Secret, Signer};

use super::TargetPolicy;
use crate::{
    ambient::Ambient,
    store::{Change, Outgoing, Store, Write},
};

/// All of an attempt: looking the name up, connecting, TLS, sending, and the answer as far as it is kept.
const ATTEMPT: Duration = Duration::from_secs(8);
/// How much of an answer's body is read and kept; the rest is left on the wire.
const KEPT_BODY_BYTES: usize = 1024;
/// How many requests to one endpoint may be under way at once.
const LANE_WIDTH: usize = 8;
/// How many deliveries a lane takes from the outbox at a time.
const LANE_BATCH: usize = 64;
/// How long a lane rests after the store failed it.
const REST: Duration = Duration::from_secs(1);

/// Calls the endpoints that are owed something.
pub(crate) struct Dispatcher {
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    targets: TargetPolicy,
    client: Client,
    header_names: HeaderNames,
    lanes: Mutex<HashMap<WebhookId, Lane>>,
    idle: watch::Sender<bool>,
    closing: watch::Sender<bool>,
}

/// A lane that is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// It will end when it finds the outbox empty.
    Busy,
    /// Something was put into the outbox since it last looked.
    Woken,
}

/// `X-Service-Signature` and its like, with the operator's word.
struct HeaderNames {
    signature: String,
    event: String,
    delivery: String,
}

impl Dispatcher {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        ambient: Arc<dyn Ambient>,
        targets: TargetPolicy,
        header_word: &str,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let client = Client::builder()
            .user_agent(concat!("payments-server/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(targets)
            .build()?;
        Ok(Arc::new(Self {
            store,
            ambient,
            targets,
            client,
            header_names: HeaderNames {
                signature: format!("X-{header_word}-Signature"),
                event: format!("X-{header_word}-Event"),
                delivery: format!("X-{header_word}-Delivery"),
            },
            lanes: Mutex::default(),
            idle: watch::Sender::new(true),
            closing: watch::Sender::new(false),
        }))
    }

    /// Takes up what an earlier run left in the outbox, then whatever is put into it.
    pub(crate) async fn run(self: Arc<Self>, mut woken: mpsc::UnboundedReceiver<WebhookId>) {
        loop {
            match self.store.endpoints_with_outbox().await {
                Ok(endpoints) => {
                    endpoints.into_iter().for_each(|endpoint| self.wake(endpoint));
                    break;
                }
                Err(error) => {
                    tracing::error!(%error, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
        while let Some(endpoint) = woken.recv().await {
            self.wake(endpoint);
        }
    }

    /// Lets the requests under way end, and begins no other.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        let _ = timeout(ATTEMPT, self.idle.subscribe().wait_for(|idle| *idle)).await;
    }

    fn wake(self: &Arc<Self>, endpoint: WebhookId) {
        match self.lanes().entry(endpoint.clone()) {
            Entry::Occupied(mut lane) => {
                lane.insert(Lane::Woken);
            }
            Entry::Vacant(lane) => {
                lane.insert(Lane::Busy);
                self.idle.send_replace(false);
                tokio::spawn(Arc::clone(self).work(endpoint));
            }
        }
    }

    /// A lane at work: delivers until the endpoint is owed nothing.
    async fn work(self: Arc<Self>, endpoint: WebhookId) {
        loop {
            if *self.closing.borrow() {
                return self.leave(self.lanes(), &endpoint);
            }
            match self.store.outbox(&endpoint, LANE_BATCH).await {
                Ok(owed) if owed.is_empty() => {
                    // Under one lock, so that whoever wakes the lane now either is seen or starts it anew.
                    let mut lanes = self.lanes();
                    if lanes.get(&endpoint) != Some(&Lane::Woken) {
                        return self.leave(lanes, &endpoint);
                    }
                    lanes.insert(endpoint.clone(), Lane::Busy);
                }
                Ok(owed) => {
                    futures_util::stream::iter(owed)
                        .for_each_concurrent(LANE_WIDTH, |outgoing| self.deliver(outgoing))
                        .await;
                }
                Err(error) => {
                    tracing::error!(%error, %endpoint, "the outbox cannot be read");
                    sleep(REST).await;
                }
            }
        }
    }

    fn leave(&self, mut lanes: MutexGuard<'_, HashMap<WebhookId, Lane>>, endpoint: &WebhookId) {
        lanes.remove(endpoint);
        if lanes.is_empty() {
            self.idle.send_replace(true);
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<WebhookId, Lane>> {
        // No code panics while it holds the lock, and the map is whole between any two of its lines.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one attempt and logs it.
    async fn deliver(&self, mut outgoing: Outgoing) {
        if *self.closing.borrow() {
            return;
        }
        let outcome = match self.store.endpoint(&outgoing.delivery.webhook_id).await {
            Ok(Some(found)) if found.endpoint.is_active => {
                outgoing.delivery.attempts += 1;
                match timeout(ATTEMPT, self.call(&found.endpoint, &outgoing)).await {
                    Ok(outcome) => outcome,
                    Err(_) => Outcome::unanswered("no answer within 8 seconds"),
                }
            }
            Ok(_) => Outcome::unanswered("the endpoint was removed"),
            Err(error) => return self.put_off(&outgoing, &error).await,
        };
        let delivery = &mut outgoing.delivery;
        delivery.status = outcome.status();
        delivery.response_status = outcome.response_status;
        delivery.response_body = outcome.response_body.clone();
        delivery.delivered_at = outcome.response_status.map(|_| self.ambient.now());
        tracing::info!(delivery = %delivery.id, endpoint = %delivery.webhook_id, event = %delivery.event,
            status = %delivery.status, response = delivery.response_status, fault = outcome.fault, "webhook attempted");
        let change = Change::of(Write::DeliveryEnded(Box::new(outgoing.clone())));
        if let Err(error) = self.store.commit(change).await {
            self.put_off(&outgoing, &error).await;
        }
    }

    /// The delivery stays in the outbox; the lane will find it again.
    async fn put_off(&self, outgoing: &Outgoing, error: &(dyn std::error::Error + Sync)) {
        tracing::error!(%error, delivery = %outgoing.delivery.id, "a delivery could not be logged and stays in the outbox");
        sleep(REST).await;
    }

    async fn call(&self, endpoint: &WebhookEndpoint, outgoing: &Outgoing) -> Outcome {
        // Names are judged when they are looked up; an address written out is not looked up.
        let url = match self.targets.check_url(&endpoint.url) {
            Ok(url) => url,
            Err(fault) => return Outcome::unanswered(&format!("not sent: the address {fault}")),
        };
        let secret = match Secret::new(endpoint.secret.reveal()) {
            Ok(secret) => secret,
            Err(error) => return Outcome::unanswered(&format!("not sent: the endpoint's secret is unusable: {error}")),
        };
        let body = outgoing.delivery.payload.as_str();
        let signature = Signer::new(secret).sign_at(body.as_bytes(), self.ambient.now().as_unix_seconds());
        let request = self
            .client
            .post(url)
            .header("Content-Type", "application/json")
            .header(&self.header_names.signature, signature.as_str())
            .header(&self.header_names.event, outgoing.delivery.event.as_str())
            .header(&self.header_names.delivery, outgoing.delivery.id.as_str())
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
