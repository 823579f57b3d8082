//! The specification, a row a case, against the real server. The sections and rows bear the specification's own words; a
//! row without a case, or a case that fails, is named in the end.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use gateway_fakes::{Fault, bkash};
use payments_client::Event;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use webhook_verify::{Secret, Signer, Verifier};

use crate::{
    live::Live,
    receiver::{Manner, Receiver},
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

/// Every section with the first words of each of its rows and rules.
const SPECIFICATION: [(&str, &[&str]); 22] = [
    (
        "Payment",
        &[
            "id",
            "amount",
            "currency",
            "checkoutUrl",
            "merchantTransactionId",
            "customer",
            "metadata",
            "netAmount",
            "platformFeeAmount",
            "feePercentage",
            "refund",
            "status",
            "rawStatus",
            "isSimulated",
            "environment",
            "checkout_url, platform_fee, net_amount",
        ],
    ),
    (
        "Create-payment parameters",
        &[
            "amount",
            "success_url",
            "cancel_url",
            "currency",
            "description",
            "metadata",
            "customer",
            "In live mode, redirect URLs must use HTTPS",
        ],
    ),
    ("Refund", &["reason", "requiresManualSettlement"]),
    ("Account", &["workspace", "balance", "volume"]),
    ("Developer app", &["redirectUris", "webhookUrl into websiteUrl"]),
    ("Webhook endpoint", &["url", "events", "appId", "secret"]),
    ("Webhook delivery", &["del_<id>", "responseStatus and attempts", "truncated response body"]),
    ("Paginated list wrapper", &["List routes return a paginated wrapper"]),
    ("Mapping used by the status filter", &["pending", "completed"]),
    ("Transitions", &["create payment", "confirmed payment approval", "simulate on a test checkout session", "refund"]),
    ("Rules", &["Only paid can be refunded", "Test payments cannot be refunded", "Reconciled with retrieve"]),
    (
        "Endpoints",
        &[
            "POST /payments",
            "GET /payments/:id",
            "GET /payments",
            "POST /payments/:id/refund",
            "GET /account",
            "GET /account/balance",
            "GET /account/apps",
            "POST /webhooks",
            "GET /webhooks",
            "GET /webhooks/deliveries",
            "DELETE /webhooks/:id",
            "POST /webhooks/:id/test",
            "POST /webhooks/verify",
            "GET /checkout/:id",
            "POST /checkout/:id/simulate",
            "POST /checkout/:id/pay",
            "POST /checkout/demo-session",
            "Result of pay: live",
            "Result of pay: test",
        ],
    ),
    ("Idempotency", &["deduplicated for 24 hours per developer", "Idempotent-Replayed: true"]),
    (
        "Authentication",
        &[
            "Bearer",
            "x-api-key",
            "prefixes",
            "missing, malformed or revoked",
            "SHA-256, shown once, rotation",
            "sandbox key",
            "keyless routes",
            "payloads are signed",
        ],
    ),
    (
        "Event kinds",
        &[
            "payment.created",
            "payment.completed",
            "payment.refunded",
            "test.ping",
            "* receives every event",
            "No payment.failed",
        ],
    ),
    ("Request headers", &["X-Service-Signature", "X-Service-Event", "X-Service-Delivery"]),
    ("Body envelope", &["id", "event", "created_at", "data"]),
    ("Data shapes", &["the payment", "plus refund_reason", "test.ping", "wrapped"]),
    ("Signature", &["HMAC-SHA256 in hex", "t and v1", "raw body bytes", "tolerance", "verification failure reasons"]),
    ("Delivery", &["One attempt, 8 second timeout", "do not block the payment", "Every attempt is logged", "2xx"]),
    ("Errors", &["400", "401", "408", "429", "5xx", "Validation failure body", "Successful responses are JSON"]),
    (
        "Limits",
        &[
            "120 per minute",
            "X-RateLimit headers on every response",
            "429 with Retry-After",
            "keyless per address",
            "Signature age tolerance",
            "prefix /api/v1",
            "aliases are kept",
        ],
    ),
];

/// What became of the rows.
#[derive(Default)]
struct Report {
    seen: BTreeSet<(&'static str, &'static str)>,
    failed: Vec<String>,
}

impl Report {
    fn row(&mut self, section: &'static str, row: &'static str, holds: bool, found: &dyn std::fmt::Debug) {
        let is_known = SPECIFICATION.iter().any(|(known, rows)| *known == section && rows.contains(&row));
        assert!(is_known, "{section}: {row} is not in the table");
        self.seen.insert((section, row));
        if !holds {
            self.failed.push(format!("{section}: {row}: {found:?}"));
        }
    }

    fn end(self) {
        let all = SPECIFICATION.iter().flat_map(|(section, rows)| rows.iter().map(move |row| (*section, *row)));
        let missing: Vec<_> = all.filter(|row| !self.seen.contains(row)).collect();
        assert!(missing.is_empty(), "rows without a case: {missing:?}");
        assert!(self.failed.is_empty(), "{} rows fail:\n{}", self.failed.len(), self.failed.join("\n"));
    }
}

struct World {
    live: Live,
    receiver: Receiver,
    secret: String,
}

impl World {
    async fn new() -> Self {
        let live = Live::start_with("gateway-timeout = 1", &["--rate-limit", "0", "--keyless-rate-limit", "0"]).await;
        let receiver = Receiver::start(Manner::Answer(StatusCode::OK, "x".repeat(3000))).await;
        let body = json!({"url": receiver.url(), "events": "*"});
        let mut secret = String::new();
        for key in [SANDBOX_KEY, &live.key] {
            let request = live.server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(key).json(&body);
            let endpoint: Value = request.send().await.unwrap().json().await.unwrap();
            // Both keys' events are verified with the live endpoint's secret, the last.
            secret = endpoint["secret"].as_str().unwrap().to_owned();
        }
        Self { live, receiver, secret }
    }

    fn server(&self) -> &Server {
        &self.live.server
    }

    async fn ask(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = self.server().keyless(method, &format!("/api/v1{path}")).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// The events of a kind about a payment, as they were received.
    async fn events(&self, kind: &str, about: &str) -> Vec<Value> {
        let all = self.receiver.received().into_iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap());
        all.filter(|event| event["event"] == kind && event.to_string().contains(about)).collect()
    }

    async fn event(&self, kind: &str, about: &str) -> Value {
        eventually(kind, async || self.events(kind, about).await.pop()).await
    }
}

fn has(value: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| value.get(field).is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_does_what_each_row_of_the_specification_says() {
    let world = World::new().await;
    let mut report = Report::default();
    let slow = tokio::join!(a_hanging_endpoint(), a_body_that_does_not_arrive(world.server()));
    payments(&world, &mut report).await;
    transitions(&world, &mut report).await;
    account_and_webhooks(&world, &mut report).await;
    checkout(&world, &mut report).await;
    idempotency_and_authentication(&world, &mut report).await;
    events(&world, &mut report).await;
    errors_and_limits(&world, &mut report).await;
    let ((took, delivery), timeout) = slow;
    let is_one = delivery["attempts"] == 1 && delivery["status"] == "failed" && delivery["responseStatus"].is_null();
    report.row(
        "Delivery",
        "One attempt, 8 second timeout",
        is_one && (7..12).contains(&took.as_secs()),
        &(took, delivery),
    );
    report.row("Errors", "408", timeout.starts_with("HTTP/1.1 408"), &timeout);
    report.end();
}

async fn payments(world: &World, report: &mut Report) {
    let section = "Payment";
    let body = json!({"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
        "description": "Tea", "metadata": {"order_reference": "o-1"}, "customer": {"name": "Karim", "email": "k@example.com"}});
    let (status, payment) = world.ask(SANDBOX_KEY, Method::POST, "/payments", Some(&body)).await;
    let id = payment["id"].as_str().unwrap_or_default().to_owned();
    let fields = ["checkoutUrl", "platformFeeAmount", "feePercentage", "netAmount"];
    report.row("Endpoints", "POST /payments", status == 201 && has(&payment, &fields), &payment);
    report.row(section, "id", id.starts_with("pay_"), &payment["id"]);
    report.row(section, "amount", payment["amount"] == 750, &payment["amount"]);
    report.row(section, "currency", payment["currency"] == "BDT", &payment["currency"]);
    let page = payment["checkoutUrl"].as_str().unwrap_or_default();
    let shown = reqwest::Client::builder().no_proxy().build().unwrap().get(page).send().await.unwrap().status();
    report.row(section, "checkoutUrl", shown == 200, &page);
    report.row(section, "merchantTransactionId", payment["merchantTransactionId"].is_string(), &payment);
    report.row(
        section,
        "customer",
        payment["customer"]["name"] == "Karim" && payment["customer"]["phone"].is_null(),
        &payment,
    );
    report.row(section, "metadata", payment["metadata"] == body["metadata"], &payment["metadata"]);
    report.row(section, "netAmount", payment["netAmount"] == 712.5, &payment["netAmount"]);
    report.row(section, "platformFeeAmount", payment["platformFeeAmount"] == 37.5, &payment["platformFeeAmount"]);
    report.row(section, "feePercentage", payment["feePercentage"] == 5, &payment["feePercentage"]);
    report.row(section, "status", payment["status"] == "pending", &payment["status"]);
    report.row(section, "rawStatus", payment["rawStatus"] == "created", &payment["rawStatus"]);
    report.row(section, "isSimulated", payment["isSimulated"] == true, &payment["isSimulated"]);
    report.row(section, "environment", payment["environment"] == "test", &payment["environment"]);
    let same = |new: &str, old: &str| payment[new] == payment[old] && !payment[old].is_null();
    let aliases = same("checkoutUrl", "checkout_url")
        && same("platformFeeAmount", "platform_fee")
        && same("netAmount", "net_amount");
    report.row(section, "checkout_url, platform_fee, net_amount", aliases, &payment);
    report.row("Limits", "aliases are kept", aliases, &payment);
    report.row(
        "Transitions",
        "create payment",
        payment["rawStatus"] == "created" && payment["status"] == "pending",
        &payment,
    );

    let (status, read) = world.ask(SANDBOX_KEY, Method::GET, &format!("/payments/{id}"), None).await;
    report.row("Endpoints", "GET /payments/:id", status == 200 && read == payment, &read);
    let (status, list) = world.ask(SANDBOX_KEY, Method::GET, "/payments?page=1&limit=1&status=pending", None).await;
    report.row("Endpoints", "GET /payments", status == 200 && list["items"][0] == payment, &list);
    let wrapper = has(&list, &["items", "total", "page", "limit"]) && list["limit"] == 1;
    report.row("Paginated list wrapper", "List routes return a paginated wrapper", wrapper, &list);

    let section = "Create-payment parameters";
    let refuses = async |key: &str, field: &str, values: &[Value]| {
        for value in values {
            let mut wrong = body.clone();
            wrong[field] = value.clone();
            let (status, answer) = world.ask(key, Method::POST, "/payments", Some(&wrong)).await;
            let named = answer["message"][0].as_str().is_some_and(|sentence| sentence.starts_with(field));
            if status != 400 || !named {
                return Err((value.clone(), status, answer));
            }
        }
        Ok(())
    };
    for (field, values) in [
        ("amount", vec![json!(0), json!(-1), json!("5"), json!(1.005), Value::Null]),
        ("success_url", vec![Value::Null, json!("/paid"), json!("javascript:alert(1)")]),
        ("cancel_url", vec![Value::Null, json!("shop.example")]),
        ("currency", vec![json!("EUR"), json!(5)]),
        ("description", vec![json!(5)]),
        ("metadata", vec![json!([]), json!("x")]),
        ("customer", vec![json!("Karim"), json!({"name": 5})]),
    ] {
        let outcome = refuses(SANDBOX_KEY, field, &values).await;
        report.row(section, field, outcome.is_ok(), &outcome);
    }
    let insecure = refuses(&world.live.key, "success_url", &[json!("http://shop.example/paid")]).await;
    let mut local = body.clone();
    local["success_url"] = json!("http://localhost:3000/paid");
    let (status, answer) = world.ask(&world.live.key, Method::POST, "/payments", Some(&local)).await;
    report.row(
        section,
        "In live mode, redirect URLs must use HTTPS",
        insecure.is_ok() && status == 201,
        &(insecure, answer),
    );
}

async fn transitions(world: &World, report: &mut Report) {
    let live = &world.live;
    let bdt = live.paid(100.0, "BDT").await;
    let paid = live.payment(&bdt).await;
    let completed = world.event("payment.completed", &bdt).await;
    let holds = paid["status"] == "completed" && paid["rawStatus"] == "paid" && completed["data"] == paid;
    report.row("Transitions", "confirmed payment approval", holds, &(&paid, &completed));
    let (_, list) = world.ask(&live.key, Method::GET, "/payments?status=completed", None).await;
    report.row("Mapping used by the status filter", "completed", list["items"][0]["id"] == bdt.as_str(), &list);
    let open = live.create(5.0, "BDT").await;
    live.pay(&open).await;
    let (_, list) = world.ask(&live.key, Method::GET, "/payments?status=pending", None).await;
    let raw: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|payment| &payment["rawStatus"]).collect();
    let both = raw.contains(&&json!("processing")) && raw.contains(&&json!("created"));
    report.row("Mapping used by the status filter", "pending", both, &raw);
    let (status, refused) = world.ask(&live.key, Method::POST, &format!("/payments/{open}/refund"), None).await;
    report.row("Rules", "Only paid can be refunded", status == 409, &refused);

    let refund = json!({"reason": "damaged"});
    let (status, refunded) =
        world.ask(&live.key, Method::POST, &format!("/payments/{bdt}/refund"), Some(&refund)).await;
    report.row("Endpoints", "POST /payments/:id/refund", status == 200 && refunded["refund"].is_object(), &refunded);
    report.row("Payment", "refund", paid.get("refund").is_none() && refunded.get("refund").is_some(), &refunded);
    report.row("Refund", "reason", refunded["refund"]["reason"] == "damaged", &refunded["refund"]);
    let event = world.event("payment.refunded", &bdt).await;
    let holds = refunded["status"] == "refunded" && event["data"]["refund_reason"] == "damaged";
    report.row("Transitions", "refund", holds, &event);
    report.row("Event kinds", "payment.refunded", holds, &event);
    let mut data = event["data"].clone();
    data.as_object_mut().unwrap().remove("refund_reason");
    report.row("Data shapes", "plus refund_reason", data == refunded, &event);
    let usd = live.paid(10.0, "USD").await;
    let (_, card) = world.ask(&live.key, Method::POST, &format!("/payments/{usd}/refund"), None).await;
    let by_hand = (&refunded["refund"]["requiresManualSettlement"], &card["refund"]["requiresManualSettlement"]);
    report.row("Refund", "requiresManualSettlement", by_hand == (&json!(true), &json!(false)), &by_hand);

    let test = world.server().create(&payment_of(&json!(5))).await;
    let path = format!("/checkout/{}/simulate", test["id"].as_str().unwrap());
    let (_, simulated) = world.ask(SANDBOX_KEY, Method::POST, &path, Some(&json!({"status": "completed"}))).await;
    let (forbidden, _) = world.ask(SANDBOX_KEY, Method::POST, &format!("/checkout/{open}/simulate"), None).await;
    let holds = simulated["status"] == "paid" && forbidden == 403;
    report.row("Transitions", "simulate on a test checkout session", holds, &(simulated, forbidden));
    let path = format!("/payments/{}/refund", test["id"].as_str().unwrap());
    let (status, refused) = world.ask(SANDBOX_KEY, Method::POST, &path, None).await;
    report.row("Rules", "Test payments cannot be refunded", status == 409, &refused);
    report.row("Rules", "Reconciled with retrieve", live.payment(&open).await["status"] == "pending", &open);
}

async fn account_and_webhooks(world: &World, report: &mut Report) {
    let key = SANDBOX_KEY;
    let (status, account) = world.ask(key, Method::GET, "/account", None).await;
    let workspace = &account["workspace"];
    report.row(
        "Endpoints",
        "GET /account",
        status == 200 && has(&account, &["workspace", "balance", "volume"]),
        &account,
    );
    report.row("Account", "workspace", has(workspace, &["id", "name", "slug", "website", "status"]), workspace);
    report.row("Account", "volume", has(&account["volume"], &["bdt", "usd", "total_payments"]), &account["volume"]);
    let (status, balance) = world.ask(key, Method::GET, "/account/balance", None).await;
    report.row("Endpoints", "GET /account/balance", status == 200, &balance);
    report.row("Account", "balance", has(&balance, &["bdt_balance", "usd_balance"]), &balance);
    let workspace = workspace["id"].as_str().unwrap();
    let uri = ["--redirect-uri", "https://shop.example/back", "--webhook-url", "https://shop.example/hook"];
    world.live.administer(&[&["apps", "create", "--workspace", workspace, "--name", "Till"], &uri[..]].concat());
    let (status, apps) = world.ask(key, Method::GET, "/account/apps", None).await;
    report.row("Endpoints", "GET /account/apps", status == 200 && apps.is_array(), &apps);
    report.row("Developer app", "redirectUris", apps[0]["redirectUris"][0] == "https://shop.example/back", &apps);
    let mirrors =
        apps[0]["websiteUrl"] == apps[0]["webhookUrl"] && apps[0]["webhookUrl"] == "https://shop.example/hook";
    report.row("Developer app", "webhookUrl into websiteUrl", mirrors, &apps);

    let section = "Webhook endpoint";
    let body = json!({"url": "http://127.0.0.1:9/hook", "events": ["payment.created"], "appId": apps[0]["id"]});
    let (status, endpoint) = world.ask(key, Method::POST, "/webhooks", Some(&body)).await;
    let (listed, endpoints) = world.ask(key, Method::GET, "/webhooks", None).await;
    let secret = endpoint["secret"].as_str().unwrap_or_default();
    report.row("Endpoints", "POST /webhooks", status == 201 && !secret.is_empty(), &endpoint);
    let is_listed = endpoints.as_array().is_some_and(|all| all.contains(&endpoint));
    report.row("Endpoints", "GET /webhooks", listed == 200 && is_listed, &endpoints);
    report.row(section, "url", endpoint["url"] == body["url"], &endpoint);
    report.row(section, "events", endpoint["events"] == body["events"], &endpoint);
    report.row(section, "appId", endpoint["appId"] == apps[0]["id"], &endpoint);
    report.row(section, "secret", secret.starts_with("whsec_") && is_listed, &endpoint);
    let id = endpoint["id"].as_str().unwrap();
    let (status, ping) = world.ask(key, Method::POST, &format!("/webhooks/{id}/test"), None).await;
    report.row("Endpoints", "POST /webhooks/:id/test", status == 200 && ping["event"] == "test.ping", &ping);
    report.row("Event kinds", "test.ping", ping["payload"]["event"] == "test.ping", &ping);
    let data = &ping["payload"]["data"];
    report.row("Data shapes", "test.ping", has(data, &["event", "timestamp", "developer_id", "message"]), data);
    let (status, list) =
        world.ask(key, Method::GET, &format!("/webhooks/deliveries?webhookId={id}&limit=5"), None).await;
    report.row("Endpoints", "GET /webhooks/deliveries", status == 200 && list["items"][0]["webhookId"] == id, &list);
    let (status, removed) = world.ask(key, Method::DELETE, &format!("/webhooks/{id}"), None).await;
    let says = removed["success"] == true && removed["message"].is_string();
    report.row("Endpoints", "DELETE /webhooks/:id", status == 200 && says, &removed);

    let delivered = eventually("a delivery that was answered", async || {
        let (_, list) = world.ask(key, Method::GET, "/webhooks/deliveries?limit=100", None).await;
        list["items"].as_array().unwrap().iter().find(|one| one["status"] == "success").cloned()
    })
    .await;
    let section = "Webhook delivery";
    report.row(section, "del_<id>", delivered["id"].as_str().unwrap().starts_with("del_"), &delivered["id"]);
    let both = delivered["responseStatus"] == 200
        && delivered["statusCode"] == 200
        && delivered["attempts"] == 1
        && delivered["attemptNumber"] == 1;
    report.row(section, "responseStatus and attempts", both, &delivered);
    let kept = delivered["responseBody"].as_str().unwrap_or_default().len();
    report.row(section, "truncated response body", kept == 1024, &kept);
    report.row("Delivery", "Every attempt is logged", both && kept == 1024, &delivered);
    report.row("Delivery", "2xx", delivered["status"] == "success", &delivered);
}

async fn checkout(world: &World, report: &mut Report) {
    let live = &world.live;
    let body = json!({"amount": 42, "currency": "USD", "description": "Demo"});
    let (status, demo) = world.ask("", Method::POST, "/checkout/demo-session", Some(&body)).await;
    let id = demo["id"].as_str().unwrap_or_default().to_owned();
    report.row("Endpoints", "POST /checkout/demo-session", status == 201 && demo["amount"] == 42, &demo);
    let event = world.event("payment.created", &id).await;
    let wrapped = event["data"]["event"] == "payment.created" && event["data"]["payment"]["id"] == id.as_str();
    report.row("Data shapes", "wrapped", wrapped && event["data"].as_object().unwrap().len() == 2, &event);
    let (status, session) = world.ask("", Method::GET, &format!("/checkout/{id}"), None).await;
    report.row("Endpoints", "GET /checkout/:id", status == 200 && session["id"] == id.as_str(), &session);
    let (status, result) = world.ask("", Method::POST, &format!("/checkout/{id}/pay"), Some(&json!({}))).await;
    let shape = has(&result, &["status", "redirectUrl", "success"]);
    report.row("Endpoints", "Result of pay: test", status == 200 && shape, &result);
    let mut ended = Vec::new();
    for (action, status) in [("success", "paid"), ("fail", "failed"), ("cancel", "cancelled")] {
        let payment = world.server().create(&payment_of(&json!(5))).await;
        let path = format!("/checkout/{}/simulate", payment["id"].as_str().unwrap());
        let (_, result) = world.ask("", Method::POST, &path, Some(&json!({"action": action}))).await;
        ended.push(result["status"] == status);
    }
    report.row("Endpoints", "POST /checkout/:id/simulate", ended.iter().all(|holds| *holds), &ended);
    let real = live.create(5.0, "BDT").await;
    let pay = json!({"paymentMethod": "mfs", "phoneNumber": bkash::WALLET, "redirectUrl": "https://shop.example"});
    let (status, result) = world.ask("", Method::POST, &format!("/checkout/{real}/pay"), Some(&pay)).await;
    report.row("Endpoints", "POST /checkout/:id/pay", status == 200, &result);
    report.row(
        "Endpoints",
        "Result of pay: live",
        has(&result, &["redirectUrl"]) && result.get("success").is_none(),
        &result,
    );
}

async fn idempotency_and_authentication(world: &World, report: &mut Report) {
    let server = world.server();
    let post = async |key: &str| {
        let request = server.keyless(Method::POST, "/api/v1/payments").header("idempotency-key", "conformance-1");
        let answer = request.bearer_auth(key).json(&payment_of(&json!(3))).send().await.unwrap();
        let replayed = answer.headers().get("idempotent-replayed").map(|value| value.to_str().unwrap().to_owned());
        (replayed, answer.text().await.unwrap())
    };
    let (first, second, other) = (post(SANDBOX_KEY).await, post(SANDBOX_KEY).await, post(&world.live.key).await);
    let holds = first.1 == second.1 && other.1 != first.1;
    report.row("Idempotency", "deduplicated for 24 hours per developer", holds, &(&first, &second, &other));
    let marked = first.0.is_none() && second.0.as_deref() == Some("true");
    report.row("Idempotency", "Idempotent-Replayed: true", marked, &(first.0, second.0));

    let section = "Authentication";
    let with = async |name: &str, value: String| {
        server.keyless(Method::GET, "/api/v1/account").header(name, value).send().await.unwrap().status().as_u16()
    };
    let bearer = with("authorization", format!("Bearer {SANDBOX_KEY}")).await;
    report.row(section, "Bearer", bearer == 200, &bearer);
    let header = with("x-api-key", SANDBOX_KEY.into()).await;
    report.row(section, "x-api-key", header == 200, &header);
    let live_key = &world.live.key;
    report.row(section, "prefixes", live_key.starts_with("sk_live_"), &"a live key's prefix");
    let workspace = world.live.administer(&["workspaces", "create", "--name", "Conformance"]);
    let key = world.live.administer(&["keys", "create", "--workspace", &workspace, "--environment", "test"]);
    let listed = world.live.administer(&["keys", "list"]);
    let id = listed.lines().find(|line| line.contains(&workspace)).unwrap().split(' ').next().unwrap().to_owned();
    let before = with("x-api-key", key.clone()).await;
    let rotated = world.live.administer(&["keys", "rotate", &id]);
    let (after, new) = (with("x-api-key", key.clone()).await, with("x-api-key", rotated).await);
    let mut wrong = vec![after];
    for bad in ["", "sk_test_unknown", "nonsense"] {
        wrong.push(with("x-api-key", bad.into()).await);
    }
    wrong.push(server.keyless(Method::GET, "/api/v1/account").send().await.unwrap().status().as_u16());
    report.row(section, "missing, malformed or revoked", wrong.iter().all(|status| *status == 401), &wrong);
    report.row("Errors", "401", wrong.iter().all(|status| *status == 401), &wrong);
    let hidden = !listed.contains(&key) && (before, new) == (200, 200);
    report.row(section, "SHA-256, shown once, rotation", hidden, &(before, after, new));
    report.row(section, "sandbox key", bearer == 200, &bearer);
    let verify = json!({"payload": "a", "signature": "t=1,v1=00", "secret": "s"});
    let answer = server.keyless(Method::POST, "/api/v1/webhooks/verify").json(&verify).send().await.unwrap();
    report.row(section, "keyless routes", answer.status() == 200, &answer.status());
}

async fn events(world: &World, report: &mut Report) {
    let id = world.live.create(5.0, "BDT").await;
    let event = world.event("payment.created", &id).await;
    let payment = world.live.payment(&id).await;
    report.row("Event kinds", "payment.created", event["data"]["id"] == id.as_str(), &event);
    report.row("Data shapes", "the payment", event["data"] == payment, &event);
    let completed = world.receiver.received().iter().any(|one| one.headers["x-service-event"] == "payment.completed");
    report.row("Event kinds", "payment.completed", completed, &"payment.completed");
    let kinds: BTreeSet<String> = world
        .receiver
        .received()
        .iter()
        .map(|one| one.headers["x-service-event"].to_str().unwrap().to_owned())
        .collect();
    let all = ["payment.created", "payment.completed", "payment.refunded"].iter().all(|kind| kinds.contains(*kind));
    report.row("Event kinds", "* receives every event", all, &kinds);
    report.row("Event kinds", "No payment.failed", !kinds.contains("payment.failed"), &kinds);

    let received = world.receiver.received();
    let one = received.iter().find(|one| String::from_utf8_lossy(&one.body).contains(&id)).unwrap();
    let header = one.headers["x-service-signature"].to_str().unwrap();
    let verifier = Verifier::new(Secret::new(&world.secret).unwrap());
    let verified = verifier.verify(header, &one.body);
    let form = header.split_once(",v1=").is_some_and(|(time, hex)| {
        time.strip_prefix("t=").is_some_and(|t| t.parse::<u64>().is_ok()) && hex.len() == 64
    });
    report.row("Request headers", "X-Service-Signature", form, &header);
    report.row("Request headers", "X-Service-Event", one.headers["x-service-event"] == "payment.created", &one.headers);
    let delivery = one.headers["x-service-delivery"].to_str().unwrap();
    report.row("Request headers", "X-Service-Delivery", delivery.starts_with("del_"), &delivery);
    report.row("Body envelope", "id", event["id"].as_str().unwrap().starts_with("evt_"), &event);
    report.row("Body envelope", "event", event["event"] == "payment.created", &event);
    report.row("Body envelope", "created_at", event["created_at"].as_str().unwrap().ends_with('Z'), &event);
    report.row("Body envelope", "data", event["data"].is_object(), &event);
    report.row("Signature", "HMAC-SHA256 in hex", verified.is_ok(), &"by the library, which has RFC 4231's vectors");
    report.row("Signature", "t and v1", form, &header);
    let read = verified.ok().and_then(|verified| Event::from_verified(verified).ok());
    report.row("Authentication", "payloads are signed", read.is_some(), &"the event is read from verified bytes only");
    let respaced = String::from_utf8_lossy(&one.body).replacen(':', ": ", 1);
    report.row("Signature", "raw body bytes", verifier.verify(header, respaced.as_bytes()).is_err(), &respaced);
    let check = async |signature: &str, secret: &str, tolerance: Option<u64>| {
        let mut body = json!({"payload": String::from_utf8_lossy(&one.body), "signature": signature, "secret": secret});
        if let Some(tolerance) = tolerance {
            body["tolerance"] = tolerance.into();
        }
        let request = world.server().keyless(Method::POST, "/api/v1/webhooks/verify").json(&body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let signed_at = |time: u64| Signer::new(Secret::new(&world.secret).unwrap()).sign_at(&one.body, time).to_string();
    let mut ages = Vec::new();
    for (time, tolerance, valid) in
        [(now - 290, None, true), (now - 310, None, false), (now + 310, None, false), (now - 9999, Some(0), true)]
    {
        ages.push(check(&signed_at(time), &world.secret, tolerance).await["valid"] == valid);
    }
    report.row("Signature", "tolerance", ages.iter().all(|holds| *holds), &ages);
    report.row("Limits", "Signature age tolerance", ages.iter().all(|holds| *holds), &ages);
    let reasons = [
        check(header, "", None).await["reason"].clone(),
        check("t=x", &world.secret, None).await["reason"].clone(),
        check(&signed_at(1), &world.secret, None).await["reason"].clone(),
        check(&header.replace("v1=", "v1=0"), &world.secret, None).await["reason"].clone(),
        check(header, &world.secret, None).await["valid"].clone(),
    ];
    let expected =
        json!(["missing_secret", "malformed_header", "timestamp_outside_tolerance", "signature_mismatch", true]);
    report.row("Signature", "verification failure reasons", json!(reasons) == expected, &reasons);
    report.row("Endpoints", "POST /webhooks/verify", reasons[4] == true, &reasons);
}

async fn errors_and_limits(world: &World, report: &mut Report) {
    let server = world.server();
    let (status, invalid) = world.ask(SANDBOX_KEY, Method::POST, "/payments", Some(&json!({"amount": "x"}))).await;
    report.row("Errors", "400", status == 400, &invalid);
    let all = invalid["message"].as_array().is_some_and(|sentences| sentences.len() == 3);
    let body = invalid["statusCode"] == 400 && all && invalid["error"] == "Bad Request";
    report.row("Errors", "Validation failure body", body, &invalid);
    let answer = server.request(Method::GET, "/payments").send().await.unwrap();
    report.row(
        "Errors",
        "Successful responses are JSON",
        answer.headers()["content-type"] == "application/json",
        &answer,
    );
    let id = world.live.create(5.0, "BDT").await;
    world.live.bkash.faults().next("create", Fault::ErrorBefore);
    let path = format!("/api/v1/checkout/{id}/pay");
    let answer = server.keyless(Method::POST, &path).send().await.unwrap();
    let retryable = answer.status() == 503 && answer.headers().contains_key("retry-after");
    report.row("Errors", "5xx", retryable, &answer);
    let outside = server.keyless(Method::GET, "/payments").send().await.unwrap().status();
    report.row("Limits", "prefix /api/v1", outside == 404, &outside);

    let limited = Server::start_with(&["--keyless-rate-limit", "3", "--rate-limit", "120"]);
    let ask = |path: &str| limited.keyless(Method::GET, path).bearer_auth(SANDBOX_KEY).send();
    let first = ask("/api/v1/account").await.unwrap();
    let count = |answer: &reqwest::Response, name: &str| -> Option<u64> {
        answer.headers().get(name)?.to_str().ok()?.parse().ok()
    };
    let (limit, left) = (count(&first, "x-ratelimit-limit"), count(&first, "x-ratelimit-remaining"));
    report.row("Limits", "120 per minute", (limit, left) == (Some(120), Some(119)), &(limit, left));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(limited.keyless(Method::GET, "/api/v1/checkout/pay_0").send().await.unwrap());
    }
    let refused = limited.keyless(Method::GET, "/api/v1/checkout/pay_0").send().await.unwrap();
    let wait = count(&refused, "retry-after");
    let holds = refused.status() == 429 && wait.is_some_and(|wait| (1..=60).contains(&wait));
    report.row("Limits", "keyless per address", statuses.iter().all(|one| one.status() == 404) && holds, &refused);
    let unknown = limited.keyless(Method::GET, "/nowhere").send().await.unwrap();
    let keyless = limited.keyless(Method::GET, "/api/v1/account").send().await.unwrap();
    let everywhere = statuses
        .iter()
        .chain([&refused, &unknown, &keyless])
        .all(|answer| count(answer, "x-ratelimit-limit").is_some() && count(answer, "x-ratelimit-remaining").is_some());
    report.row("Limits", "X-RateLimit headers on every response", everywhere, &(unknown, keyless));
    let mut last = first;
    for _ in 0..120 {
        last = ask("/api/v1/account").await.unwrap();
    }
    let wait = count(&last, "retry-after");
    let holds = last.status() == 429 && wait.is_some_and(|wait| (1..=60).contains(&wait));
    report.row("Limits", "429 with Retry-After", holds, &last);
    report.row("Errors", "429", holds, &last);
    let begun = Instant::now();
    let hanging = Receiver::start(Manner::Hang).await;
    let body = json!({"url": hanging.url(), "events": "*"});
    world.ask(SANDBOX_KEY, Method::POST, "/webhooks", Some(&body)).await;
    let payment = server.create(&payment_of(&json!(5))).await;
    let prompt = begun.elapsed() < Duration::from_secs(3) && payment["status"] == "pending";
    report.row("Delivery", "do not block the payment", prompt, &begun.elapsed());
}

/// How long a ping to an endpoint that never answers takes, and what is logged of it.
async fn a_hanging_endpoint() -> (Duration, Value) {
    let server = Server::start();
    let receiver = Receiver::start(Manner::Hang).await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    let begun = Instant::now();
    let delivery = eventually("the attempt to end", async || {
        let answer = server.request(Method::GET, "/webhooks/deliveries").send().await.unwrap();
        let list: Value = answer.json().await.unwrap();
        (list["items"][0]["status"] != "pending").then(|| list["items"][0].clone())
    })
    .await;
    let took = begun.elapsed();
    assert_eq!(receiver.received().len(), 1);
    (took, delivery)
}

async fn a_body_that_does_not_arrive(server: &Server) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /api/v1/payments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {SANDBOX_KEY}\r\n\
         content-type: application/json\r\ncontent-length: 10\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}
