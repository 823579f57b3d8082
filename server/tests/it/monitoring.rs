//! The alert rules and the dashboard in `server/monitoring` name metrics that a server has.

use std::{collections::BTreeSet, path::Path, process::Command};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    live::Live,
    receiver::{Receiver, Reply},
    server::{eventually, payment_of, text_of},
};

const ALERTS: &str = include_str!("../../monitoring/alerts.yml");
const DASHBOARD: &str = include_str!("../../monitoring/dashboard.json");

/// The outcomes of deliveries in the alerts, and success.
const OUTCOMES: [&str; 3] = ["Success", "Refused", "Unanswered"];

/// The PromQL expressions of a JSON document at every depth.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        Value::Object(object) => {
            let own = object.get("expr").and_then(Value::as_str);
            own.into_iter().chain(object.values().flat_map(expressions)).collect()
        }
        _ => Vec::new(),
    }
}

/// The metrics that a text names.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .filter(|word| word.starts_with("payments_"))
        .collect()
}

/// Runs promtool in the folder of the rules.
fn promtool(arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../monitoring");
    let output = Command::new("promtool").args(arguments).current_dir(folder).output();
    let output = output.expect("promtool is needed; ./test fetches it");
    assert!(output.status.success(), "{}", text_of(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_every_metric_of_the_alerts_and_the_dashboard() {
    let live = Live::start("").await;
    let client = live.server.client();
    let (accepts, refuses) = (Receiver::ok().await, Receiver::start(Reply::InTurn(vec![StatusCode::GONE])).await);
    let gone = Receiver::ok().await;
    for receiver in [&accepts, &refuses, &gone] {
        receiver.subscribe(&client).await;
    }
    drop(gone);
    live.server.create(&payment_of(&json!(5))).await;
    live.paid(750.0, "BDT").await;
    let text = eventually("deliveries", async || {
        let text = live.server.metrics().await;
        let is_made = OUTCOMES.iter().all(|outcome| text.contains(&format!("outcome=\"{outcome}\"")));
        is_made.then_some(text)
    })
    .await;
    let served: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let shown = expressions(&dashboard).join("\n");
    assert!(shown.lines().count() > 40, "the dashboard has few expressions:\n{shown}");
    for named in metrics_in(ALERTS).union(&metrics_in(&shown)) {
        assert!(served.contains(named), "/metrics has no {named}");
    }
    // The label values that they select.
    for label in ["route=\"/api/v1/payments\"", "method=\"POST\"", "status=\"201\"", "gateway=\"bkash\""] {
        assert!(text.contains(label), "/metrics has no {label}");
    }
}

#[test]
fn promtool_accepts_the_alerts_and_the_dashboard_and_the_alerts_fire_as_tested() {
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
    // Test each expression of the dashboard as a rule. JSON is valid YAML.
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let rule = |(nth, text): (usize, &str)| json!({"record": format!("dashboard:{nth}"), "expr": text.replace("$__rate_interval", "5m")});
    let rules: Vec<Value> = expressions(&dashboard).into_iter().enumerate().map(rule).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    serde_json::to_writer(&file, &json!({"groups": [{"name": "dashboard", "rules": rules}]})).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()]);
}
