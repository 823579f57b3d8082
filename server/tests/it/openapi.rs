//! The OpenAPI document matches the server: each response is validated against it, and each documented status occurs.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{
    document::{self, fits, operations, resolved},
    live::Live,
    server::{eventually, payment_of},
};

/// The OpenAPI document, which tests close, the one from before, and the responses seen so far, as operation and status.
struct Document<'d> {
    document: &'d Value,
    before: &'d Value,
    seen: BTreeSet<(String, String)>,
}

const METHODS: [&str; 7] = ["get", "post", "delete", "put", "patch", "head", "options"];

impl Document<'_> {
    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        fits(self.document, schema, value)
    }

    /// Checks a response against the document from before, if that has the operation and the status.
    fn fits_before(&self, id: &str, status: &str, body: &Value) -> Result<(), String> {
        let operation = operations(self.before).find(|(_, _, operation)| operation["operationId"] == id);
        let described = operation.map(|(_, _, operation)| resolved(self.before, &operation["responses"][status]));
        let schema = described.map(|described| &described["content"]["application/json"]["schema"]);
        schema.filter(|schema| !schema.is_null()).map_or(Ok(()), |schema| fits(self.before, schema, body))
    }

    /// Sends a request and validates the response against the document.
    async fn check(&mut self, id: &str, expected: u16, request: RequestBuilder) -> Value {
        let answer: Response = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let body: Value = answer.json().await.unwrap();
        assert_eq!(status, expected, "{id}: {body}");
        let operation = operations(self.document).find(|(_, _, operation)| operation["operationId"] == id);
        let (_, _, operation) = operation.unwrap_or_else(|| panic!("{id} is not documented"));
        let described = &operation["responses"][status.to_string()];
        assert!(!described.is_null(), "{id} answered {status}, which is not documented: {body}");
        let described = resolved(self.document, described);
        assert_eq!(headers["content-type"], "application/json", "{id}");
        for (name, header) in described["headers"].as_object().unwrap() {
            let header = resolved(self.document, header);
            match headers.get(name).map(|value| value.to_str().unwrap()) {
                Some(value) => {
                    let is_number = header["schema"]["type"] == "integer";
                    let value = if is_number { value.parse::<u64>().unwrap().into() } else { Value::from(value) };
                    self.fits(&header["schema"], &value).unwrap_or_else(|fault| panic!("{id} {name}: {fault}"));
                }
                None => assert_ne!(header["required"], true, "{id} {status} lacks {name}"),
            }
        }
        let schema = &described["content"]["application/json"]["schema"];
        self.fits(schema, &body).unwrap_or_else(|fault| panic!("{id} {status}: {fault} in {body}"));
        self.fits_before(id, &status.to_string(), &body)
            .unwrap_or_else(|fault| panic!("{id} {status}: {fault} in {body}"));
        self.seen.insert((id.to_owned(), status.to_string()));
        body
    }
}

/// Statuses that other tests cover: they need a slow client, a used-up limit, a failing disk or a failing gateway.
const ELSEWHERE: [&str; 4] = ["408", "429", "500", "503"];

