//! Merchants' webhook endpoints, and the way to them.

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, Response, body::Incoming, client, server, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use payments_server::parts::{Endpoints, RequestBuilder, SendError};
use serde::Deserialize;
use tokio::{io::duplex, time::sleep};
use webhook_verify::Verifier;

use super::{Planted, Trouble, fate::Fate, is_planted, life::Life};

/// How much of a request or response is on its way at once.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// How an endpoint behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manners {
    /// Answers 200 at once.
    Good,
    /// Answers 200 after up to ten seconds, which is too late for some requests.
    Slow,
    /// Answers 500 to every second request.
    Flaky,
    /// Answers 500.
    Broken,
    /// Never answers.
    Silent,
}

/// An endpoint.
pub(super) struct Receiver {
    pub(super) host: String,
    first_manners: Manners,
    state: Mutex<State>,
}

struct State {
    manners: Manners,
    /// The secrets that may sign, each with the time until which it may.
    secrets: Vec<(String, i64)>,
    received: BTreeMap<String, Received>,
    /// The last test event, and when it came.
    last_ping: Option<(String, i64)>,
    /// Faults in what the servers sent.
    faults: Vec<String>,
}

/// An event of a webhook with a valid signature.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) kind: String,
    /// How many events were received before it.
    pub(super) place: usize,
}

#[derive(Deserialize)]
struct Envelope {
    id: String,
    event: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    id: Option<String>,
}

