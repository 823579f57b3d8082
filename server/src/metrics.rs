//! The server's metrics, for Prometheus.
//!
//! Label values come from short lists: a route's template, never a path; a gateway's name, never a payment's id.

use std::{collections::BTreeMap, fmt, time::Duration};

use payments_core::{Currency, Environment, NoticeKind, Timestamp};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Metric, Registry, Unit},
};

use crate::log;

/// All metrics. Clones share their counters.
#[derive(Clone)]
pub struct Metrics {
    pub requests: Requests,
    pub commits: Commits,
    pub fan_out: FanOutTimes,
    pub deliveries: Deliveries,
    pub gateways: GatewayCalls,
    pub outside_effects: BudgetMetrics,
    pub gateway_checks: BudgetMetrics,
    pub sandbox: SandboxGauges,
    payments: Family<Labels<2, String>, Gauge>,
    outbox: Gauge,
    oldest_in_outbox: Gauge,
    retries_waiting: Gauge,
    store_readable: Gauge,
    reviews: Gauge,
    manual_settlements: Gauge,
    refunds_overdue: Gauge,
    oldest_refund: Gauge,
    disputes: Gauge,
    disputes_due: Gauge,
    coverage: Family<[(&'static str, String); 1], Gauge>,
    notices: Family<[(&'static str, String); 1], Gauge>,
    registry: std::sync::Arc<Registry>,
}

#[derive(Clone)]
pub struct Requests {
    answered: Family<RequestLabels, Counter>,
    seconds: Timings,
    pub panics: Counter,
    pub connections: Gauge,
    pub connections_at_most: Gauge,
    pub connections_closed: Counter,
    pub slow_readers_closed: Counter,
    pub unsent: BudgetMetrics,
    pub input: BudgetMetrics,
    pub unreadable: Counter,
    pub rate_windows_evicted: Counter,
    pub not_logged: Counter,
}

/// A [budget](crate::process::budget): what is held of it, all of it, and how often someone asked for too much.
#[derive(Clone, Default)]
pub struct BudgetMetrics {
    pub held: Gauge,
    pub at_most: Gauge,
    pub refused: Counter,
}

#[derive(Clone)]
pub struct Commits {
    changes: Histogram,
    seconds: Histogram,
}

/// How long events wait until all their deliveries are in the outbox.
#[derive(Clone)]
pub struct FanOutTimes(Histogram);

#[derive(Clone)]
pub struct Deliveries {
    pub made: Family<Labels<1, DeliveryOutcome>, Counter>,
    /// Of attempts whose request was sent.
    pub seconds: Histogram,
    pub not_sent: Counter,
    pub permits: PermitGauges,
}

#[derive(Clone, Default)]
pub struct PermitGauges {
    pub held: Gauge,
    pub waiting: Gauge,
    pub kib: Gauge,
}

#[derive(Clone, Default)]
pub struct SandboxGauges {
    pub bytes: Gauge,
    pub renewals: Counter,
}

#[derive(Clone)]
pub struct GatewayCalls {
    calls: Family<Labels<3>, Counter>,
    seconds: Timings,
    held_back: Family<Labels<1>, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

type Labels<const N: usize, V = &'static str> = [(&'static str, V); N];

type Timings = Family<Labels<1>, Histogram, fn() -> Histogram>;

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
pub enum DeliveryOutcome {
    /// The endpoint answered 2xx.
    Success,
    /// The endpoint answered with another status.
    Refused,
    /// The endpoint did not answer.
    Unanswered,
    /// The endpoint was removed.
    Withdrawn,
}

/// A histogram of durations, with bounds that double from 0.5 ms to 33 s.
fn seconds() -> Histogram {
    Histogram::new(std::iter::successors(Some(0.0005), |bound| Some(bound * 2.0)).take(17))
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a budget and returns its metrics: what is held, and how often more was refused.
fn add_budget(registry: &mut Registry, [held, refused]: [&str; 2], help: &str) -> BudgetMetrics {
    BudgetMetrics {
        held: add(registry, held, help),
        at_most: add(registry, &format!("{held}_at_most"), &format!("Maximum of {held}; one alone gets half")),
        refused: add(registry, refused, &format!("Requests refused with 503 because of the maximum of {held}")),
    }
}

/// Registers a metric in seconds, whose unit ends its name, and returns its handle.
fn add_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

fn add_timings(registry: &mut Registry, name: &str, help: &str) -> Timings {
    add_seconds(registry, name, help, Timings::new_with_constructor(seconds))
}

/// The commit that the binary was built from, if whoever built it said so.
const REVISION: &str = match option_env!("PAYMENTS_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("payments");
        let r = &mut registry;
        let build = [("version", env!("CARGO_PKG_VERSION")), ("revision", REVISION)];
        r.register("build", "Version and source revision of this server", Info::new(build));
        r.register("log_lines_dropped", "Log lines dropped because nobody read the log", log::DROPPED.clone());
        let requests = Requests {
            answered: add(r, "requests", "HTTP requests answered"),
            seconds: add_timings(r, "request_duration", "Time to answer"),
            panics: add(r, "panics", "Handlers that panicked; answered with status 500"),
            connections: add(r, "connections", "Open connections"),
            connections_at_most: add(r, "connections_at_most", "Maximum open connections; further connections wait"),
            connections_closed: add(
                r,
                "connections_closed",
                "Connections closed because their address had reached its limit",
            ),
            slow_readers_closed: add(
                r,
                "slow_readers_closed",
                "Connections closed because their client took less than 16 KiB of a response in 30 s",
            ),
            unsent: add_budget(
                r,
                ["unsent_response_bytes", "unsent_responses_refused"],
                "Bytes of long responses that their clients still have to take",
            ),
            input: add_budget(
                r,
                ["input_bytes", "input_refused"],
                "Bytes of request heads and bodies, over the first 8 KiB of each connection",
            ),
            unreadable: add(
                r,
                "unreadable_requests",
                "Requests that were not HTTP or had too long a head; answered without a body",
            ),
            rate_windows_evicted: add(
                r,
                "rate_windows_evicted",
                "Rate limit windows dropped early because their table was full; their keys or addresses start a new \
                 window",
            ),
            not_logged: add(r, "requests_not_logged", "Requests that are missing in the log that developers read"),
        };
        let changes = Histogram::new(std::iter::successors(Some(1.0), |bound| Some(bound * 2.0)).take(12));
        r.register("commit_batch_changes", "Changes per group commit", changes.clone());
        let commits = Commits {
            changes,
            seconds: add_seconds(r, "commit_sync", "Time to make a group commit durable", seconds()),
        };
        let outbox = add(r, "outbox_deliveries", "Deliveries whose attempt is due or in flight");
        let oldest_in_outbox =
            add_seconds(r, "outbox_oldest", "Time since the oldest attempt in an outbox was due", Gauge::default());
        let deliveries = Deliveries {
            made: add(r, "deliveries", "Delivery attempts, by outcome"),
            seconds: add_seconds(r, "delivery_duration", "Time of a delivery attempt, until its response", seconds()),
            not_sent: add(
                r,
                "deliveries_not_sent",
                "Times a delivery stayed pending because this server had no descriptor, port, memory or lookup for it",
            ),
            permits: PermitGauges {
                held: add(r, "delivery_places_held", "Delivery slots in use"),
                waiting: add(r, "delivery_places_waiting", "Endpoints that wait for a delivery slot"),
                kib: add(r, "delivery_loaded_kibibytes", "Memory reserved for attempts in flight"),
            },
        };
        let outside_effects = add_budget(
            r,
            ["outside_effects", "outside_effects_refused"],
            "Test pings and gateway refunds in progress for requests",
        );
        let gateway_checks = BudgetMetrics {
            held: add(r, "gateway_checks", "Due payments about which this server asks a gateway, or soon will"),
            at_most: add(r, "gateway_checks_at_most", "Maximum of gateway_checks; one developer alone gets half"),
            refused: add(
                r,
                "gateway_checks_put_off",
                "Times a due payment was put off because of the maximum of gateway_checks",
            ),
        };
        let store_readable = add(
            r,
            "store_readable",
            "1 if the store answered this scrape; otherwise its figures are those of the last answer",
        );
        Self {
            requests,
            commits,
            fan_out: FanOutTimes(add_seconds(
                r,
                "fan_out_delay",
                "Time from an event until all its deliveries are in the outbox",
                seconds(),
            )),
            deliveries,
            outbox,
            oldest_in_outbox,
            retries_waiting: add(r, "deliveries_waiting", "Deliveries that wait for their next attempt"),
            store_readable,
            outside_effects,
            gateway_checks,
            sandbox: SandboxGauges {
                bytes: add(r, "sandbox_bytes", "Size of the sandbox's own store on disk"),
                renewals: add(r, "sandbox_renewals", "Times the sandbox's own store was replaced"),
            },
            payments: add(r, "payments", "Payments by public status"),
            gateways: GatewayCalls {
                calls: add(r, "gateway_calls", "Calls to payment gateways"),
                seconds: add_timings(r, "gateway_call_duration", "Time of a gateway call"),
                held_back: add(r, "gateway_held_back", "1 while the circuit breaker of a gateway is open"),
            },
            reviews: add(
                r,
                "reviews_open",
                "Payments whose gateway state contradicts ours and needs a manual decision; see reviews list",
            ),
            manual_settlements: add(r, "refunds_unsettled", "Refunds that need manual settlement; see refunds list"),
            refunds_overdue: add(r, "refunds_overdue", "Refunds that should have been sent by hand; see refunds list"),
            oldest_refund: add(r, "refund_unsettled_seconds", "Age of the oldest refund that needs manual settlement"),
            disputes: add(r, "disputes_open", "Disputes that are not decided; see disputes list"),
            disputes_due: add(r, "disputes_due", "Open disputes whose evidence is due within three days, or was"),
            coverage: add(
                r,
                "coverage_surplus",
                "What bank and gateways hold beyond what merchants are owed, in minor units; see coverage",
            ),
            notices: add(r, "notices_open", "Open notices by kind; see notices list"),
            registry: registry.into(),
        }
    }

    /// All metrics in the text format of Prometheus. If the store could not be observed, its figures stay as they were.
    pub fn text(&self, observed: Option<&Observed>) -> Result<String, fmt::Error> {
        self.store_readable.set(i64::from(observed.is_some()));
        if let Some(observed) = observed {
            self.show(observed);
        }
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn show(&self, observed: &Observed) {
        for ((environment, status), count) in &observed.payments {
            let labels = [("environment", environment.to_string()), ("status", status.clone())];
            self.payments.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.outbox.set(observed.outbox);
        self.oldest_in_outbox.set(observed.oldest_in_outbox_seconds);
        self.retries_waiting.set(observed.retries_waiting);
        self.reviews.set(observed.reviews);
        self.manual_settlements.set(observed.manual_settlements);
        self.refunds_overdue.set(observed.refunds_overdue);
        self.oldest_refund.set(observed.oldest_refund_seconds);
        self.disputes.set(observed.disputes);
        self.disputes_due.set(observed.disputes_due);
        for kind in NoticeKind::KNOWN.iter().map(ToString::to_string) {
            let count = observed.notices.get(&kind).copied().unwrap_or_default();
            self.notices.get_or_create(&[("kind", kind)]).set(count);
        }
        for (currency, surplus) in &observed.coverage {
            self.coverage.get_or_create(&[("currency", currency.to_string())]).set(*surplus);
        }
    }
}

/// Metrics that the server reads from the store only on request.
#[derive(Debug, Default)]
pub struct Observed {
    pub payments: BTreeMap<(Environment, String), u64>,
    pub outbox: i64,
    pub oldest_in_outbox_seconds: i64,
    pub retries_waiting: i64,
    pub reviews: i64,
    pub manual_settlements: i64,
    pub refunds_overdue: i64,
    pub oldest_refund_seconds: i64,
    pub disputes: i64,
    pub disputes_due: i64,
    pub coverage: BTreeMap<Currency, i64>,
    pub notices: BTreeMap<String, i64>,
}

impl Observed {
    /// With the sandbox's, in which nobody decides or settles anything.
    pub fn with_sandbox(mut self, other: Self) -> Self {
        for (labels, count) in other.payments {
            *self.payments.entry(labels).or_default() += count;
        }
        self.oldest_in_outbox_seconds = self.oldest_in_outbox_seconds.max(other.oldest_in_outbox_seconds);
        self.outbox += other.outbox;
        self.retries_waiting += other.retries_waiting;
        self
    }
}

impl Requests {
    pub fn answered(&self, route: &'static str, method: &str, status: u16, took: Duration) {
        let method = KNOWN_METHODS.iter().find(|known| **known == method).copied().unwrap_or("other");
        self.answered.get_or_create(&RequestLabels { route, method, status }).inc();
        self.seconds.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
    }
}

const KNOWN_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"];

impl Commits {
    #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
    pub fn synced(&self, changes: usize, took: Duration) {
        self.changes.observe(changes as f64);
        self.seconds.observe(took.as_secs_f64());
    }
}

impl FanOutTimes {
    /// Records that an event has all its deliveries. A clock that stepped back counts as no wait.
    pub fn fanned_out(&self, created_at: Timestamp, now: Timestamp) {
        let waited = u64::try_from(now.as_millis() - created_at.as_millis()).unwrap_or_default();
        self.0.observe(Duration::from_millis(waited).as_secs_f64());
    }
}

impl GatewayCalls {
    pub fn called(&self, gateway: &'static str, call: &'static str, is_answered: bool, took: Duration) {
        let answered = if is_answered { "true" } else { "false" };
        self.calls.get_or_create(&[("gateway", gateway), ("call", call), ("answered", answered)]).inc();
        self.seconds.get_or_create(&[("gateway", gateway)]).observe(took.as_secs_f64());
    }

    pub fn held_back(&self, gateway: &'static str, is_held_back: bool) {
        self.held_back.get_or_create(&[("gateway", gateway)]).set(i64::from(is_held_back));
    }
}
