//! Every error code over real HTTP: a table of requests with their status, code and invalid fields.

mod limits;
mod payouts;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;
use gateway_fakes::Fault;
use payments_core::{ErrorCode, Timestamp};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    engine::{Engine, run_sql},
    live::Live,
    receiver::{Receiver, Reply},
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

/// Codes without a row, and the reasons.
const NO_REQUEST: [(ErrorCode, &str); 7] = [
    (ErrorCode::ApiKeyLimitReached, "only the operator's commands create API keys"),
    (ErrorCode::InternalError, "it needs a fault of the server; a test of the listener has a handler that panics"),
    (ErrorCode::WorkspaceNotFound, "every API key has a workspace, and none is ever removed"),
    (ErrorCode::RefundCapExceeded, "only a person's role has a cap; see the tests of people"),
    (ErrorCode::CrossSiteRequest, "only a person's browser has a session; see the tests of people"),
    (ErrorCode::ConcurrentChange, "32 tries in a row must lose against other requests"),
    (
        ErrorCode::OutcomeUnknown,
        "the database must go away during a commit and stay away; see the tests of lost commits",
    ),
];

/// The rows so far.
#[derive(Default)]
struct Table {
    codes: BTreeSet<String>,
}

impl Table {
    /// Sends a request that must get this status, this code and these invalid fields.
    async fn row(&mut self, request: RequestBuilder, status: u16, code: &str, fields: &[(&str, &str)]) {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{code}");
        self.body(&answer.text().await.unwrap(), status, code, fields);
    }

