//! Tests deliveries from an event to its endpoints: on a store in memory, to a [shop](shop::Shop), in virtual time.

mod events;
mod logging;
mod requests;
pub(super) mod shop;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use payments_core::{
    Cause, CreatePayment, DeliveryId, Environment, EventId, EventKind, FeeRate, Money, NewPayment, PaymentId,
    RANDOM_BYTES, RawJson, Slot, Timestamp, WebhookId,
};
use tokio::time::{Instant, sleep};

use self::shop::{Answer, Heard, Shop, To};
use super::{Dispatcher, DueRetries, FanOut, FanOutSignal, Sender, TargetPolicy};
use crate::{
    ambient::Ambient,
    domain::{Endpoint, Outgoing, Scope, Session},
    metrics::Metrics,
    store::{Change, EventWrite, PaymentWrite, Write, layout::MemoryStore},
};

/// The runtime's clock, and random bytes from a counter.
struct Virtual {
    begun: Instant,
    next: AtomicU64,
}

impl Ambient for Virtual {
    fn now(&self) -> Timestamp {
        at(i64::try_from(self.begun.elapsed().as_millis()).unwrap())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let next = self.next.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        let taken = bytes.len().min(next.len());
        bytes[..taken].copy_from_slice(&next[next.len() - taken..]);
    }
}

/// The time `millis` milliseconds after the beginning of a test.
fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis).unwrap()
}

pub(super) fn virtual_time() -> Arc<dyn Ambient> {
    Arc::new(Virtual { begun: Instant::now(), next: AtomicU64::new(1) })
}

/// A sender to a shop, with a permit for one test ping.
pub(super) fn sender_to(shop: &Arc<Shop>, ambient: &Arc<dyn Ambient>) -> Arc<Sender> {
    let targets = TargetPolicy::new(false);
    Arc::new(Sender::to(Box::new(To(Arc::clone(shop))), Arc::clone(ambient), targets, "Service", 1))
}

/// The delivery workers of one server.
struct Server {
    store: Arc<MemoryStore>,
    ambient: Arc<dyn Ambient>,
    shop: Arc<Shop>,
    metrics: Metrics,
    dispatcher: Arc<Dispatcher>,
    signal: Arc<FanOutSignal>,
}

impl Server {
    /// A server on an empty store, with running workers.
    fn new(behaviour: impl Fn(&Heard) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(Arc::default(), virtual_time(), Shop::new(behaviour))
    }

    /// Another server on the same store.
    fn beside(&self) -> Self {
        Self::on(Arc::clone(&self.store), Arc::clone(&self.ambient), Arc::clone(&self.shop))
    }

    fn on(store: Arc<MemoryStore>, ambient: Arc<dyn Ambient>, shop: Arc<Shop>) -> Self {
        let (metrics, signal) = (Metrics::new(), Arc::<FanOutSignal>::default());
        let as_store = store.store();
        let (sender, deliveries) = (sender_to(&shop, &ambient), metrics.deliveries.clone());
        let dispatcher = Dispatcher::new(Arc::clone(&as_store), Arc::clone(&ambient), sender, deliveries, 8);
        let fan_out = FanOut {
            store: Arc::clone(&as_store),
            ambient: Arc::clone(&ambient),
            dispatcher: Arc::clone(&dispatcher),
            signal: Arc::clone(&signal),
            times: metrics.fan_out.clone(),
        };
        let retries =
            DueRetries { store: as_store, ambient: Arc::clone(&ambient), dispatcher: Arc::clone(&dispatcher) };
        tokio::spawn(fan_out.run());
        tokio::spawn(retries.run());
        tokio::spawn(Arc::clone(&dispatcher).run());
        Self { store, ambient, shop, metrics, dispatcher, signal }
    }

    async fn commit(&self, writes: Vec<Write>) {
        self.store.commit(Change { writes, ..Change::default() }).await.unwrap();
    }

    /// Commits a change of a payment as a request does.
    async fn request(&self, writes: Vec<Write>) {
        self.commit(writes).await;
        self.signal.notify();
    }

