//! The examples of the reference are answers of the real server. `UPDATE_EXAMPLES=1` writes them again.

use std::{fs, path::Path};

use payments_client::webhook::{Secret, Signer};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::{
    document::{self, Checker, operations},
    live::Live,
    receiver::Receiver,
    server::{SANDBOX_KEY, eventually},
    stable::Stable,
};

pub(crate) const EXAMPLES: &str = include_str!("../../docs/examples.json");

/// Calls operations and records the requests and answers.
struct Recorder {
    live: Live,
    document: Value,
    before: Value,
    examples: Map<String, Value>,
}

/// The parts of a call besides the operation's method and path.
#[derive(Default)]
struct Call<'c> {
    id: &'c str,
    query: &'static str,
    idempotency_key: Option<&'static str>,
    body: Option<Value>,
    key: Option<&'c str>,
}

impl Recorder {
    /// Calls an operation, which must succeed. Returns the answer.
    async fn call(&mut self, name: &str, call: Call<'_>) -> Value {
        let (template, method, described) =
            operations(&self.document).find(|(_, _, it)| it["operationId"] == name).unwrap();
        let path = format!("{}{}", template.replace("{id}", call.id), call.query);
        let mut request = self.live.server.keyless(method.to_uppercase().parse().unwrap(), &path);
        if described["security"].is_null() {
            request = request.bearer_auth(call.key.unwrap_or(SANDBOX_KEY));
        }
        let mut example = json!({"path": path});
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
            example["idempotencyKey"] = key.into();
        }
        if let Some(body) = call.body {
            request = request.json(&body);
            example["body"] = body;
        }
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{name}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
        Checker::new(&self.document, &self.before).answered(name, status.as_u16(), &headers, &answer);
        example["status"] = status.as_u16().into();
        // The document itself, and a page with dates in words.
        if !["retrieveDescription", "retrievePayoutStatement"].contains(&name) {
            example["answer"] = answer.clone();
        }
        self.examples.insert(name.to_owned(), example);
        answer
    }

    /// Replaces today, which the activity has as a date and below its chart, by the first of March.
    fn date(&mut self, today: &str, chart: &str) {
        let (_, label) = chart.strip_suffix("</text></svg>").and_then(|rest| rest.rsplit_once('>')).unwrap();
        for name in ["retrieveActivity", "drawActivity"] {
            let answer = self.examples[name]["answer"].to_string();
            let dated = answer.replace(today, "2026-03-01").replace(&format!(">{label}<"), ">1 Mar<");
            self.examples[name]["answer"] = serde_json::from_str(&dated).unwrap();
        }
    }

    /// Replaces the next Sunday, on which payouts are due, by the one after the first of March.
    fn next_sunday(&mut self) {
        let sunday = Value::from("2026-03-07T18:00:00.000Z");
        self.examples["setPayoutSchedule"]["answer"]["schedule"]["nextAt"] = sunday.clone();
        self.examples["listPayoutDestinations"]["answer"][0]["schedule"]["nextAt"] = sunday;
    }
}

fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// Calls every operation, in an order in which each has something to return.
async fn record() -> String {
    let stable = Stable::from_now();
    let live = Live::start("").await;
    let hook = Receiver::ok().await;
    let workspace: Value = live.server.get("/account").await["workspace"]["id"].clone();
    let workspace = workspace.as_str().unwrap();
    live.server.run(&["apps", "create", "--workspace", workspace, "--name", "Till"]);
    let stable = stable.with(&live.server.url, "http://127.0.0.1:8080").with(&hook.url(), "https://shop.example/hooks");
    let recorder =
        &mut Recorder { live, document: document::closed(), before: document::before(), examples: Map::new() };
    let none = Call::default;

    let subscription = json!({"url": hook.url(), "events": ["payment.completed", "payment.refunded"]});
    let call = Call { idempotency_key: Some("shop-hook"), body: Some(subscription), ..none() };
    let endpoint = id_of(&recorder.call("createWebhook", call).await);
    let order = json!({"amount": 750, "currency": "BDT", "success_url": "https://shop.example/paid",
        "cancel_url": "https://shop.example/cart", "merchantTransactionId": "order-1017",
        "description": "Rahim’s Tea, two cups", "customerPhone": "01712345678", "metadata": {"table": "7"}});
    let call = Call { idempotency_key: Some("order-1017"), body: Some(order), ..none() };
    let payment = id_of(&recorder.call("createPayment", call).await);
    recorder.call("retrieveCheckout", Call { id: &payment, ..none() }).await;
    let outcome = Some(json!({"status": "completed"}));
    recorder.call("simulateCheckout", Call { id: &payment, body: outcome, ..none() }).await;
    recorder.live.server.ended_deliveries(1).await;
    recorder.call("retrievePayment", Call { id: &payment, ..none() }).await;
    recorder.call("retrieveTimeline", Call { id: &payment, ..none() }).await;
    // Sentences with a time in words differ in each run.
    let summary = recorder.examples["retrieveTimeline"]["answer"]["summary"].as_array_mut().unwrap();
    summary.retain(|line| !line["en"].as_str().unwrap().contains("(Dhaka time)"));
    recorder.call("listPayments", Call { query: "?status=completed&limit=1", ..none() }).await;
    let events = recorder.call("listEvents", Call { query: "?events=payment.completed&limit=1", ..none() }).await;
    recorder.call("retrieveEvent", Call { id: &id_of(&events["items"][0]), ..none() }).await;
    let deliveries = recorder.call("listDeliveries", Call { query: "?limit=1", ..none() }).await;
    let resent = Call { id: &id_of(&deliveries["items"][0]), idempotency_key: Some("resend-1"), ..none() };
    recorder.call("resendDelivery", resent).await;
    recorder.live.server.ended_deliveries(2).await;

    recorder.call("retrieveAccount", none()).await;
    recorder.call("retrieveBalance", none()).await;
    let activity = recorder.call("retrieveActivity", Call { query: "?days=1", ..none() }).await;
    let chart = recorder.call("drawActivity", Call { query: "?days=1&currency=BDT", ..none() }).await;
    recorder.date(activity["until"].as_str().unwrap(), chart.as_str().unwrap());
    recorder.call("listApps", none()).await;
    recorder.call("listNotices", none()).await;
    recorder.call("listKeys", none()).await;
    recorder.call("listAudit", Call { query: "?limit=1", ..none() }).await;
    recorder.call("listTransactions", Call { query: "?currency=BDT&limit=2", ..none() }).await;
    recorder.call("downloadTransactions", Call { query: "?currency=BDT&limit=2", ..none() }).await;
    let account = json!({"holder": "Karim Stores", "bank": "010271234", "number": "1234567890123"});
    let destination = Some(json!({"currency": "BDT", "bankAccount": account}));
    recorder.call("setPayoutDestination", Call { body: destination, ..none() }).await;
    let weekly = Some(json!({"currency": "BDT", "interval": "weekly", "minimum": 500}));
    recorder.call("setPayoutSchedule", Call { body: weekly, ..none() }).await;
    recorder.call("listPayoutDestinations", none()).await;
    recorder.next_sunday();
    let half = Some(json!({"amount": 500, "currency": "BDT"}));
    let call = Call { idempotency_key: Some("payout-2026-11-27"), body: half, ..none() };
    let payout = id_of(&recorder.call("createPayout", call).await);
    recorder.call("cancelPayout", Call { id: &payout, ..none() }).await;
    recorder.call("retrievePayout", Call { id: &payout, ..none() }).await;
    recorder.call("listPayouts", Call { query: "?limit=1", ..none() }).await;
    recorder.call("retrievePayoutStatement", Call { id: &payout, query: "?language=en", ..none() }).await;
    recorder.call("listPayoutTransactions", Call { id: &payout, query: "?limit=2", ..none() }).await;
    recorder.call("downloadPayoutTransactions", Call { id: &payout, query: "?limit=2", ..none() }).await;
    let refused = recorder.live.server.request(Method::POST, "/payments").json(&json!({"amount": 0}));
    assert_eq!(refused.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    eventually("the refused request to be logged", async || {
        let log = recorder.live.server.get("/requests?failed=true").await;
        log["items"].get(0).map(drop)
    })
    .await;
    recorder.call("listRequests", Call { query: "?failed=true&limit=1", ..none() }).await;

    recorder.call("listWebhooks", none()).await;
    let changes = Some(json!({"events": ["*"], "description": "the shop’s backend", "retries": "standard"}));
    recorder.call("updateWebhook", Call { id: &endpoint, body: changes, ..none() }).await;
    let kind = Some(json!({"event": "payment.refunded"}));
    let call = Call { id: &endpoint, idempotency_key: Some("test-1"), body: kind, ..none() };
    recorder.call("testWebhook", call).await;
    let since = Some(json!({"since": "2026-03-01T00:00:00Z"}));
    recorder.call("recoverWebhook", Call { id: &endpoint, body: since, ..none() }).await;
    let overlap = Some(json!({"overlapSeconds": 3600}));
    let call = Call { id: &endpoint, idempotency_key: Some("rotate-1"), body: overlap, ..none() };
    recorder.call("rotateWebhookSecret", call).await;
    recorder.call("removeWebhook", Call { id: &endpoint, ..none() }).await;
    let (payload, secret) = (r#"{"type":"test.ping"}"#, Stable::SECRET);
    let signature = Signer::new(Secret::new(secret).unwrap()).sign_at(payload.as_bytes(), 1_772_359_200).to_string();
    // The signature is old, so the tolerance is off.
    let body = json!({"payload": payload, "signature": signature, "secret": secret, "tolerance": 0});
    let verdict = recorder.call("verifySignature", Call { body: Some(body), ..none() }).await;
    assert_eq!(verdict["valid"], true);

    let demo = Some(json!({"amount": 250, "currency": "BDT", "description": "A cup of tea"}));
    let demo = id_of(&recorder.call("createDemoSession", Call { body: demo, ..none() }).await);
    let pay = Some(json!({"paymentMethod": "mfs", "phoneNumber": "01712345678"}));
    recorder.call("payCheckout", Call { id: &demo, body: pay, ..none() }).await;
    let disputed = Some(json!({"event": "disputed", "amount": 100}));
    recorder.call("simulatePayment", Call { id: &demo, body: disputed, ..none() }).await;
    let hour = Some(json!({"seconds": 3600}));
    recorder.call("advanceSandbox", Call { body: hour, ..none() }).await;
    recorder.call("retrieveDescription", none()).await;

    // Only real money can be refunded.
    let (sold, key) = (recorder.live.paid(750.0, "USD").await, recorder.live.key.clone());
    let part = Some(json!({"amount": 250, "reason": "A cup was broken"}));
    let call = Call { id: &sold, idempotency_key: Some("return-1017-cup"), body: part, key: Some(&key), ..none() };
    recorder.call("refundPayment", call).await;
    let own = recorder.live.server.new_key("Reset", "test");
    recorder.call("resetSandbox", Call { key: Some(&own), ..none() }).await;
    // In the order of the document.
    let names = operations(&recorder.document).map(|(_, _, it)| it["operationId"].as_str().unwrap().to_owned());
    let examples =
        names.map(|name| (name.clone(), recorder.examples.remove(&name).unwrap_or_else(|| panic!("{name}"))));
    stable.of(&serde_json::to_string_pretty(&examples.collect::<Map<_, _>>()).unwrap()) + "\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn the_references_examples_are_the_servers_answers() {
    let recorded = record().await;
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples.json"), &recorded).unwrap();
        return;
    }
    let (recorded, committed): (Value, Value) =
        (serde_json::from_str(&recorded).unwrap(), serde_json::from_str(EXAMPLES).unwrap());
    for (name, example) in recorded.as_object().unwrap() {
        assert_eq!(*example, committed[name], "{name} answers otherwise: write the file anew with UPDATE_EXAMPLES=1");
    }
    assert_eq!(recorded.as_object().unwrap().len(), committed.as_object().unwrap().len());
}

#[test]
fn the_examples_contain_only_publicly_known_secrets() {
    let secrets: Vec<_> =
        EXAMPLES.match_indices("whsec_").map(|(at, _)| &EXAMPLES[at..at + Stable::SECRET.len()]).collect();
    assert!(secrets.len() > 3 && secrets.iter().all(|secret| *secret == Stable::SECRET), "{secrets:?}");
    assert!(!EXAMPLES.contains("sk_"), "a key");
}
