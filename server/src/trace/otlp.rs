//! Traces by OTLP over HTTP, with the settings that OpenTelemetry gives its environment variables.

use std::{env, fmt::Display, sync::OnceLock, time::Duration};

use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::{FutureExt as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider},
};
use parking_lot::Mutex;
use payments_core::{Delivery, EventId};
use warp::{
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, request::Builder},
    reply::Response,
};

use super::events::RecentEvents;
use crate::{
    cli::CommandError,
    store::{Change, CommitError, Committed, Store, Write},
};

const NAME: &str = "payments-server";
/// How long the last spans may take to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// What makes spans, once traces are on.
static TRACES: OnceLock<Traces> = OnceLock::new();

struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
    events: Mutex<RecentEvents>,
}

/// Turns traces on if the environment names a collector.
pub fn start() -> Result<(), CommandError> {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    let Some(name) = names.iter().find(|name| is_set(name)) else { return Ok(()) };
    let mut exporter = SpanExporter::builder().with_http();
    // OpenTelemetry's default; the crate's is JSON where it has both.
    if !["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"].iter().any(is_set) {
        exporter = exporter.with_protocol(Protocol::HttpBinary);
    }
    let exporter = exporter.build();
    let exporter = exporter.map_err(|error| format!("cannot send traces: {error}; check {name}"))?;
    let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !is_set(&"OTEL_SERVICE_NAME") {
        resource = resource.with_service_name(NAME);
    }
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let tracer = provider.tracer(NAME);
    let traces = Traces { provider, tracer, propagator: TraceContextPropagator::new(), events: Mutex::default() };
    if TRACES.set(traces).is_ok() {
        tracing::info!("traces go to the collector in {name}");
    }
    Ok(())
}

pub async fn end() {
    let Some(traces) = TRACES.get() else { return };
    let flushed = tokio::task::spawn_blocking(|| traces.provider.shutdown_with_timeout(FLUSH_TIMEOUT)).await;
    if let Ok(Err(error)) = flushed {
        tracing::warn!(%error, "the last spans were not sent");
    }
}

impl Traces {
    /// A span in the trace of `parent`, as the context of what it surrounds.
    fn span(&self, name: String, kind: SpanKind, attributes: Vec<KeyValue>, parent: &Context) -> Context {
        let span = self.tracer.span_builder(name).with_kind(kind).with_attributes(attributes);
        parent.with_span(span.start_with_context(&self.tracer, parent))
    }
}

/// Ends a span as failed if its work failed.
fn end_span<T, E: Display>(span: &Context, outcome: &Result<T, E>) {
    if let Err(error) = outcome {
        span.span().set_status(Status::error(error.to_string()));
    }
    span.span().end();
}

/// Surrounds a request's answer, in the trace of the `traceparent` that came with it.
pub async fn request<F: Future<Output = Response>>(
    headers: &HeaderMap,
    method: &Method,
    route: &'static str,
    id: &HeaderValue,
    answer: F,
) -> Response {
    let Some(traces) = TRACES.get() else { return answer.await };
    let attributes = vec![
        KeyValue::new("http.request.method", method.to_string()),
        KeyValue::new("http.route", route),
        KeyValue::new("request.id", id.to_str().unwrap_or_default().to_owned()),
    ];
    let parent = traces.propagator.extract_with_context(&Context::new(), &Received(headers));
    let span = traces.span(format!("{method} {route}"), SpanKind::Server, attributes, &parent);
    let response = answer.with_context(span.clone()).await;
    let status = response.status();
    span.span().set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
    if status.is_server_error() {
        span.span().set_status(Status::error(status.to_string()));
    }
    span.span().end();
    response
}

/// Commits a change. The deliveries of its events join the trace.
pub async fn commit(store: &Store, change: Change) -> Result<Committed, CommitError> {
    let Some(traces) = TRACES.get() else { return store.commit(change).await };
    let event = |write: &Write| match write {
        Write::Payment(payment) => payment.event.as_ref().map(|event| event.id.clone()),
        _ => None,
    };
    let events: Vec<EventId> = change.writes.iter().filter_map(event).collect();
    let parent = Context::current();
    if events.is_empty() && !parent.has_active_span() {
        return store.commit(change).await;
    }
    let span = traces.span("commit".to_owned(), SpanKind::Internal, Vec::new(), &parent);
    // Before the commit: another task may send the webhook before this one goes on.
    events.into_iter().for_each(|event| traces.events.lock().insert(event, span.span().span_context().clone()));
    let outcome = store.commit(change).with_context(span.clone()).await;
    end_span(&span, &outcome);
    outcome
}

/// Keeps the trace of the task that makes `work` when another task runs it.
pub fn same_trace<F: Future>(work: F) -> impl Future<Output = F::Output> {
    work.with_current_context()
}

/// Surrounds a delivery attempt with the trace of its event.
pub fn attempts_of<F: Future>(event: Option<&EventId>, attempt: F) -> impl Future<Output = F::Output> {
    let context = match TRACES.get().and_then(|traces| traces.events.lock().get(event?)) {
        Some(span) => Context::new().with_remote_span_context(span),
        None => Context::current(),
    };
    attempt.with_context(context)
}

/// Surrounds a request to a merchant's endpoint.
pub async fn webhook<T, E>(
    delivery: &Delivery,
    call: impl Future<Output = Result<(StatusCode, T), E>>,
) -> Result<(StatusCode, T), E> {
    let Some(traces) = TRACES.get() else { return call.await };
    let attributes = vec![
        KeyValue::new("http.request.method", "POST"),
        KeyValue::new("webhook.delivery", delivery.id.to_string()),
        KeyValue::new("webhook.endpoint", delivery.webhook_id.to_string()),
        KeyValue::new("webhook.attempt", i64::from(delivery.attempts) + 1),
    ];
    let span = traces.span(format!("webhook {}", delivery.event), SpanKind::Client, attributes, &Context::current());
    let outcome = call.with_context(span.clone()).await;
    match &outcome {
        Ok((status, _)) => {
            span.span().set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
            if !status.is_success() {
                span.span().set_status(Status::error(status.to_string()));
            }
        }
        Err(_) => span.span().set_status(Status::error("no response; the delivery's error says why")),
    }
    span.span().end();
    outcome
}

/// Adds the headers `traceparent` and `tracestate` of the present span.
pub fn propagate(request: &mut Builder) {
    let (Some(traces), Some(headers)) = (TRACES.get(), request.headers_mut()) else { return };
    traces.propagator.inject_context(&Context::current(), &mut Sent(headers));
}

/// Surrounds a call to a payment gateway, which gets no `traceparent`.
pub async fn gateway_call<T, E: Display>(
    gateway: &'static str,
    what: &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(traces) = TRACES.get() else { return call.await };
    let span = traces.span(format!("{gateway} {what}"), SpanKind::Client, Vec::new(), &Context::current());
    let outcome = call.with_context(span.clone()).await;
    end_span(&span, &outcome);
    outcome
}

/// The headers of a request, to read a trace from.
struct Received<'r>(&'r HeaderMap);

impl Extractor for Received<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// The headers of a request, to write a trace to.
struct Sent<'r>(&'r mut HeaderMap);

impl Injector for Sent<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value))
            && !value.is_empty()
        {
            self.0.insert(name, value);
        }
    }
}