#[tokio::test(flavor = "multi_thread")]
async fn every_response_matches_the_openapi_document_and_every_documented_status_occurs() {
    // Responses have rate-limit headers only if there are limits.
    let mut limits = vec!["--rate-limit", "1000000", "--keyless-rate-limit", "1000000"];
    limits.extend(["--max-webhook-endpoints", "1"]);
    let live = Live::start_with("gateway-timeout = 1", &limits).await;
    let server = &live.server;
    let (document, before) = (document::closed(), document::before());
    let d = &mut Document { document: &document, before: &before, seen: BTreeSet::new() };
    let keyed = |method: Method, path: &str| server.request(method, path);
    let keyless = |method: Method, path: &str| server.keyless(method, &format!("/api/v1{path}"));
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    let too_large = "x".repeat(70_000);
    // Payments.
    let mut full = payment_of(&json!(37.5));
    full["customer"] = json!({"name": "Karim", "email": "k@example.com", "phone": "01712345678"});
    full["metadata"] = json!({"order": 1});
    full["lineItems"] = json!([{"name": "Tea", "quantity": 2, "amount": 30.5}, {"name": "Wrapping"}]);
    let create = || keyed(post.clone(), "/payments");
    let payment = d.check("createPayment", 201, create().header("idempotency-key", "o-1").json(&full)).await;
    d.check("createPayment", 201, create().header("idempotency-key", "o-1").json(&full)).await;
    d.check("createPayment", 422, create().header("idempotency-key", "o-1").json(&json!({}))).await;
    d.check("createPayment", 400, create().json(&json!({"amount": -1}))).await;
    d.check("createPayment", 413, create().header("content-type", "application/json").body(too_large.clone())).await;
    let id = payment["id"].as_str().unwrap().to_owned();
    d.check("retrievePayment", 200, keyed(get.clone(), &format!("/payments/{id}"))).await;
    d.check("retrievePayment", 404, keyed(get.clone(), "/payments/pay_0")).await;
    d.check("retrieveTimeline", 200, keyed(get.clone(), &format!("/payments/{id}/timeline"))).await;
    d.check("retrieveTimeline", 404, keyed(get.clone(), "/payments/pay_0/timeline")).await;
    let events = d.check("listEvents", 200, keyed(get.clone(), &format!("/events?paymentId={id}"))).await;
    let event = format!("/events/{}", events["items"][0]["id"].as_str().unwrap());
    d.check("listEvents", 400, keyed(get.clone(), "/events?limit=0")).await;
    d.check("listEvents", 404, keyed(get.clone(), "/events?paymentId=pay_0")).await;
    d.check("retrieveEvent", 200, keyed(get.clone(), &event)).await;
    d.check("retrieveEvent", 404, keyed(get.clone(), "/events/evt_0")).await;
    d.check("listPayments", 200, keyed(get.clone(), "/payments?status=pending")).await;
    let filtered = "/payments?customerPhone=01712345678&currency=BDT&createdAfter=2020-01-01T00:00:00Z";
    d.check("listPayments", 200, keyed(get.clone(), filtered)).await;
    d.check("listPayments", 200, keyed(get.clone(), "/payments?customerEmail=a@example.com")).await;
    d.check("listPayments", 400, keyed(get.clone(), "/payments?page=0")).await;
    let mut order = full.clone();
    order["merchantTransactionId"] = json!("order-1017");
    order["merchantTransactionIdMustBeUnique"] = json!(true);
    d.check("createPayment", 201, create().json(&order)).await;
    d.check("createPayment", 409, create().json(&order)).await;
    let refund = |id: &str| live.request(Method::POST, &format!("/payments/{id}/refund"));
    for currency in ["BDT", "USD"] {
        let paid = live.paid(15.0, currency).await;
        let request = refund(&paid).header("idempotency-key", "r-1").json(&json!({"reason": "damaged", "amount": 4}));
        d.check("refundPayment", 200, request).await;
        d.check("refundPayment", 400, refund(&paid).json(&json!({"amount": 4}))).await;
        d.check("refundPayment", 409, refund(&paid).json(&json!({"amount": 11.5}))).await;
        d.check("refundPayment", 200, refund(&paid)).await;
        let other = refund(&paid).header("idempotency-key", "r-1").json(&json!({"reason": "lost"}));
        d.check("refundPayment", 422, other).await;
        d.check("refundPayment", 409, refund(&paid)).await;
    }
    d.check("refundPayment", 404, refund("pay_0")).await;
    d.check("refundPayment", 400, refund("pay_0").json(&json!({"reason": 5}))).await;
    d.check("refundPayment", 413, refund("pay_0").header("content-type", "application/json").body(too_large.clone()))
        .await;

    // A restricted key.
    let [of_account, of_webhooks] =
        ["account:read", "webhooks:read"].map(|scope| server.new_key_with("Till", "live", &["--scope", scope]));
    for (path, method, operation) in operations(&document).filter(|(_, _, operation)| operation["security"].is_null()) {
        let key = if path.contains("/account") || path.contains("/requests") { &of_webhooks } else { &of_account };
        let request = server.keyless(method.to_uppercase().parse().unwrap(), &path.replace("{id}", "x_0"));
        d.check(operation["operationId"].as_str().unwrap(), 403, request.bearer_auth(key)).await;
    }

    // Events and requests.
    let events = d.check("listEvents", 200, keyed(Method::GET, "/events?limit=1")).await;
    let event = events["items"][0]["id"].as_str().unwrap().to_owned();
    d.check("retrieveEvent", 200, keyed(Method::GET, &format!("/events/{event}"))).await;
    d.check("retrieveEvent", 404, keyed(Method::GET, "/events/evt_0")).await;
    d.check("listEvents", 400, keyed(Method::GET, "/events?after=evt_0")).await;
    d.check("listEvents", 404, keyed(Method::GET, "/events?paymentId=pay_01a20aa9138a7cb8865961ab6ca7f46d")).await;
    eventually("a request to be logged", || async {
        let log: Value = keyed(Method::GET, "/requests").send().await.unwrap().json().await.unwrap();
        log["items"].as_array().filter(|items| !items.is_empty()).map(drop)
    })
    .await;
    d.check("listRequests", 200, keyed(Method::GET, "/requests")).await;
    d.check("listRequests", 400, keyed(Method::GET, "/requests?before=x")).await;

    let advance = || keyed(post.clone(), "/sandbox/advance");
    d.check("advanceSandbox", 200, advance().json(&json!({"seconds": 1}))).await;
    d.check("advanceSandbox", 400, advance().json(&json!({"seconds": 0}))).await;
    d.check("advanceSandbox", 413, advance().header("content-type", "application/json").body(too_large.clone())).await;
    let own = server.new_key("Reset", "test");
    let reset = || keyless(post.clone(), "/sandbox/reset").bearer_auth(&own);
    d.check("resetSandbox", 200, reset()).await;
    d.check("resetSandbox", 400, reset().header("content-type", "application/json").body("[")).await;
    d.check("resetSandbox", 413, reset().header("content-type", "application/json").body(too_large.clone())).await;

    // Account.
    let account = d.check("retrieveAccount", 200, keyed(get.clone(), "/account")).await;
    let workspace = account["workspace"]["id"].as_str().unwrap().to_owned();
    let hook = "https://shop.example/hook";
    live.server.run(&["apps", "create", "--workspace", &workspace, "--name", "Till", "--webhook-url", hook]);
    d.check("retrieveBalance", 200, keyed(get.clone(), "/account/balance")).await;
    let apps = d.check("listApps", 200, keyed(get.clone(), "/account/apps")).await;
    assert_eq!(apps.as_array().unwrap().len(), 1);
    let activity = d.check("retrieveActivity", 200, keyed(get.clone(), "/account/activity")).await;
    assert_eq!(activity["days"].as_array().unwrap().len(), 30);
    d.check("retrieveActivity", 400, keyed(get.clone(), "/account/activity?days=367")).await;
    d.check("drawActivity", 400, keyed(get.clone(), "/account/activity.svg?currency=EUR")).await;
    let chart = keyed(get.clone(), "/account/activity.svg").send().await.unwrap();
    assert_eq!((chart.status().as_u16(), chart.headers()["content-type"].to_str().unwrap()), (200, "image/svg+xml"));
    d.seen.insert(("drawActivity".to_owned(), "200".to_owned()));
    server.run(&["keys", "create", "--workspace", &workspace, "--environment", "test", "--scope", "payments:read"]);
    assert_eq!(d.check("listKeys", 200, keyed(get.clone(), "/account/keys")).await.as_array().unwrap().len(), 2);
    let of_live = |path: &str| live.request(Method::GET, path);
    let transactions = d.check("listTransactions", 200, of_live("/account/transactions?limit=3")).await;
    assert_eq!(transactions["items"].as_array().unwrap().len(), 3);
    d.check("listTransactions", 400, keyed(get.clone(), "/account/transactions?limit=0")).await;
    d.check("downloadTransactions", 400, keyed(get.clone(), "/account/transactions.csv?limit=0")).await;
    let table = of_live("/account/transactions.csv").send().await.unwrap();
    assert_eq!(
        (table.status().as_u16(), table.headers()["content-type"].to_str().unwrap()),
        (200, "text/csv; charset=utf-8")
    );
    d.seen.insert(("downloadTransactions".to_owned(), "200".to_owned()));

    // Webhooks.
    let hooks = || keyed(post.clone(), "/webhooks");
    let hook = json!({"url": "http://127.0.0.1:9/hook", "events": "*", "appId": apps[0]["id"]});
    let endpoint = d.check("createWebhook", 201, hooks().header("idempotency-key", "w-1").json(&hook)).await;
    d.check("createWebhook", 422, hooks().header("idempotency-key", "w-1").json(&json!({}))).await;
    let foreign = json!({"url": "http://127.0.0.1:9/hook", "events": "*", "appId": "app_unknown"});
    d.check("createWebhook", 404, hooks().json(&foreign)).await;
    d.check("createWebhook", 409, hooks().json(&hook)).await;
    d.check("createWebhook", 400, hooks().json(&json!({"url": "x"}))).await;
    d.check("createWebhook", 413, hooks().header("content-type", "application/json").body(too_large.clone())).await;
    d.check("listWebhooks", 200, keyed(get.clone(), "/webhooks")).await;
    let wh = endpoint["id"].as_str().unwrap().to_owned();
    let update = |id: &str| keyed(Method::PATCH, &format!("/webhooks/{id}"));
    let changes = json!({"url": "http://127.0.0.1:9/moved", "events": ["*"], "isActive": true, "description": "a note",
        "retries": "standard"});
    assert_eq!(d.check("updateWebhook", 200, update(&wh).json(&changes)).await["description"], "a note");
    d.check("updateWebhook", 400, update(&wh).json(&json!({"isActive": 1}))).await;
    d.check("updateWebhook", 404, update("wh_0").json(&changes)).await;
    d.check("updateWebhook", 413, update(&wh).header("content-type", "application/json").body(too_large.clone())).await;
    let recover = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/recover"));
    let since = json!({"since": "2026-01-01T00:00:00Z"});
    d.check("recoverWebhook", 200, recover(&wh).json(&since)).await;
    d.check("recoverWebhook", 400, recover(&wh).json(&json!({"since": "today"}))).await;
    d.check("recoverWebhook", 404, recover("wh_0").json(&since)).await;
    let too_long = recover(&wh).header("content-type", "application/json").body(too_large.clone());
    d.check("recoverWebhook", 413, too_long).await;
    d.check("updateWebhook", 200, update(&wh).json(&json!({"isActive": false}))).await;
    d.check("recoverWebhook", 409, recover(&wh).json(&since)).await;
    d.check("updateWebhook", 200, update(&wh).json(&json!({"isActive": true}))).await;
    let rotate = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/rotate-secret"));
    d.check("rotateWebhookSecret", 200, rotate(&wh).header("idempotency-key", "o-1")).await;
    d.check(
        "rotateWebhookSecret",
        422,
        rotate(&wh).header("idempotency-key", "o-1").json(&json!({"overlapSeconds": 1})),
    )
    .await;
    d.check("rotateWebhookSecret", 400, rotate(&wh).json(&json!({"overlapSeconds": -1}))).await;
    d.check("rotateWebhookSecret", 404, rotate("wh_0")).await;
    let too_long = rotate(&wh).header("content-type", "application/json").body(too_large.clone());
    d.check("rotateWebhookSecret", 413, too_long).await;
    d.check("listWebhooks", 200, keyed(get.clone(), "/webhooks")).await;
    let ping = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/test"));
    let delivery = d.check("testWebhook", 200, ping(&wh).header("idempotency-key", "p-1")).await;
    d.fits(&json!({"$ref": "#/components/schemas/Event"}), &delivery["payload"]).unwrap();
    assert_eq!(delivery["attemptLog"][0]["error"]["code"], "connection_refused");
    d.check("testWebhook", 422, ping(&wh).header("idempotency-key", "p-1").json(&json!({"a": 1}))).await;
    d.check("testWebhook", 404, ping("wh_0")).await;
    d.check("testWebhook", 400, ping(&wh).header("content-type", "text/plain").body("x")).await;
    d.check("testWebhook", 413, ping(&wh).header("content-type", "application/json").body(too_large.clone())).await;
    server.create(&full).await;
    let list = |query: &str| keyed(Method::GET, &format!("/webhooks/deliveries{query}"));
    let deliveries = d.check("listDeliveries", 200, list(&format!("?webhookId={wh}"))).await;
    for delivery in deliveries["items"].as_array().unwrap() {
        d.fits(&json!({"$ref": "#/components/schemas/Event"}), &delivery["payload"]).unwrap();
    }
    let again = |id: &str| keyed(Method::POST, &format!("/webhooks/deliveries/{id}/resend"));
    let sent = delivery["id"].as_str().unwrap();
    d.check("resendDelivery", 201, again(sent).header("idempotency-key", "r-1")).await;
    d.check("resendDelivery", 422, again(sent).header("idempotency-key", "r-1").json(&json!({"a": 1}))).await;
    d.check("resendDelivery", 400, again(sent).header("content-type", "text/plain").body("x")).await;
    d.check("resendDelivery", 413, again(sent).header("content-type", "application/json").body(too_large.clone()))
        .await;
    d.check("resendDelivery", 404, again("del_0")).await;
    d.check("listDeliveries", 400, list("?limit=101")).await;
    d.check("listDeliveries", 404, list("?webhookId=wh_0")).await;
    let verify = |body: &Value| keyless(Method::POST, "/webhooks/verify").json(body);
    d.check("verifySignature", 200, verify(&json!({"payload": "a", "signature": "t=1,v1=00", "secret": "s"}))).await;
    let header =
        webhook_verify::Signer::new(webhook_verify::Secret::new("whsec_a").unwrap()).sign_at(b"a", 1_700_000_000);
    let genuine = json!({"payload": "a", "signature": header.as_str(), "secret": "whsec_a", "tolerance": 0});
    assert_eq!(d.check("verifySignature", 200, verify(&genuine)).await["valid"], true);
    d.check("verifySignature", 400, verify(&json!({}))).await;
    let large =
        keyless(post.clone(), "/webhooks/verify").header("content-type", "application/json").body(too_large.clone());
    d.check("verifySignature", 413, large).await;
    d.check("removeWebhook", 200, keyed(delete.clone(), &format!("/webhooks/{wh}"))).await;
    d.check("resendDelivery", 409, again(sent)).await;
    d.check("removeWebhook", 404, keyed(delete.clone(), &format!("/webhooks/{wh}"))).await;

    // Checkout.
    let demo = |body: &Value| keyless(Method::POST, "/checkout/demo-session").json(body);
    let session = d.check("createDemoSession", 201, demo(&json!({"amount": 5, "customerName": "Karim"}))).await;
    d.check("createDemoSession", 400, demo(&json!({"amount": "5"}))).await;
    let large =
        |path: &str| keyless(Method::POST, path).header("content-type", "application/json").body(too_large.clone());
    d.check("createDemoSession", 413, large("/checkout/demo-session")).await;
    let checkout = |id: &str, rest: &str| keyless(Method::POST, &format!("/checkout/{id}{rest}"));
    let test = session["id"].as_str().unwrap().to_owned();
    d.check("retrieveCheckout", 200, keyless(get.clone(), &format!("/checkout/{test}"))).await;
    d.check("retrieveCheckout", 404, keyless(get.clone(), "/checkout/pay_0")).await;
    d.check("simulateCheckout", 200, checkout(&test, "/simulate").json(&json!({"action": "fail"}))).await;
    d.check("simulateCheckout", 409, checkout(&test, "/simulate")).await;
    d.check("simulateCheckout", 404, checkout("pay_0", "/simulate")).await;
    d.check("simulateCheckout", 400, checkout(&test, "/simulate").json(&json!({"action": "explode"}))).await;
    d.check("simulateCheckout", 413, large(&format!("/checkout/{test}/simulate"))).await;
    let real = live.create(20.0, "BDT").await;
    d.check("simulateCheckout", 403, checkout(&real, "/simulate")).await;
    d.check("payCheckout", 200, checkout(&real, "/pay").json(&json!({"phoneNumber": "01712345678"}))).await;
    d.check("payCheckout", 200, checkout(&id, "/pay")).await;
    d.check("payCheckout", 409, checkout(&id, "/pay")).await;
    d.check("payCheckout", 404, checkout("pay_0", "/pay")).await;
    d.check("payCheckout", 400, checkout(&real, "/pay").json(&json!({"phoneNumber": "1"}))).await;
    d.check("payCheckout", 413, large(&format!("/checkout/{real}/pay"))).await;
    live.stripe.program().refuse_next_session();
    d.check("payCheckout", 422, checkout(&live.create(5.0, "USD").await, "/pay")).await;
    assert_eq!(d.check("retrieveDescription", 200, keyless(get.clone(), "/openapi.json")).await, document::open());

    // Every path without a key and with every unsupported method.
    let mut methods_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, method, operation) in operations(&document) {
        methods_of.entry(path).or_default().insert(method);
        if operation["security"].is_null() {
            let request = server.keyless(method.to_uppercase().parse().unwrap(), &path.replace("{id}", &test));
            d.check(operation["operationId"].as_str().unwrap(), 401, request).await;
        }
    }
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let known = &methods_of[path];
        if known.first() != Some(&method) {
            d.seen.insert((id.to_owned(), "405".to_owned()));
            continue;
        }
        for other in METHODS.iter().filter(|other| !known.contains(**other)) {
            let request = server.keyless(other.to_uppercase().parse().unwrap(), &path.replace("{id}", &test));
            let request = request.bearer_auth("sk_test_demo");
            if *other == "head" {
                assert_eq!(request.send().await.unwrap().status() != 405, known.contains("get"), "HEAD {path}");
            } else {
                d.check(id, 405, request).await;
            }
        }
    }

    // Revoking its key closes the sandbox.
    let keys: Value = serde_json::from_str(&live.server.run(&["keys", "list", "--json"])).unwrap();
    let mut keys = keys["keys"].as_array().unwrap().iter();
    let sandbox = keys.find(|key| key["workspace"] == workspace.as_str()).unwrap();
    live.server.run(&["keys", "revoke", sandbox["id"].as_str().unwrap()]);
    d.check("createDemoSession", 404, demo(&json!({}))).await;

    let described = operations(&document).flat_map(|(_, _, operation)| {
        let id = operation["operationId"].as_str().unwrap();
        operation["responses"].as_object().unwrap().keys().map(|status| (id.to_owned(), status.clone()))
    });
    let unseen: Vec<_> = described
        .filter(|(_, status)| !ELSEWHERE.contains(&status.as_str()))
        .filter(|answer| !d.seen.contains(answer))
        .collect();
    assert!(unseen.is_empty(), "documented but never seen: {unseen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_fields_follow_the_order_of_the_openapi_document() {
    let live = Live::start("gateway-timeout = 1").await;
    let document = document::open();
    let id = live.paid(15.0, "USD").await;
    live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    let text = live.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap().text().await.unwrap();
    let mut rest = text.as_str();
    let payment = &document["components"]["schemas"]["Payment"];
    let names = payment["properties"].as_object().unwrap().keys().flat_map(|name| {
        // A field's aliases come after it.
        let aliases = payment["dependentSchemas"][name]["properties"].as_object();
        std::iter::once(name).chain(aliases.into_iter().flat_map(|aliases| aliases.keys()))
    });
    for name in names {
        let field = format!("\"{name}\":");
        let (_, after) = rest.split_once(&field).unwrap_or_else(|| panic!("{name} is out of order: {text}"));
        rest = after;
    }
}
