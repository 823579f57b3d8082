//! OpenTelemetry traces by OTLP, from a request to its webhook, with the feature `otlp`.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};
use warp::Filter;

use crate::{
    receiver::Receiver,
    server::{Server, eventually, payment_of},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A collector that accepts spans as JSON.
struct Collector {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let received = Arc::clone(&requests);
        let route = warp::path!("v1" / "traces").and(warp::post()).and(warp::body::json()).map(move |body: Value| {
            received.lock().unwrap().push(body);
            warp::reply::json(&json!({}))
        });
        tokio::spawn(warp::serve(route).incoming(listener).run());
        Self { url, requests }
    }

    /// The spans of a trace.
    fn spans(&self, trace: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let items = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        let resources = requests.iter().flat_map(|request| items(request, "resourceSpans"));
        let scopes = resources.flat_map(|resource| items(&resource, "scopeSpans"));
        scopes.flat_map(|scope| items(&scope, "spans")).filter(|span| span["traceId"] == trace).collect()
    }
}

/// A server whose traces go to the collector.
fn start(collector: &Collector) -> Server {
    let mut server = Server::start();
    let settings = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")];
    server.restart_in(&[&settings[..], &[("OTEL_BSP_SCHEDULE_DELAY", "100")]].concat());
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_leads_from_a_request_through_its_commit_to_its_webhook() {
    let (collector, receiver) = (Collector::start().await, Receiver::ok().await);
    let server = start(&collector);
    receiver.subscribe(&server.client()).await;
    let request = server.request(Method::POST, "/payments").json(&payment_of(&json!(5)));
    let answer = request.header("traceparent", format!("00-{TRACE}-{PARENT}-01")).send().await.unwrap();
    assert_eq!(answer.status(), 201);

    let spans = eventually("three spans", async || {
        let spans = collector.spans(TRACE);
        (spans.len() >= 3).then_some(spans)
    })
    .await;
    let of = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let (request, commit, webhook) = (of("POST /api/v1/payments"), of("commit"), of("webhook payment.created"));
    assert_eq!(request["parentSpanId"], PARENT);
    assert_eq!(commit["parentSpanId"], request["spanId"]);
    assert_eq!(webhook["parentSpanId"], commit["spanId"]);
    let has_status = |span: &Value, status: &str| span["attributes"].to_string().contains(status);
    assert!(has_status(request, "201") && has_status(webhook, "200"), "{spans:?}");

    let received = receiver.received();
    let header = received[0].headers["traceparent"].to_str().unwrap();
    assert_eq!(header, format!("00-{TRACE}-{}-01", webhook["spanId"].as_str().unwrap()));
    assert!(!received[0].headers.contains_key("tracestate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_a_webhook_has_no_trace() {
    let receiver = Receiver::ok().await;
    let server = Server::start();
    receiver.subscribe(&server.client()).await;
    let request = server.request(Method::POST, "/payments").json(&payment_of(&json!(5)));
    request.header("traceparent", format!("00-{TRACE}-{PARENT}-01")).send().await.unwrap();
    let received = eventually("the event", async || receiver.received().pop()).await;
    assert!(!received.headers.contains_key("traceparent"));
}
