//! A world: servers, their database, merchants, customers, an operator, and their troubles.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_fakes::{bkash::Bkash, sslcommerz::SslCommerz, stripe::Stripe};
use hyper::StatusCode;
use parking_lot::Mutex;
use payments_server::parts::Reference;
use tokio::time::{sleep, timeout};

use super::{
    Planted, Setup, Trouble,
    ask::{Ask, text},
    database::Database,
    endpoints::{Hosts, Receiver},
    fate::Fate,
    is_planted,
    merchant::Merchant,
    node::{Node, Response, Surroundings},
    notes::{Bank, Recorded},
};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a client repeats a request.
const TRIES: u32 = 60;

pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) fate: Arc<Fate>,
    pub(super) around: Arc<Surroundings>,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) merchants: Mutex<Vec<Arc<Merchant>>>,
    /// The amounts that people refunded in the card processor's dashboard.
    pub(super) dashboard_refunds: Mutex<Vec<u64>>,
    /// The disputes that the operator recorded.
    pub(super) recorded_disputes: Mutex<Vec<Recorded>>,
    /// The payouts that the bank got.
    pub(super) bank: Mutex<Bank>,
    operations: AtomicU64,
    violations: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(setup: Setup, http: reqwest::Client, reference: Arc<Reference>) -> Result<Arc<Self>, String> {
        let fate = Arc::new(Fate::new(setup.seed));
        let database = Database::new(Arc::clone(&fate))?;
        let around = Arc::new(Surroundings {
            fate: Arc::clone(&fate),
            database,
            skew_millis: Arc::default(),
            ahead: AtomicU64::new(0),
            hosts: Hosts::default(),
            bkash: Arc::new(Bkash::new()),
            stripe: Arc::new(Stripe::new()),
            sslcommerz: Arc::new(SslCommerz::new()),
            is_closed: Arc::default(),
            http,
            reference,
        });
        around.stripe.keep_events();
        around.sslcommerz.keep_notices();
        let nodes = (0..setup.servers).map(|name| Node::start(name, Arc::clone(&around))).collect::<Result<_, _>>()?;
        let (merchants, operations, violations) = (Mutex::default(), AtomicU64::new(0), Mutex::default());
        let (dashboard_refunds, recorded_disputes) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self {
            setup,
            fate,
            around,
            nodes,
            merchants,
            dashboard_refunds,
            recorded_disputes,
            bank: Mutex::default(),
            operations,
            violations,
        }))
    }

    /// The keys of the refunds that merchants have asked for, which are also their reasons.
    pub(super) fn refunds_asked(&self) -> BTreeSet<String> {
        let orders = self.merchants().into_iter().flat_map(|merchant| merchant.orders().clone());
        orders.flat_map(|order| order.refunds).map(|(key, ..)| key).collect()
    }

    /// Records a violation.
    pub(super) fn violation(&self, what: impl Into<String>) {
        let what = what.into();
        self.fate.note(format_args!("VIOLATION: {what}"));
        self.violations.lock().push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().clone()
    }

    pub(super) fn hosts(&self) -> BTreeMap<String, Arc<Receiver>> {
        self.around.hosts.lock().clone()
    }

    pub(super) fn merchants(&self) -> Vec<Arc<Merchant>> {
        self.merchants.lock().clone()
    }

    /// How many operations there were.
    pub(super) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Whether the merchants go on.
    pub(super) fn goes_on(&self) -> bool {
        self.operations() < self.setup.operations
            && self.fate.elapsed_millis() < self.setup.seconds * 1000
            && self.violations().is_empty()
    }

    /// Sends a request to some server until an answer comes that is neither a server error nor about a key that was just
    /// replaced. `None` if no such answer came.
    pub(super) async fn ask(&self, ask: Ask) -> Option<Response> {
        for nth in 0..TRIES {
            if let Some(response) = self.try_once(&ask).await
                && response.status.as_u16() < 500
                && response.status != StatusCode::UNAUTHORIZED
            {
                return Some(response);
            }
            self.fate.wait(100..=500 * u64::from(nth.min(8) + 1)).await;
        }
        None
    }

    /// Sends a request to one of the servers. Some clients end a path with a slash now and then, which changes nothing.
    pub(super) async fn try_once(&self, ask: &Ask) -> Option<Response> {
        let slashed = ask.idempotency_key.as_ref().filter(|_| self.fate.one_in(8));
        let slashed = slashed.map(|key| {
            let end = if is_planted(Planted::SlashIsAnotherScope) { "/" } else { "" };
            ask.slashed().once(&format!("{key}{end}"))
        });
        let ask = slashed.as_ref().unwrap_or(ask);
        let node = self.fate.choose(&self.nodes)?;
        self.fate.wait(1..=30).await;
        if self.fate.strikes(Trouble::ClientLink, 100) {
            sleep(PATIENCE).await;
            return None;
        }
        let outcome = timeout(PATIENCE, node.ask(ask.request()?)).await.ok().flatten();
        self.operations.fetch_add(1, Ordering::Relaxed);
        let status = outcome.as_ref().map(|response| response.status.as_u16());
        let code = outcome.as_ref().filter(|it| it.status.is_client_error()).map(|it| text(&it.json(), "code"));
        let code = code.unwrap_or_default();
        self.fate.note(format_args!("{} {} at server {}: {status:?} {code}", ask.method, ask.path, node.name));
        self.fate.count(|counts| {
            counts.operations += 1;
            counts.refused += u64::from(status.is_some_and(|status| status >= 400));
        });
        if status == Some(500) {
            let body = outcome.as_ref().map(|it| String::from_utf8_lossy(&it.body).into_owned()).unwrap_or_default();
            self.violation(format!("{} {} is answered with 500: {body}", ask.method, ask.path));
        }
        if self.fate.strikes(Trouble::ClientLink, 100) {
            return None;
        }
        outcome
    }
}
