//! The server's metrics, for Prometheus.
//!
//! Label values come from short lists: a route's template, never a path; a gateway's name, never a payment's id.

use std::{fmt, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// All metrics. Clones share their counters.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) requests: Requests,
    pub(crate) commits: Commits,
    pub(crate) deliveries: Deliveries,
    pub(crate) gateways: GatewayCalls,
    pub(crate) outside_effects: Gauge,
    pub(crate) sandbox: SandboxGauges,
    payments: Family<PaymentLabels, Gauge>,
    oldest_in_outbox: Gauge,
    reviews: Gauge,
    unsettled_refunds: Gauge,
    registry: std::sync::Arc<Registry>,
}

/// HTTP requests.
#[derive(Clone)]
pub(crate) struct Requests {
    answered: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pub(crate) panics: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_at_most: Gauge,
    pub(crate) connections_closed: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) rate_windows_evicted: Counter,
}

/// The store's commits.
#[derive(Clone)]
pub(crate) struct Commits {
    changes: Histogram,
    seconds: Histogram,
    pub(crate) outbox: Gauge,
}

/// Webhook deliveries.
#[derive(Clone, Default)]
pub(crate) struct Deliveries {
    pub(crate) made: Family<DeliveryLabels, Counter>,
    pub(crate) not_sent: Counter,
    pub(crate) places: PlaceGauges,
}

/// The dispatcher's slots.
#[derive(Clone, Default)]
pub(crate) struct PlaceGauges {
    pub(crate) held: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) kib: Gauge,
}

/// The sandbox's own store, which a public server has.
#[derive(Clone, Default)]
pub(crate) struct SandboxGauges {
    pub(crate) bytes: Gauge,
    pub(crate) renewals: Counter,
}

/// Calls to payment gateways.
#[derive(Clone)]
pub(crate) struct GatewayCalls {
    calls: Family<CallLabels, Counter>,
    seconds: Family<GatewayLabels, Histogram, fn() -> Histogram>,
    held_back: Family<GatewayLabels, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PaymentLabels {
    environment: &'static str,
    status: Text,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    gateway: &'static str,
    call: &'static str,
    answered: Text,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct GatewayLabels {
    gateway: &'static str,
}

/// The label of a delivery's outcome.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct DeliveryLabels {
    pub(crate) outcome: DeliveryOutcome,
}

/// The outcome of a delivery attempt.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
pub(crate) enum DeliveryOutcome {
    /// The endpoint answered 2xx.
    Success,
    /// The endpoint answered with another status.
    Refused,
    /// The endpoint did not answer.
    Unanswered,
    /// The endpoint was removed.
    Withdrawn,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Text(String);

impl prometheus_client::encoding::EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.as_str().encode(encoder)
    }
}

