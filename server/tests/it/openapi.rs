//! The OpenAPI document matches the server: each response is validated against it, and each documented status occurs.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    document::{self, Checker, operations},
    live::Live,
    reference_examples::EXAMPLES,
    routes::routes,
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::DELETE, Method::PUT, Method::PATCH, Method::HEAD, Method::OPTIONS];

/// Statuses that other tests cover: they need a slow client, a used-up limit, a failing disk or a failing gateway.
const ELSEWHERE: [&str; 4] = ["408", "429", "500", "503"];

/// The refusals that do not depend on a route's records: each route that documents one gives it.
async fn refuse_on_every_route(d: &mut Checker<'_>, server: &Server) {
    let keys = ["account:read", "webhooks:read"].map(|scope| server.new_key_with("Till", "live", &["--scope", scope]));
    let mut methods_of: HashMap<&str, Vec<Method>> = HashMap::new();
    for route in routes(d.document) {
        let id = route.id;
        methods_of.entry(route.path).or_default().push(route.method.clone());
        let without_key = || route.unknown(server, "");
        let request = || if route.is_keyed() { without_key().bearer_auth(SANDBOX_KEY) } else { without_key() };
        let json = |body: String| request().header("content-type", "application/json").body(body);
        if route.is_keyed() {
            let lacking = &keys[usize::from(route.scopes.contains(&"account:read"))];
            d.check(id, 401, without_key()).await;
            d.check(id, 403, without_key().bearer_auth(lacking)).await;
        }
        assert_eq!(route.has_status("400"), !route.refused.is_empty(), "{id}");
        if route.refused.starts_with('?') {
            d.check(id, 400, route.unknown(server, route.refused).bearer_auth(SANDBOX_KEY)).await;
        } else if !route.refused.is_empty() {
            d.check(id, 400, json(route.refused.to_owned())).await;
        }
        if route.has_status("413") {
            d.check(id, 413, json("x".repeat(70_000))).await;
            d.check(id, 400, request().header("content-type", "text/plain").body("x")).await;
        }
        if route.kind_of_id().is_some() {
            d.check(id, 404, json(route.body.to_owned())).await;
        }
    }
    for route in routes(d.document) {
        let known = &methods_of[route.path];
        if known.first() != Some(&route.method) {
            d.seen.insert((route.id.to_owned(), "405".to_owned()));
            continue;
        }
        for other in METHODS.iter().filter(|other| !known.contains(*other)) {
            let request = server.keyless(other.clone(), &route.path.replace("{id}", "x_0")).bearer_auth(SANDBOX_KEY);
            if other == Method::HEAD {
                let status = request.send().await.unwrap().status();
                assert_eq!(status != 405, known.contains(&Method::GET), "HEAD {}", route.path);
            } else {
                d.check(route.id, 405, request).await;
            }
        }
    }
}