impl Receiver {
    pub(super) fn new(host: String, manners: Manners) -> Arc<Self> {
        let state =
            State { manners, secrets: Vec::new(), received: BTreeMap::new(), last_ping: None, faults: Vec::new() };
        Arc::new(Self { host, first_manners: manners, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds a secret that signs from now on. The earlier ones sign until `others_until`.
    pub(super) fn rotate(&self, secret: String, others_until: i64) {
        let mut state = self.state();
        state.secrets.iter_mut().for_each(|(_, until)| *until = others_until.min(*until));
        state.secrets.push((secret, i64::MAX));
    }

    /// Makes the endpoint answer well from now on.
    pub(super) fn behave(&self) {
        self.state().manners = Manners::Good;
    }

    /// How the endpoint behaved until then.
    pub(super) fn first_manners(&self) -> Manners {
        self.first_manners
    }

    fn manners(&self) -> Manners {
        self.state().manners
    }

    /// The events that the endpoint received, each with its position.
    pub(super) fn received(&self) -> BTreeMap<String, Received> {
        self.state().received.clone()
    }

    pub(super) fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    async fn respond(&self, fate: &Fate, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let manners = self.manners();
        let status = match manners {
            Manners::Good | Manners::Slow => 200,
            Manners::Flaky if fate.one_in(2) => 200,
            Manners::Flaky | Manners::Broken => 500,
            Manners::Silent => 0,
        };
        let signature = head.headers.get("x-service-signature").map_or(&b""[..], |value| value.as_bytes());
        self.receive(fate, signature, &body, status == 200);
        match manners {
            Manners::Slow => fate.wait(0..=10_000).await,
            Manners::Silent => pending().await,
            _ => {}
        }
        let mut response = Response::new(Full::new(Bytes::from_static(b"thank you")));
        *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
        Ok(response)
    }

    fn receive(&self, fate: &Fate, signature: &[u8], body: &[u8], is_answered: bool) {
        let mut state = self.state();
        let now = fate.now_millis();
        // The request may have been signed a moment ago, or by a wrong clock.
        let secrets = state
            .secrets
            .iter()
            .filter(|(_, until)| until.saturating_add(120_000) > now)
            .map(|(text, _)| text.as_str());
        // The servers' clock may be wrong by hours, so a wrong time is no fault.
        let signed_at = String::from_utf8_lossy(signature)
            .split(',')
            .find_map(|part| part.trim().strip_prefix("t=")?.parse().ok())
            .unwrap_or_else(|| fate.now_seconds());
        let verified =
            Verifier::from_secrets(secrets).and_then(|verifier| verifier.verify_at(signature, body, signed_at));
        if let Err(failure) = verified {
            let header = String::from_utf8_lossy(signature).into_owned();
            state.faults.push(format!("a webhook to {} does not verify: {failure}; {header}", self.host));
            return;
        }
        match serde_json::from_slice::<Envelope>(body) {
            Ok(Envelope { id, event, data }) => {
                fate.note(format_args!("{} receives {event} {id} of {:?}, answered {is_answered}", self.host, data.id));
                fate.count(|counts| counts.received += 1);
                if event == TEST_EVENT {
                    self.ping(&mut state, fate, &id);
                }
                let place = state.received.len();
                state.received.entry(id).or_insert(Received { kind: event, place });
            }
            Err(error) => state.faults.push(format!("a webhook to {} cannot be read: {error}", self.host)),
        }
    }
}

/// The kind of a test event.
pub(super) const TEST_EVENT: &str = "test.ping";
/// The least time between two requests for test events to one endpoint, unless one repeats the other.
pub(super) const BETWEEN_PINGS_MILLIS: i64 = 60_000;
/// A second test event is a fault only if nothing happened to the database for this long before the first.
const CALM_MILLIS: i64 = 30_000;

impl Receiver {
    /// One request makes one test event, however often and wherever it is repeated. (A server that cannot store its response
    /// releases the key, and then the request may be made again.)
    fn ping(&self, state: &mut State, fate: &Fate, id: &str) {
        let now = fate.now_millis();
        let before = state.last_ping.replace((id.to_owned(), now));
        if let Some((before, at)) = before.filter(|(before, _)| before != id)
            && at + BETWEEN_PINGS_MILLIS / 4 > now
            && fate.is_calm_since(at - CALM_MILLIS)
        {
            state.faults.push(format!("{} got two test events for one request: {before} and {id}", self.host));
        }
    }
}

/// All endpoints, by their hosts.
pub(super) type Hosts = Arc<Mutex<BTreeMap<String, Arc<Receiver>>>>;

/// The way from one server to all endpoints.
#[derive(Clone)]
pub(super) struct ToEndpoints {
    pub(super) fate: Arc<Fate>,
    pub(super) life: Arc<Life>,
    pub(super) hosts: Hosts,
}

#[async_trait]
impl Endpoints for ToEndpoints {
    async fn send(&self, request: &RequestBuilder<'_>) -> Result<Response<Incoming>, SendError> {
        let mut sent = request()?;
        if is_planted(Planted::OverlapIgnored) {
            keep_one_signature(sent.headers_mut());
        }
        let longest_delay = match () {
            () if is_planted(Planted::LoggedBeforeSent) => 1,
            () if is_planted(Planted::OrderIgnored) => 20_000,
            () => return self.send_now(sent).await,
        };
        // The server gets the answer of another endpoint, and this one gets the request later.
        let way = self.clone();
        tokio::spawn(async move {
            way.fate.wait(0..=longest_delay).await;
            way.send_now(sent).await
        });
        let somebody = Receiver::new(String::new(), Manners::Good);
        exchange(&self.fate, somebody, request()?).await.map_err(|_| SendError::closed())
    }
}

/// Keeps only the time and the first signature.
fn keep_one_signature(headers: &mut HeaderMap) {
    if let Some(value) = headers.get_mut("x-service-signature")
        && let Ok(all) = value.to_str()
        && let Ok(one) = all.split(',').take(2).collect::<Vec<_>>().join(",").parse()
    {
        *value = one;
    }
}

impl ToEndpoints {
    async fn send_now(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
        self.life.runs().await;
        self.fate.wait(1..=40).await;
        let host = request.uri().host().unwrap_or_default().to_owned();
        let found = self.hosts.lock().get(&host).cloned();
        let receiver = found.ok_or_else(SendError::closed)?;
        if self.fate.strikes(Trouble::EndpointLink, 60) {
            // The request is lost: the connection breaks, or no answer comes.
            if self.fate.one_in(2) {
                return Err(SendError::closed());
            }
            sleep(Duration::from_secs(60)).await;
        }
        self.life.runs().await;
        let response = exchange(&self.fate, receiver, request).await.map_err(|_| SendError::closed())?;
        self.life.runs().await;
        if self.fate.strikes(Trouble::EndpointLink, 80) {
            return Err(SendError::closed());
        }
        Ok(response)
    }
}

/// One request and its response, over a connection of its own.
async fn exchange(
    fate: &Arc<Fate>,
    receiver: Arc<Receiver>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (ours, theirs) = duplex(BUFFER_BYTES);
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(ours)).await?;
    let fate = Arc::clone(fate);
    let service = service_fn(move |request| {
        let (receiver, fate) = (Arc::clone(&receiver), Arc::clone(&fate));
        async move { receiver.respond(&fate, request).await }
    });
    let serving = server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service);
    tokio::spawn(async move {
        let (_, _) = tokio::join!(connection, serving);
    });
    sender.send_request(request).await
}
