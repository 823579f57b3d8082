//! The account, webhook endpoints, events and deliveries.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use payments_client::Event;
use reqwest::Method;
use serde_json::{Value, json};
use webhook_verify::{Secret, Signer, Verifier};

use super::{
    report::Report,
    world::{World, has},
};
use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

pub(super) async fn account_and_webhooks(world: &World, report: &mut Report) {
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
    world.live.server.run(&[&["apps", "create", "--workspace", workspace, "--name", "Till"], &uri[..]].concat());
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

    let delivered = eventually("a successful delivery", async || {
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
    let body_length = delivered["responseBody"].as_str().unwrap_or_default().len();
    report.row(section, "truncated response body", body_length == 1024, &body_length);
    report.row("Delivery", "Every attempt is logged", both && body_length == 1024, &delivered);
    report.row("Delivery", "2xx", delivered["status"] == "success", &delivered);
}

pub(super) async fn events(world: &World, report: &mut Report) {
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

/// Delivers to an endpoint that never replies. Returns how long the attempt took and the delivery.
pub(super) async fn a_hanging_endpoint(engine: Engine) -> (Duration, Value) {
    let server = Server::start_on(engine, &[]);
    let receiver = Receiver::start(Reply::Never).await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    let begun = Instant::now();
    let delivery = server.ended_deliveries(1).await.remove(0);
    let took = begun.elapsed();
    assert_eq!(receiver.received().len(), 1);
    (took, delivery)
}