    async fn endpoint(&self, nth: u16) -> Endpoint {
        self.store.endpoint(&endpoint(nth).endpoint.id).await.unwrap().unwrap()
    }

    /// All deliveries to an endpoint, oldest first.
    async fn deliveries_to(&self, nth: u16) -> Vec<Outgoing> {
        let from = crate::store::DeliveriesFrom { since: at(0), after: None };
        self.store.deliveries_from(&scope(), &endpoint(nth).endpoint.id, &from, 1_000).await.unwrap()
    }
}

fn scope() -> Scope {
    Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Live }
}

fn host(nth: u16) -> String {
    format!("shop{nth}.example")
}

/// An endpoint that wants all events.
fn endpoint(nth: u16) -> Endpoint {
    let mut random = [0; RANDOM_BYTES];
    random[..2].copy_from_slice(&nth.to_be_bytes());
    let id = WebhookId::new(Slot::FIRST, at(0), random);
    let record = serde_json::json!({"environment": "live", "endpoint": {"id": id, "developerId": "dev_1", "appId": null,
        "url": format!("https://{}/hook", host(nth)), "secret": "whsec_1", "events": ["*"], "isActive": true,
        "createdAt": at(0), "updatedAt": at(0)}});
    serde_json::from_value(record).unwrap()
}

fn with_retries(nth: u16) -> Endpoint {
    let mut endpoint = endpoint(nth);
    endpoint.endpoint.retries = Some(payments_core::Retries::Standard);
    endpoint
}

fn added(endpoint: Endpoint) -> Write {
    Write::EndpointAdded { endpoint: Box::new(endpoint), at_most: usize::MAX }
}

/// A new payment with its event, and the session.
fn created(nth: u8) -> (Write, Session) {
    let now = at(i64::from(nth));
    let params = CreatePayment::of(Money::taka(100)).success_url("https://a.example/").cancel_url("https://a.example/");
    let new = NewPayment {
        id: PaymentId::new(Slot::FIRST, now, [nth; RANDOM_BYTES]),
        developer_id: scope().developer_id,
        app_id: None,
        environment: Environment::Live,
        fee_rate: FeeRate::from_basis_points(250).unwrap(),
        checkout_url: String::new(),
        now,
    };
    let decision = payments_core::create(params, new);
    let session = Session::new(decision.payment, now.plus_millis(60_000));
    (payment(&session, EventKind::PaymentCreated, nth), session)
}

/// The write that makes a payment paid.
fn paid(before: &Session, nth: u8) -> Write {
    let now = at(i64::from(nth) + 100);
    let decision = payments_core::decide(&before.payment, Cause::GatewayConfirmed, now).unwrap();
    let session = Session { payment: decision.payment, ..before.next() };
    payment(&session, EventKind::PaymentCompleted, nth + 100)
}

fn payment(session: &Session, kind: EventKind, nth: u8) -> Write {
    let (id, created_at) = (EventId::new(Slot::FIRST, at(i64::from(nth)), [nth; RANDOM_BYTES]), at(i64::from(nth)));
    let json = RawJson::of(&session.payment).unwrap();
    let event = EventWrite { id, kind, created_at, data: json.clone() };
    Write::Payment(Box::new(PaymentWrite::new(session.clone(), json, None, Some(event))))
}

/// A ping's delivery in the outbox.
fn ping(nth: u16, to: &Endpoint) -> Outgoing {
    let mut random = [0; RANDOM_BYTES];
    random[..2].copy_from_slice(&nth.to_be_bytes());
    let id = DeliveryId::new(Slot::FIRST, at(i64::from(nth)), random);
    let envelope = RawJson::of(&serde_json::json!({"event": "test.ping", "data": {"nth": nth}})).unwrap();
    Outgoing::new(id, &to.scope(), &to.endpoint.id, &EventKind::TestPing, envelope, at(i64::from(nth)))
}

fn delivery(outgoing: &Outgoing) -> Write {
    Write::Delivery(Box::new(outgoing.clone()))
}

async fn after_millis(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// How many requests each host received.
fn counted(shop: &Shop) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    shop.heard().iter().for_each(|heard| *counted.entry(heard.host().to_owned()).or_default() += 1);
    counted
}