/// A histogram of durations, with bounds that double from 0.5 ms to 33 s.
fn seconds() -> Histogram {
    Histogram::new(std::iter::successors(Some(0.0005), |bound| Some(bound * 2.0)).take(17))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("payments");
        let requests = Requests {
            answered: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            panics: Counter::default(),
            connections: Gauge::default(),
            connections_at_most: Gauge::default(),
            connections_closed: Counter::default(),
            unreadable: Counter::default(),
            rate_windows_evicted: Counter::default(),
        };
        let commits = Commits {
            changes: Histogram::new(std::iter::successors(Some(1.0), |bound| Some(bound * 2.0)).take(12)),
            seconds: seconds(),
            outbox: Gauge::default(),
        };
        let gateways = GatewayCalls {
            calls: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            held_back: Family::default(),
        };
        let deliveries = Deliveries::default();
        let (payments, oldest_in_outbox) = (Family::<PaymentLabels, Gauge>::default(), Gauge::default());
        let (reviews, unsettled_refunds) = (Gauge::default(), Gauge::default());
        let unit = Unit::Seconds;
        registry.register("requests", "HTTP requests answered", requests.answered.clone());
        registry.register_with_unit("request_duration", "Time to answer", unit.clone(), requests.seconds.clone());
        registry.register("panics", "Handlers that panicked; answered with status 500", requests.panics.clone());
        registry.register("connections", "Open connections", requests.connections.clone());
        registry.register(
            "connections_at_most",
            "Maximum open connections; further connections wait",
            requests.connections_at_most.clone(),
        );
        registry.register(
            "connections_closed",
            "Connections closed because their address had reached its limit",
            requests.connections_closed.clone(),
        );
        registry.register(
            "unreadable_requests",
            "Requests that were not HTTP or had too long a head; answered without a body",
            requests.unreadable.clone(),
        );
        registry.register(
            "rate_windows_evicted",
            "Rate limit windows dropped early because their table was full; their keys or addresses start a new window",
            requests.rate_windows_evicted.clone(),
        );
        registry.register("commit_batch_changes", "Changes per group commit", commits.changes.clone());
        registry.register_with_unit(
            "commit_sync",
            "Time to make a group commit durable",
            unit.clone(),
            commits.seconds.clone(),
        );
        registry.register("outbox_deliveries", "Pending deliveries", commits.outbox.clone());
        registry.register_with_unit(
            "outbox_oldest",
            "Age of the oldest pending delivery",
            unit.clone(),
            oldest_in_outbox.clone(),
        );
        registry.register("deliveries", "Delivery attempts, by outcome", deliveries.made.clone());
        registry.register(
            "deliveries_not_sent",
            "Times a delivery stayed pending because this server had no descriptor, port, memory or lookup for it",
            deliveries.not_sent.clone(),
        );
        let places = &deliveries.places;
        registry.register("delivery_places_held", "Delivery slots in use", places.held.clone());
        registry.register("delivery_places_waiting", "Endpoints that wait for a delivery slot", places.waiting.clone());
        registry.register("delivery_loaded_kibibytes", "Memory reserved for attempts in flight", places.kib.clone());
        let outside_effects = Gauge::default();
        registry.register(
            "outside_effects",
            "Test pings and gateway refunds in progress for requests",
            outside_effects.clone(),
        );
        let sandbox = SandboxGauges::default();
        registry.register("sandbox_bytes", "Size of the sandbox's own store on disk", sandbox.bytes.clone());
        registry.register("sandbox_renewals", "Times the sandbox's own store was replaced", sandbox.renewals.clone());
        registry.register("payments", "Payments by public status", payments.clone());
        registry.register("gateway_calls", "Calls to payment gateways", gateways.calls.clone());
        registry.register_with_unit("gateway_call_duration", "Time of a gateway call", unit, gateways.seconds.clone());
        registry.register(
            "gateway_held_back",
            "1 while the circuit breaker of a gateway is open",
            gateways.held_back.clone(),
        );
        registry.register(
            "reviews_open",
            "Payments whose gateway state contradicts ours and needs a manual decision; see reconcile list",
            reviews.clone(),
        );
        registry.register(
            "refunds_unsettled",
            "Refunds that need manual settlement; see refunds list",
            unsettled_refunds.clone(),
        );
        Self {
            requests,
            commits,
            deliveries,
            gateways,
            outside_effects,
            sandbox,
            payments,
            oldest_in_outbox,
            reviews,
            unsettled_refunds,
            registry: registry.into(),
        }
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) fn text(&self, observed: &Observed) -> Result<String, fmt::Error> {
        for (environment, status, count) in &observed.payments {
            let labels = PaymentLabels { environment, status: Text(status.clone()) };
            self.payments.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.oldest_in_outbox.set(observed.oldest_in_outbox_seconds);
        self.reviews.set(observed.reviews);
        self.unsettled_refunds.set(observed.unsettled_refunds);
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Metrics that the server reads from the store only on request.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Environment, public status, number of payments.
    pub(crate) payments: Vec<(&'static str, String, u64)>,
    pub(crate) oldest_in_outbox_seconds: i64,
    pub(crate) reviews: i64,
    pub(crate) unsettled_refunds: i64,
}

impl Requests {
    pub(crate) fn answered(&self, route: &'static str, method: &str, status: u16, took: Duration) {
        let method = KNOWN_METHODS.iter().find(|known| **known == method).copied().unwrap_or("other");
        self.answered.get_or_create(&RequestLabels { route, method, status }).inc();
        self.seconds.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    }
}

const KNOWN_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"];

impl Commits {
    #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
    pub(crate) fn synced(&self, changes: usize, took: Duration) {
        self.changes.observe(changes as f64);
        self.seconds.observe(took.as_secs_f64());
    }
}

impl GatewayCalls {
    pub(crate) fn called(&self, gateway: &'static str, call: &'static str, is_answered: bool, took: Duration) {
        let answered = Text(is_answered.to_string());
        self.calls.get_or_create(&CallLabels { gateway, call, answered }).inc();
        self.seconds.get_or_create(&GatewayLabels { gateway }).observe(took.as_secs_f64());
    }

    pub(crate) fn held_back(&self, gateway: &'static str, is_held_back: bool) {
        self.held_back.get_or_create(&GatewayLabels { gateway }).set(i64::from(is_held_back));
    }
}
