//! A simulated server: everything that the real one has above its store and its sockets.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use gateway_fakes::{Entry, Fake, bkash, sslcommerz, stripe};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode, client};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use payments_core::FeeRate;
use payments_server::parts::{
    ConnectionsByAddress, Credentials, Dispatcher, Edge, Gateways, Hosts as NamedHosts, Metrics, Parts, PayoutSettings,
    RateLimits, Readiness, Reference, Retention, Sender, Server, Service, Services, Settings, TargetPolicy, Transport,
    TrustedProxies, workers,
};
use payments_store::{Store, ambient::Ambient, layout::Claims};
use secrecy::SecretString;
use tokio::{io::duplex, task::JoinSet, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Planted,
    connection::Connection,
    database::Database,
    endpoints::{BUFFER_BYTES, Hosts, ToEndpoints},
    fate::{Fate, ServerAmbient},
    gateways::{TIMEOUT, ToGateway},
    is_planted,
    life::{Life, Way},
};

/// The URL at which customers reach all servers.
pub(super) const BASE_URL: &str = "https://pay.example";
/// How long a checkout session lives.
const SESSION_SECONDS: u32 = 300;
/// A process that is to die or to stand still does so within this many calls and answers.
const MOMENTS: u64 = 60;
/// How long this takes at most.
const SOON: Duration = Duration::from_secs(10);
/// How many requests to endpoints one server has in flight.
pub(super) const PERMITS: usize = 32;

/// What all servers share.
pub(super) struct Surroundings {
    pub(super) fate: Arc<Fate>,
    pub(super) database: Arc<Database>,
    /// How far the clock of all servers is ahead. Servers use the database's clock, as on PostgreSQL.
    pub(super) skew_millis: Arc<Mutex<i64>>,
    /// The part of `skew_millis` that never grows. The rest is less than a minute.
    pub(super) ahead: AtomicU64,
    pub(super) hosts: Hosts,
    pub(super) bkash: Arc<bkash::Bkash>,
    pub(super) stripe: Arc<stripe::Stripe>,
    pub(super) sslcommerz: Arc<sslcommerz::SslCommerz>,
    /// Whether the gateways refuse the servers' keys.
    pub(super) is_closed: Arc<AtomicBool>,
    /// Builds requests to gateways. It reads the machine's certificates, so there is one.
    pub(super) http: reqwest::Client,
    /// The reference page, which nobody reads here.
    pub(super) reference: Arc<Reference>,
}

impl Surroundings {
    /// Sets the servers' clock ahead by `ahead` and a small error, both in milliseconds.
    pub(super) fn set_clock(&self, ahead: u64, off: i64) {
        self.fate.note(format_args!("the clock is {ahead} ms ahead and {off} ms off"));
        self.ahead.store(ahead, Ordering::Relaxed);
        *self.skew_millis.lock() = ahead.cast_signed() + off;
    }

    pub(super) fn fakes(&self) -> [&dyn Fake; 3] {
        [&*self.bkash, &*self.stripe, &*self.sslcommerz]
    }

    /// The books of all gateways.
    pub(super) fn books(&self) -> impl Iterator<Item = Entry> {
        self.fakes().into_iter().flat_map(Fake::books)
    }

    pub(super) fn ahead(&self) -> u64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// The servers' time, in milliseconds since 1970.
    pub(super) fn clock_millis(&self) -> i64 {
        self.fate.now_millis() + self.skew()
    }

    pub(super) fn skew(&self) -> i64 {
        *self.skew_millis.lock()
    }
}

/// A server, which may be down.
pub(super) struct Node {
    pub(super) name: usize,
    around: Arc<Surroundings>,
    process: Mutex<Option<Process>>,
}

/// A running process.
struct Process {
    life: Arc<Life>,
    service: Arc<Service>,
    edge: Arc<Edge>,
    metrics: Metrics,
    /// The tasks are aborted when this is dropped.
    tasks: JoinSet<()>,
}

impl Node {
    pub(super) fn start(name: usize, around: Arc<Surroundings>) -> Result<Arc<Self>, String> {
        let node = Self { name, around, process: Mutex::default() };
        node.restart()?;
        Ok(Arc::new(node))
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock()
    }