/// What the examples do not show of payouts. The sandbox's bank acts within seconds.
async fn payouts(d: &mut Checker<'_>, live: &Live) {
    let test = |path: &str| live.server.request(Method::POST, path);
    let real = |path: &str| live.request(Method::POST, path);
    let wallet = json!({"holder": "Karim", "provider": "bkash", "number": "01770618575"});
    let wallet = json!({"currency": "BDT", "wallet": wallet});
    d.check("setPayoutDestination", 404, real("/payouts/destinations").json(&wallet)).await;
    let daily = json!({"currency": "BDT", "interval": "daily"});
    d.check("setPayoutSchedule", 409, real("/payouts/schedules").json(&daily)).await;
    d.check("createPayout", 409, real("/payouts").json(&json!({"currency": "BDT"}))).await;
    d.check("setPayoutDestination", 200, test("/payouts/destinations").json(&wallet)).await;
    let one = json!({"currency": "BDT", "amount": 1});
    let made = d.check("createPayout", 201, test("/payouts").header("idempotency-key", "po-1").json(&one)).await;
    let two = json!({"currency": "BDT", "amount": 2});
    d.check("createPayout", 422, test("/payouts").header("idempotency-key", "po-1").json(&two)).await;
    let path = format!("/payouts/{}", made["id"].as_str().unwrap());
    eventually("the payout", async || (live.server.get(&path).await["status"] == "paid").then_some(())).await;
    d.check("cancelPayout", 409, test(&format!("{path}/cancel"))).await;
    d.check("listPayouts", 404, live.server.request(Method::GET, "/payouts?after=po_0")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_matches_the_openapi_document_and_every_documented_status_occurs() {
    // Responses have rate-limit headers only if there are limits.
    let mut limits = vec!["--rate-limit", "1000000", "--keyless-rate-limit", "1000000"];
    limits.extend(["--max-webhook-endpoints", "1"]);
    let live = Live::start_with("gateway-timeout = 1", &limits).await;
    let server = &live.server;
    let (document, before) = (document::closed(), document::before());
    let d = &mut Checker::new(&document, &before);
    let keyed = |method: Method, path: &str| server.request(method, path);
    let keyless = |method: Method, path: &str| server.keyless(method, &format!("/api/v1{path}"));
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    // Payments.
    let mut full = payment_of(&json!(37.5));
    full["customer"] = json!({"name": "Karim", "email": "k@example.com", "phone": "01712345678"});
    full["metadata"] = json!({"order": 1});
    full["lineItems"] = json!([{"name": "Tea", "quantity": 2, "amount": 30.5}, {"name": "Wrapping"}]);
    let create = || keyed(post.clone(), "/payments");
    let payment = d.check("createPayment", 201, create().header("idempotency-key", "o-1").json(&full)).await;
    d.check("createPayment", 201, create().header("idempotency-key", "o-1").json(&full)).await;
    d.check("createPayment", 422, create().header("idempotency-key", "o-1").json(&json!({}))).await;
    let id = payment["id"].as_str().unwrap().to_owned();
    d.check("retrievePayment", 200, keyed(get.clone(), &format!("/payments/{id}"))).await;
    let events = d.check("listEvents", 200, keyed(get.clone(), &format!("/events?paymentId={id}"))).await;
    let event = format!("/events/{}", events["items"][0]["id"].as_str().unwrap());
    d.check("listEvents", 404, keyed(get.clone(), "/events?paymentId=pay_0")).await;
    d.check("retrieveEvent", 200, keyed(get.clone(), &event)).await;
    d.check("listPayments", 200, keyed(get.clone(), "/payments?status=pending")).await;
    let filtered = "/payments?customerPhone=01712345678&currency=BDT&createdAfter=2020-01-01T00:00:00Z";
    d.check("listPayments", 200, keyed(get.clone(), filtered)).await;
    d.check("listPayments", 200, keyed(get.clone(), "/payments?customerEmail=a@example.com")).await;
    let mut order = full.clone();
    order["merchantTransactionId"] = json!("order-1017");
    order["merchantTransactionIdMustBeUnique"] = json!(true);
    d.check("createPayment", 201, create().json(&order)).await;
    d.check("createPayment", 409, create().json(&order)).await;
    let event = |id: &str, key: &str| {
        keyed(Method::POST, &format!("/payments/{id}/simulate")).header("idempotency-key", key.to_owned())
    };
    let (disputed, lost) = (json!({"event": "disputed", "amount": 4}), json!({"event": "dispute_lost"}));
    let sold = d.check("createPayment", 201, create().json(&full)).await["id"].as_str().unwrap().to_owned();
    d.check("simulatePayment", 409, event(&sold, "e-1").json(&disputed)).await;
    d.check("simulateCheckout", 200, keyless(Method::POST, &format!("/checkout/{sold}/simulate"))).await;
    d.check("simulatePayment", 200, event(&sold, "e-1").json(&disputed)).await;
    d.check("simulatePayment", 422, event(&sold, "e-1").json(&lost)).await;
    d.check("simulatePayment", 200, event(&sold, "e-2").json(&lost)).await;
    let real = live.paid(15.0, "USD").await;
    d.check("simulatePayment", 403, live.request(Method::POST, &format!("/payments/{real}/simulate")).json(&disputed))
        .await;
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
    d.check("listEvents", 200, keyed(Method::GET, "/events?after=latest")).await;
    d.check("listEvents", 400, keyed(Method::GET, "/events?after=pay_0")).await;
    d.check("listEvents", 404, keyed(Method::GET, "/events?after=evt_0")).await;
    d.check("listEvents", 404, keyed(Method::GET, "/events?paymentId=pay_01a20aa9138a7cb8865961ab6ca7f46d")).await;

    // Account.
    let account = d.check("retrieveAccount", 200, keyed(get.clone(), "/account")).await;
    let workspace = account["workspace"]["id"].as_str().unwrap().to_owned();
    let hook = "https://shop.example/hook";
    live.server.run(&["apps", "create", "--workspace", &workspace, "--name", "Till", "--webhook-url", hook]);
    let apps = d.check("listApps", 200, keyed(get.clone(), "/account/apps")).await;
    assert_eq!(apps.as_array().unwrap().len(), 1);
    let activity = d.check("retrieveActivity", 200, keyed(get.clone(), "/account/activity")).await;
    assert_eq!(activity["days"].as_array().unwrap().len(), 30);
    server.run(&["keys", "create", "--workspace", &workspace, "--environment", "test", "--scope", "payments:read"]);
    d.check("listNotices", 200, keyed(get.clone(), "/account/notices")).await;
    assert_eq!(d.check("listKeys", 200, keyed(get.clone(), "/account/keys")).await.as_array().unwrap().len(), 2);
    d.check("listAudit", 200, keyed(get.clone(), "/account/audit")).await;
    let of_live = |path: &str| live.request(Method::GET, path);
    let transactions = d.check("listTransactions", 200, of_live("/account/transactions?limit=3")).await;
    assert_eq!(transactions["items"].as_array().unwrap().len(), 3);

    payouts(d, &live).await;

    // Webhooks.
    let hooks = || keyed(post.clone(), "/webhooks");
    let hook = json!({"url": "http://127.0.0.1:9/hook", "events": "*", "appId": apps[0]["id"]});
    let endpoint = d.check("createWebhook", 201, hooks().header("idempotency-key", "w-1").json(&hook)).await;
    d.check("createWebhook", 422, hooks().header("idempotency-key", "w-1").json(&json!({}))).await;
    let foreign = json!({"url": "http://127.0.0.1:9/hook", "events": "*", "appId": "app_unknown"});
    d.check("createWebhook", 404, hooks().json(&foreign)).await;
    d.check("createWebhook", 409, hooks().json(&hook)).await;
    d.check("listWebhooks", 200, keyed(get.clone(), "/webhooks")).await;
    let wh = endpoint["id"].as_str().unwrap().to_owned();
    let update = |id: &str| keyed(Method::PATCH, &format!("/webhooks/{id}"));
    let changes = json!({"url": "http://127.0.0.1:9/moved", "events": ["*"], "isActive": true, "description": "a note",
        "retries": "standard"});
    assert_eq!(d.check("updateWebhook", 200, update(&wh).json(&changes)).await["description"], "a note");
    let recover = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/recover"));
    let since = json!({"since": "2026-01-01T00:00:00Z"});
    d.check("recoverWebhook", 200, recover(&wh).json(&since)).await;
    d.check("updateWebhook", 200, update(&wh).json(&json!({"isActive": false}))).await;
    d.check("recoverWebhook", 409, recover(&wh).json(&since)).await;
    d.check("updateWebhook", 200, update(&wh).json(&json!({"isActive": true}))).await;
    let rotate = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/rotate-secret"));
    d.check("rotateWebhookSecret", 200, rotate(&wh).header("idempotency-key", "o-1")).await;
    let overlap = json!({"overlapSeconds": 1});
    d.check("rotateWebhookSecret", 422, rotate(&wh).header("idempotency-key", "o-1").json(&overlap)).await;
    d.check("listWebhooks", 200, keyed(get.clone(), "/webhooks")).await;
    let ping = |id: &str| keyed(Method::POST, &format!("/webhooks/{id}/test"));
    let delivery = d.check("testWebhook", 200, ping(&wh).header("idempotency-key", "p-1")).await;
    d.fits(&json!({"$ref": "#/components/schemas/Event"}), &delivery["payload"]).unwrap();
    assert_eq!(delivery["attemptLog"][0]["error"]["code"], "connection_refused");
    d.check("testWebhook", 422, ping(&wh).header("idempotency-key", "p-1").json(&json!({"a": 1}))).await;
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
    d.check("listDeliveries", 404, list("?webhookId=wh_0")).await;
    let verify = |body: &Value| keyless(Method::POST, "/webhooks/verify").json(body);
    d.check("verifySignature", 200, verify(&json!({"payload": "a", "signature": "t=1,v1=00", "secret": "s"}))).await;
    let header =
        webhook_verify::Signer::new(webhook_verify::Secret::new("whsec_a").unwrap()).sign_at(b"a", 1_700_000_000);
    let genuine = json!({"payload": "a", "signature": header.as_str(), "secret": "whsec_a", "tolerance": 0});
    assert_eq!(d.check("verifySignature", 200, verify(&genuine)).await["valid"], true);
    d.check("removeWebhook", 200, keyed(delete.clone(), &format!("/webhooks/{wh}"))).await;
    d.check("resendDelivery", 409, again(sent)).await;
    d.check("removeWebhook", 404, keyed(delete.clone(), &format!("/webhooks/{wh}"))).await;

    // Checkout.
    let demo = |body: &Value| keyless(Method::POST, "/checkout/demo-session").json(body);
    let session = d.check("createDemoSession", 201, demo(&json!({"amount": 5, "customerName": "Karim"}))).await;
    let checkout = |id: &str, rest: &str| keyless(Method::POST, &format!("/checkout/{id}{rest}"));
    let test = session["id"].as_str().unwrap().to_owned();
    d.check("retrieveCheckout", 200, keyless(get.clone(), &format!("/checkout/{test}"))).await;
    d.check("simulateCheckout", 200, checkout(&test, "/simulate").json(&json!({"action": "fail"}))).await;
    d.check("simulateCheckout", 409, checkout(&test, "/simulate")).await;
    let real = live.create(20.0, "BDT").await;
    d.check("simulateCheckout", 403, checkout(&real, "/simulate")).await;
    d.check("payCheckout", 200, checkout(&real, "/pay").json(&json!({"phoneNumber": "01712345678"}))).await;
    d.check("payCheckout", 200, checkout(&id, "/pay")).await;
    d.check("payCheckout", 409, checkout(&id, "/pay")).await;
    live.stripe.program().refuse_next_session();
    d.check("payCheckout", 422, checkout(&live.create(5.0, "USD").await, "/pay")).await;
    assert_eq!(d.check("retrieveDescription", 200, keyless(get.clone(), "/openapi.json")).await, document::open());

    refuse_on_every_route(d, server).await;

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
    // The recorder of the examples checks one successful answer of each operation.
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap();
    d.seen.extend(examples.as_object().unwrap().iter().map(|(id, it)| (id.clone(), it["status"].to_string())));
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
    live.server.run(&["disputes", "open", &id, "--amount", "15", "--reference", "du_1"]);
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