    fn body(&mut self, text: &str, status: u16, code: &str, fields: &[(&str, &str)]) {
        let body: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{code}: {error} in {text}"));
        let reason = StatusCode::from_u16(status).unwrap().canonical_reason().unwrap();
        assert_eq!((&body["statusCode"], &body["error"]), (&json!(status), &json!(reason)), "{text}");
        assert_eq!(body["code"], code, "{text}");
        let known = ErrorCode::known(code).unwrap_or_else(|| panic!("{code} is not a code"));
        assert_eq!(known.status(), Some(status), "{code}");
        let found: Vec<(&str, &str)> = body["fields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| (field["field"].as_str().unwrap(), field["code"].as_str().unwrap()))
            .collect();
        assert_eq!(found, fields, "{text}");
        // `message` contains each field's sentence, which begins with the field's name.
        for (index, (field, _)) in fields.iter().enumerate() {
            let sentence = body["fields"][index]["message"].as_str().unwrap();
            assert!(sentence.starts_with(field) && body["message"][index] == sentence, "{text}");
        }
        // The specification's fields come first.
        let mut names = vec!["statusCode", "message", "error", "code"];
        names.extend((!fields.is_empty()).then_some("fields"));
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), names, "{text}");
        self.codes.insert(code.to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_code_has_a_request_that_returns_it() {
    let table = &mut Table::default();
    let live = Live::start_with("gateway-timeout = 1", &["--max-webhook-endpoints", "1"]).await;
    // The server waits long for a body, so all other rows run meanwhile.
    let address = live.server.address().to_owned();
    let slow = tokio::spawn(async move { raw(&address, "content-length: 10\r\n\r\n{", false).await });
    let incomplete = raw(live.server.address(), "content-length: 10\r\n\r\n{", true).await;
    table.body(&incomplete, 400, "body_incomplete", &[]);
    invalid_requests(table, &live.server).await;
    invalid_fields(table, &live).await;
    unknown_ids(table, &live.server).await;
    states(table, &live).await;
    webhooks(table, &live.server).await;
    limits::rows(table, &live.server).await;
    gateways(table, &live).await;
    payouts::rows(table, &live).await;
    a_key_in_progress(table).await;
    other_servers(table).await;
    table.body(&slow.await.unwrap(), 408, "request_timeout", &[]);

    let unprovoked: BTreeSet<String> = NO_REQUEST.iter().map(|(code, _)| code.to_string()).collect();
    assert!(table.codes.is_disjoint(&unprovoked), "{:?}", table.codes.intersection(&unprovoked));
    let all: BTreeSet<String> = ErrorCode::KNOWN.iter().map(ToString::to_string).collect();
    let missing: Vec<_> =
        all.iter().filter(|code| !table.codes.contains(*code) && !unprovoked.contains(*code)).collect();
    assert!(missing.is_empty(), "codes without a row: {missing:?}");
}

/// Creates a payment over a bare socket and returns the body of the response. If `ends`, closes the sending side.
async fn raw(address: &str, rest: &str, ends: bool) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-api-key: {SANDBOX_KEY}\r\n\
         content-type: application/json\r\n{rest}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    if ends {
        stream.shutdown().await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}")).1.to_owned()
}

/// Requests that are invalid as a whole.
async fn invalid_requests(table: &mut Table, server: &Server) {
    let create = || server.request(Method::POST, "/payments");
    let json = |body: &str| create().header("content-type", "application/json").body(body.to_owned());
    for body in ["", "{", "[]", "null", "{\"amount\":1,}"] {
        table.row(json(body), 400, "json_invalid", &[]).await;
    }
    table.row(create().header("content-type", "text/plain").body("{}"), 400, "content_type_invalid", &[]).await;
    let valid = payment_of(&json!(5));
    for key in ["", "two words", &"x".repeat(256)] {
        table.row(create().header("idempotency-key", key).json(&valid), 400, "idempotency_key_invalid", &[]).await;
    }
    let twice = create().header("idempotency-key", "a").header("idempotency-key", "b").json(&valid);
    table.row(twice, 400, "idempotency_key_invalid", &[]).await;
    table.row(json(&" ".repeat(70_000)), 413, "body_too_large", &[]).await;

    let get = |path: &str| server.keyless(Method::GET, path);
    for path in ["/index.html", "/api/v2/payments", "/api/v1/nothing"] {
        table.row(get(path), 404, "route_not_found", &[]).await;
    }
    table.row(server.request(Method::DELETE, "/payments"), 405, "method_not_allowed", &[]).await;
    table.row(get(&format!("/{}", "x".repeat(9000))), 414, "uri_too_long", &[]).await;
    table.row(get("/healthz").header("x-long", "x".repeat(20_000)), 431, "headers_too_large", &[]).await;
    table.row(get("/healthz").header("host", "evil.example"), 421, "host_unknown", &[]).await;
    table.row(get("/api/v1/account"), 401, "unauthorized", &[]).await;
    table.row(get("/api/v1/account").bearer_auth("sk_test_unknown"), 401, "unauthorized", &[]).await;
    let restricted = server.new_key_with("Till", "test", &["--scope", "payments:read,webhooks:read"]);
    table.row(get("/api/v1/account").bearer_auth(&restricted), 403, "permission_missing", &[]).await;
    let live = server.new_key("Shop", "live");
    let reset = server.keyless(Method::POST, "/api/v1/sandbox/reset").bearer_auth(&live);
    table.row(reset, 403, "own_sandbox_required", &[]).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let soon = Timestamp::from_millis(i64::try_from(now.as_millis()).unwrap() + 1_500).unwrap().to_string();
    let expiring = server.new_key_with("Till", "test", &["--expires", &soon]);
    eventually("the key to expire", async || {
        let answer = get("/api/v1/account").bearer_auth(&expiring).send().await.unwrap();
        (answer.status() == 401).then_some(())
    })
    .await;
    table.row(get("/api/v1/account").bearer_auth(&expiring), 401, "api_key_expired", &[]).await;
}

/// Requests with invalid fields. The error has the fields' code, or `validation_failed` if they have several.
async fn invalid_fields(table: &mut Table, live: &Live) {
    let server = &live.server;
    let valid = payment_of(&json!(5));
    let with = |name: &str, value: Value| {
        let mut body = valid.clone();
        body[name] = value;
        server.request(Method::POST, "/payments").json(&body)
    };
    let long = "x".repeat(3000);
    for (name, value, code) in [
        ("amount", json!(0), "amount_invalid"),
        ("amount", json!("5"), "amount_invalid"),
        ("amount", json!(0.001), "amount_invalid"),
        ("amount", json!(1e15), "amount_invalid"),
        ("amount", Value::Null, "field_missing"),
        ("currency", json!("EUR"), "currency_invalid"),
        ("success_url", json!("/paid"), "url_invalid"),
        ("success_url", json!("ftp://shop.example/"), "url_invalid"),
        ("success_url", json!(5), "field_invalid"),
        ("description", json!(long), "field_too_long"),
        ("metadata", json!([]), "field_invalid"),
        ("metadata", json!({"a": "x".repeat(20_000)}), "metadata_too_large"),
        ("curency", json!("USD"), "field_unknown"),
    ] {
        table.row(with(name, value), 400, code, &[(name, code)]).await;
    }
    let insecure = json!({"amount": 5, "success_url": "http://shop.example/", "cancel_url": "https://shop.example/"});
    let insecure = live.request(Method::POST, "/payments").json(&insecure);
    table.row(insecure, 400, "url_not_https", &[("success_url", "url_not_https")]).await;
    let twice = server.request(Method::POST, "/payments").header("content-type", "application/json");
    let twice = twice.body(r#"{"amount":1,"amount":2}"#);
    table.row(twice, 400, "field_repeated", &[("amount", "field_repeated")]).await;
    let mut two_names = valid.clone();
    (two_names["customerName"], two_names["customer"]) = (json!("Karim"), json!({"name": "Rahim"}));
    let two_names = server.request(Method::POST, "/payments").json(&two_names);
    table.row(two_names, 400, "fields_disagree", &[("customerName", "fields_disagree")]).await;
    let mut order = valid.clone();
    (order["merchantTransactionId"], order["merchantTransactionIdMustBeUnique"]) = (json!("order-1"), json!(true));
    let order = || server.request(Method::POST, "/payments").json(&order);
    assert_eq!(order().send().await.unwrap().status(), 201);
    table.row(order(), 409, "merchant_transaction_id_used", &[]).await;

    // Several invalid fields.
    let urls = [("success_url", "field_missing"), ("cancel_url", "field_missing")];
    let no_urls = server.request(Method::POST, "/payments").json(&json!({"amount": 5}));
    table.row(no_urls, 400, "field_missing", &urls).await;
    let several = json!({"amount": -1, "success_url": "x", "currency": "EUR", "customer": {"email": 5}});
    let all = [
        ("amount", "amount_invalid"),
        ("success_url", "url_invalid"),
        ("cancel_url", "field_missing"),
        ("currency", "currency_invalid"),
        ("customer.email", "field_invalid"),
    ];
    let several = server.request(Method::POST, "/payments").json(&several);
    table.row(several, 400, "validation_failed", &all).await;

    // Query parameters.
    let query = |query: &str| server.request(Method::GET, &format!("/payments?{query}"));
    let all = [("page", "field_invalid"), ("limit", "field_invalid"), ("status", "field_invalid")];
    table.row(query("page=0&limit=101&status=paid"), 400, "field_invalid", &all).await;
}

async fn unknown_ids(table: &mut Table, server: &Server) {
    for id in ["pay_0", "nonsense", "..%2f"] {
        table.row(server.request(Method::GET, &format!("/payments/{id}")), 404, "payment_not_found", &[]).await;
    }
    let hook = |method, rest: &str| server.request(method, &format!("/webhooks/{rest}"));
    table.row(hook(Method::DELETE, "wh_0"), 404, "webhook_endpoint_not_found", &[]).await;
    table.row(hook(Method::GET, "deliveries?webhookId=wh_0"), 404, "webhook_endpoint_not_found", &[]).await;
    table.row(hook(Method::POST, "deliveries/del_0/resend"), 404, "delivery_not_found", &[]).await;
    table.row(server.request(Method::GET, "/events/evt_0"), 404, "event_not_found", &[]).await;
    table.row(server.request(Method::GET, "/events?after=evt_0"), 404, "cursor_unknown", &[]).await;
    let foreign = json!({"url": "https://shop.example/hook", "events": "*", "appId": "app_unknown"});
    table.row(server.request(Method::POST, "/webhooks").json(&foreign), 404, "app_not_found", &[]).await;
}

/// Requests that the state of a payment does not allow.
async fn states(table: &mut Table, live: &Live) {
    let server = &live.server;
    let checkout = |id: &str, rest: &str| server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/{rest}"));
    let test = server.create(&payment_of(&json!(5))).await["id"].as_str().unwrap().to_owned();
    let refund_test = || server.request(Method::POST, &format!("/payments/{test}/refund"));
    table.row(refund_test(), 409, "payment_not_refundable", &[]).await;
    assert_eq!(checkout(&test, "pay").send().await.unwrap().status(), 200);
    table.row(checkout(&test, "pay"), 409, "payment_not_payable", &[]).await;
    table.row(checkout(&test, "simulate"), 409, "payment_not_payable", &[]).await;
    table.row(refund_test(), 409, "payment_not_refundable", &[]).await;

    let open = live.create(15.0, "USD").await;
    let refund = |id: &str| live.request(Method::POST, &format!("/payments/{id}/refund"));
    table.row(refund(&open), 409, "payment_not_refundable", &[]).await;
    table.row(checkout(&open, "simulate"), 403, "simulation_not_allowed", &[]).await;
    let paid = live.paid(15.0, "USD").await;
    let part = |minor: u32| refund(&paid).json(&json!({"amount": f64::from(minor) / 100.0}));
    table.row(part(2_000), 409, "refund_amount_too_large", &[]).await;
    table.row(part(5), 400, "idempotency_key_required", &[]).await;
    let parts = live.paid(15.0, "BDT").await;
    let nth_part =
        |nth: u32| refund(&parts).header("idempotency-key", format!("p-{nth}")).json(&json!({"amount": 0.01}));
    for nth in 1..100 {
        assert_eq!(nth_part(nth).send().await.unwrap().status(), 200);
    }
    table.row(nth_part(100), 409, "refund_limit_reached", &[]).await;
    let disputed = live.paid(15.0, "BDT").await;
    live.server.run(&["disputes", "open", &disputed, "--amount", "15", "--reference", "CB-1"]);
    table.row(refund(&disputed), 409, "payment_disputed", &[]).await;
    live.stripe.faults().next("refund", Fault::DropAfter);
    let key = || refund(&paid).header("idempotency-key", "r-1");
    table.row(key(), 503, "gateway_unavailable", &[]).await;
    table.row(refund(&paid), 409, "refund_in_progress", &[]).await;
    assert_eq!(key().send().await.unwrap().status(), 200);
    table.row(refund(&paid), 409, "payment_already_refunded", &[]).await;
    table.row(key().json(&json!({"reason": "lost"})), 422, "idempotency_key_reused", &[]).await;
}

async fn webhooks(table: &mut Table, server: &Server) {
    let create =
        |url: &str| server.request(Method::POST, "/webhooks").json(&json!({"url": url, "events": ["payment.created"]}));
    table.row(create("ftp://shop.example/"), 400, "url_invalid", &[("url", "url_invalid")]).await;
    let metadata_service = create("http://169.254.169.254/");
    table.row(metadata_service, 400, "url_not_allowed", &[("url", "url_not_allowed")]).await;
    let nothing = server.request(Method::POST, "/webhooks").json(&json!({"url": "https://shop.example/"}));
    table.row(nothing, 400, "field_missing", &[("events", "field_missing")]).await;

    let hook = create("http://127.0.0.1:9/hook").send().await.unwrap().json::<Value>().await.unwrap();
    table.row(create("http://127.0.0.1:9/hook"), 409, "webhook_endpoint_limit_reached", &[]).await;
    let hook = hook["id"].as_str().unwrap();
    let ping = server.request(Method::POST, &format!("/webhooks/{hook}/test")).send().await.unwrap();
    let delivery = ping.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    server.request(Method::DELETE, &format!("/webhooks/{hook}")).send().await.unwrap();
    let again = server.request(Method::POST, &format!("/webhooks/deliveries/{delivery}/resend"));
    table.row(again, 409, "delivery_not_resendable", &[]).await;
}

/// Payments at gateways, and gateway events.
async fn gateways(table: &mut Table, live: &Live) {
    let pay = |id: &str| live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
    let id = live.create(7.0, "BDT").await;
    let wrong = json!({"phoneNumber": "1", "paymentMethod": "Cash", "redirectUrl": "x"});
    let fields = [
        ("paymentMethod", "payment_method_invalid"),
        ("phoneNumber", "phone_number_invalid"),
        ("redirectUrl", "url_invalid"),
    ];
    table.row(pay(&id).json(&wrong), 400, "validation_failed", &fields).await;
    for (name, value, code) in [
        ("phoneNumber", "1", "phone_number_invalid"),
        ("paymentMethod", "card", "payment_method_invalid"),
        ("redirectUrl", "https://elsewhere.example/", "url_not_allowed"),
    ] {
        table.row(pay(&id).json(&json!({ name: value })), 400, code, &[(name, code)]).await;
    }
    live.bkash.faults().next("create", Fault::ErrorBefore);
    table.row(pay(&id), 503, "gateway_unavailable", &[]).await;
    live.stripe.program().refuse_next_session();
    table.row(pay(&live.create(5.0, "USD").await), 422, "gateway_refused", &[]).await;
    let event = live.server.keyless(Method::POST, "/gateways/stripe/webhook").header("stripe-signature", "t=1,v1=00");
    table.row(event.body("{}"), 400, "signature_invalid", &[]).await;
    let looped = live.server.request(Method::GET, "/payments").header("X-Service-Delivery", "del_1");
    table.row(looped, 400, "webhook_loop", &[]).await;
}

/// A server dies during a refund. On a database, its claim on the key stays.
async fn a_key_in_progress(table: &mut Table) {
    let mut live = Live::start_on(Engine::Postgres, "gateway-timeout = 1", &[]).await;
    let id = live.paid(15.0, "USD").await;
    let refund = || live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r-2");
    let calls = live.stripe.faults().calls_of("refund");
    live.stripe.faults().next("refund", Fault::HangBefore);
    let asking = tokio::spawn(refund().send());
    eventually("the refund", async || (live.stripe.faults().calls_of("refund") > calls).then_some(())).await;
    live.server.crash_and_restart();
    assert!(asking.await.unwrap().is_err());
    let refund = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r-2");
    table.row(refund, 503, "idempotency_key_in_progress", &[]).await;
}

/// Servers with other settings.
async fn other_servers(table: &mut Table) {
    let server = Server::start_with(&["--session-ttl", "1", "--rate-limit", "3", "--keyless-rate-limit", "0"]);
    let live_key = server.new_key("Rahim & Sons", "live");
    let body = payment_of(&json!(5));
    let create = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(live_key).json(&body);
    table.row(create, 422, "currency_not_available", &[]).await;
    table.row(server.keyless(Method::POST, "/gateways/stripe/webhook"), 404, "gateway_not_configured", &[]).await;
    let payment = server.create(&body).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    table.row(server.keyless(Method::POST, &simulate), 409, "checkout_expired", &[]).await;
    for _ in 0..2 {
        assert_eq!(server.request(Method::GET, "/account").send().await.unwrap().status(), 200);
    }
    table.row(server.request(Method::GET, "/account"), 429, "rate_limited", &[]).await;
    let keys: Value = serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap();
    let mut keys = keys["keys"].as_array().unwrap().iter();
    let sandbox = keys.find(|key| key["last4"] == "demo").unwrap();
    server.run(&["keys", "revoke", sandbox["id"].as_str().unwrap()]);
    let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session");
    table.row(demo, 404, "sandbox_not_available", &[]).await;

    // Many test pings to an endpoint that never answers.
    let server = Server::start_with(&["--max-connections-per-address", "300"]);
    let receiver = Receiver::start(Reply::Never).await;
    let hook = json!({"url": receiver.url(), "events": ["payment.refunded"]});
    let hook =
        server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().json::<Value>().await.unwrap();
    let ping = || server.request(Method::POST, &format!("/webhooks/{}/test", hook["id"].as_str().unwrap()));
    let pinging = tokio::spawn(join_all((0..64).map(|_| ping().send()).collect::<Vec<_>>()));
    eventually("half of the test pings", async || {
        let metrics = server.metrics().await;
        metrics.contains("payments_outside_effects 64\n").then_some(())
    })
    .await;
    table.row(ping(), 503, "too_many_in_progress", &[]).await;
    pinging.abort();

    // A database whose tables the server cannot read.
    let server = Server::start_on(Engine::Postgres, &[]);
    let url = server.database().unwrap();
    run_sql(url, "ALTER TABLE payments.record RENAME TO hidden");
    table.row(server.request(Method::GET, "/payments/pay_0"), 503, "service_unavailable", &[]).await;
    run_sql(url, "ALTER TABLE payments.hidden RENAME TO record");
}