    /// Starts the process, if it is down.
    pub(super) fn restart(&self) -> Result<(), String> {
        let mut process = self.process();
        if process.is_none() {
            *process = Some(self.make().map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Makes the process die.
    pub(super) fn kill(&self) {
        if let Some(process) = self.process().take() {
            process.life.kill();
        }
    }

    /// Makes the process die in one of its next calls, or soon if it makes none.
    pub(super) async fn kill_soon(&self) {
        let life = self.process().as_ref().map(|process| Arc::clone(&process.life));
        if let Some(life) = life {
            // The process may die at once, or never make another call.
            let _ = timeout(SOON, life.die_within(self.around.fate.number(1..=MOMENTS))).await;
        }
        self.kill();
    }

    /// Makes the process stand still from one of its next calls on.
    pub(super) fn stop_soon(&self) {
        if let Some(process) = &*self.process() {
            process.life.stop_within(self.around.fate.number(1..=MOMENTS));
        }
    }

    /// Makes the process go on, if it stands still.
    pub(super) fn go_on(&self) {
        if let Some(process) = &*self.process() {
            process.life.go_on();
        }
    }

    /// Closes the way from the process to the database, or opens it again.
    pub(super) fn set_way(&self, way: Way) {
        if let Some(process) = &*self.process() {
            process.life.set_way(way);
        }
    }

    /// The use cases, for the operator's commands.
    pub(super) fn service(&self) -> Option<Arc<Service>> {
        self.process().as_ref().map(|process| Arc::clone(&process.service))
    }

    /// Requests to endpoints in flight, and effects outside the store.
    pub(super) fn in_flight(&self) -> (i64, i64) {
        let process = self.process();
        process
            .as_ref()
            .map_or((0, 0), |it| (it.metrics.deliveries.permits.held.get(), it.metrics.outside_effects.held.get()))
    }

    fn make(&self) -> Result<Process, Box<dyn std::error::Error + Send + Sync>> {
        let Surroundings { fate, database, hosts, is_closed, http, reference, skew_millis, .. } = &*self.around;
        let (life, metrics) = (Arc::<Life>::default(), Metrics::new());
        let ambient: Arc<dyn Ambient> =
            Arc::new(ServerAmbient { fate: Arc::clone(fate), skew_millis: Arc::clone(skew_millis) });
        let (of_store, of_endpoints) = (Arc::clone(&life), Arc::clone(&life));
        let connection = Connection { fate: Arc::clone(fate), database: Arc::clone(database), life: of_store };
        let epochs = Claims::Stored(Arc::new(AtomicU64::new(fate.number(0..=u64::MAX))));
        let store = Arc::new(Store::new(Arc::new(connection), epochs));
        let targets = TargetPolicy::new(false);
        let endpoints = ToEndpoints { fate: Arc::clone(fate), life: of_endpoints, hosts: Arc::clone(hosts) };
        let sender = Sender::to(Box::new(endpoints), Arc::clone(&ambient), targets.clone(), "Service", 8);
        let transport = |name| -> Box<dyn Transport> {
            let (fate, life, is_closed) = (Arc::clone(fate), Arc::clone(&life), Arc::clone(is_closed));
            match name {
                "stripe" => Box::new(ToGateway { fate, life, is_closed, program: Arc::clone(&self.around.stripe) }),
                "bkash" => Box::new(ToGateway { fate, life, is_closed, program: Arc::clone(&self.around.bkash) }),
                _ => Box::new(ToGateway { fate, life, is_closed, program: Arc::clone(&self.around.sslcommerz) }),
            }
        };
        let (calls, tracker) = (&metrics.gateways, TaskTracker::new());
        let gateways = Gateways::by(&credentials()?, &store, &ambient, http, transport, calls, &tracker)?;
        let settings = Settings {
            base_url: BASE_URL.to_owned(),
            session_ttl_seconds: SESSION_SECONDS,
            delivery_body_days: Some(30),
            audit_days: Some(30),
            fee_rate: FeeRate::from_basis_points(500)?,
            gateway_timeout: TIMEOUT,
            targets,
            has_sandbox: false,
            is_local: false,
            max_webhook_endpoints: 100,
            merchants_bear_costs: false,
            disputes_return_fee: false,
            payouts: PayoutSettings { seal_key: Some("k".repeat(32).into()), ..PayoutSettings::default() },
            retention: Retention::default(),
        };
        let (of_service, tasks) = (Arc::clone(&store), tracker);
        let service =
            Service::new(of_service, Arc::clone(&ambient), Arc::new(sender), gateways, settings, &metrics, tasks);
        let service = Arc::new(service);
        let (sender, deliveries) = (Arc::clone(&service.sender), metrics.deliveries.clone());
        let dispatcher = Dispatcher::new(store, Arc::clone(&ambient), sender, deliveries, PERMITS);
        let mut tasks = JoinSet::new();
        let [first @ .., held_up, dispatching, fan_out, retries] = workers::of(&service, &dispatcher, &metrics);
        let held_up = (!is_planted(Planted::HeldUp)).then_some(held_up);
        for worker in first.into_iter().chain(held_up).chain([dispatching, fan_out, retries]) {
            tasks.spawn(worker);
        }
        let edge = edge(&service, &metrics, reference);
        Ok(Process { life, service, edge, metrics, tasks })
    }

    /// Sends a request, as one of many clients. `None` if the server is down.
    pub(super) async fn ask(&self, request: Request<Full<Bytes>>) -> Option<Response> {
        let (ours, theirs) = duplex(BUFFER_BYTES);
        let life = {
            let mut process = self.process();
            let process = process.as_mut()?;
            let peer = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
            process.tasks.spawn(Arc::clone(&process.edge).serve_stream(peer, theirs));
            while process.tasks.try_join_next().is_some() {}
            Arc::clone(&process.life)
        };
        life.runs().await;
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(ours)).await.ok()?;
        let connection = tokio::spawn(connection);
        let response = async {
            let response = sender.send_request(request).await.ok()?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            let is_replayed = head.headers.contains_key("idempotent-replayed");
            Some(Response { status: head.status, body, is_replayed })
        };
        let response = response.await;
        connection.abort();
        response
    }
}

/// An answer of a server.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    pub(super) is_replayed: bool,
}

fn edge(service: &Arc<Service>, metrics: &Metrics, reference: &Arc<Reference>) -> Arc<Edge> {
    // Limits have tests of their own, with clocks of their own.
    let evicted = &metrics.requests.rate_windows_evicted;
    let server = Arc::new(Server {
        services: Arc::new(Services::new(Arc::clone(service), None)),
        limits: Arc::new(RateLimits::new(0, 0, TrustedProxies::default(), evicted)),
        metrics: metrics.clone(),
        metrics_from: Arc::new([]),
        readiness: Readiness::default(),
        reference: Arc::clone(reference),
        people: None,
        stopping: CancellationToken::new(),
    });
    let addresses = ConnectionsByAddress::new(usize::MAX, TrustedProxies::default());
    Arc::new(Edge::new(&server, Parts::Api, addresses, NamedHosts::default()))
}

fn credentials() -> Result<Credentials, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Credentials::read(|name| {
        let value = match name {
            "PAYMENTS_BKASH_BASE_URL" => "https://bkash.example/v1.2.0-beta",
            "PAYMENTS_BKASH_APP_KEY" => bkash::APP_KEY,
            "PAYMENTS_BKASH_APP_SECRET" => bkash::APP_SECRET,
            "PAYMENTS_BKASH_USERNAME" => bkash::USERNAME,
            "PAYMENTS_BKASH_PASSWORD" => bkash::PASSWORD,
            "PAYMENTS_STRIPE_BASE_URL" => "https://stripe.example",
            "PAYMENTS_STRIPE_SECRET_KEY" => stripe::SECRET_KEY,
            "PAYMENTS_STRIPE_WEBHOOK_SECRET" => stripe::WEBHOOK_SECRET,
            "PAYMENTS_SSLCOMMERZ_BASE_URL" => "https://sslcommerz.example",
            "PAYMENTS_SSLCOMMERZ_STORE_ID" => sslcommerz::STORE_ID,
            "PAYMENTS_SSLCOMMERZ_STORE_PASSWORD" => sslcommerz::STORE_PASSWORD,
            _ => return None,
        };
        Some(SecretString::from(value))
    })?)
}
