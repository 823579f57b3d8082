//! Resent deliveries, replaced secrets, test events, and the list of events.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    super::world::{World, has},
    report::Report,
    shop::{Shop, each, names},
};
use crate::server::eventually;

/// Nothing listens on this port.
const DOWN: &str = "http://127.0.0.1:9/hook";

pub(super) async fn resend(world: &World, report: &mut Report) {
    let addition = "Resend";
    let shop = Shop::open(world).await;
    shop.create().await;
    let first = shop.ended(1).await.remove(0);
    let is_once = shop.receiver.received().len() == 1 && first["attempts"] == 1;
    report.unnoticed(addition, "an event is sent once", is_once, &first);
    let path = format!("/webhooks/deliveries/{}/resend", first["id"].as_str().unwrap());
    let (status, again) = shop.post(&path, json!({})).await;
    let is_new = status == 201 && again["status"] == "pending" && again["id"] != first["id"];
    report.documented(
        addition,
        "a new delivery of the same event",
        is_new && again["payload"] == first["payload"],
        &again,
    );
    shop.ended(2).await;
    let [one, other] = &shop.receiver.received()[..] else { panic!("two requests") };
    let is_same = one.body == other.body && other.verified_with_any_age(shop.secret());
    report.documented(addition, "the same bytes, signed", is_same, other);

    shop.edit_endpoint(json!({"url": DOWN})).await;
    shop.paid().await;
    shop.ended(4).await;
    shop.edit_endpoint(json!({"url": shop.receiver.url()})).await;
    let since = json!({"since": first["createdAt"]});
    let (_, recovered) = shop.ask_endpoint("recover", since.clone()).await;
    let is_all = recovered == json!({"resent": 2, "hasMore": false, "next": null});
    report.documented(addition, "all that failed", is_all && shop.ended(6).await[0]["status"] == "success", &recovered);
    let (_, repeated) = shop.ask_endpoint("recover", since).await;
    report.documented(addition, "and that once", repeated["resent"] == 0, &repeated);
}

pub(super) async fn retries(world: &World, report: &mut Report) {
    let addition = "Retries";
    let fails = StatusCode::INTERNAL_SERVER_ERROR;
    let shop = Shop::replying(world, &[fails, fails, StatusCode::OK, StatusCode::GONE]).await;
    shop.create().await;
    let failed = shop.ended(1).await.remove(0);
    let is_one = failed["status"] == "failed" && failed["attempts"] == 1;
    let is_plain = ["attemptLog", "nextAttemptAt"].iter().all(|field| failed.get(field).is_none());
    report.unnoticed(addition, "one attempt, unless the endpoint asks for more", is_one && is_plain, &failed);

    let asked = shop.edit_endpoint(json!({"retries": "standard"})).await;
    let is_asked = shop.endpoint["retries"] == "none" && asked["retries"] == "standard" && asked["isActive"] == true;
    report.documented(addition, "an endpoint asks for them", is_asked, &asked);
    shop.create().await;
    let waiting = eventually("a delivery to wait", async || {
        let delivery = shop.get("/webhooks/deliveries").await["items"][0].take();
        delivery["nextAttemptAt"].is_string().then_some(delivery)
    })
    .await;
    let is_logged = waiting["status"] == "pending" && waiting["attemptLog"][0]["responseStatus"] == 500;
    report.documented(addition, "a failed attempt is logged and waits for the next", is_logged, &waiting);
    let (_, moved) = shop.post("/sandbox/advance", json!({"seconds": 60})).await;
    let ended = shop.ended(2).await.remove(0);
    let is_repeated = ended["id"] == waiting["id"] && ended["attempts"] == 2 && ended["status"] == "success";
    report.documented(addition, "the same delivery is attempted again", is_repeated, &(moved, ended));

    shop.create().await;
    let gone = shop.ended(3).await.remove(0);
    let endpoint = shop.get("/webhooks").await[0].take();
    let is_off = gone["attempts"] == 1 && endpoint["isActive"] == false && endpoint["disabledReason"] == "gone";
    report.documented(addition, "410 disables the endpoint", is_off, &(gone, endpoint));
}

pub(super) async fn rotation_and_edits(world: &World, report: &mut Report) {
    let addition = "Rotation and edits";
    let shop = Shop::open(world).await;
    let sent = async |deliveries: usize| {
        shop.create().await;
        shop.ended(deliveries).await;
        shop.last_received()
    };
    let plain = sent(1).await;
    let is_plain = plain.signatures() == 1 && plain.verified_with_any_age(shop.secret());
    report.unnoticed(addition, "one signature without a rotation", is_plain, &plain.headers);

    let (_, rotated) = shop.ask_endpoint("rotate-secret", json!({})).await;
    let second = rotated["secret"].as_str().unwrap();
    let is_new = second != shop.secret() && rotated["previousSecretExpiresAt"].is_string();
    report.documented(addition, "a new secret", is_new, &rotated["previousSecretExpiresAt"]);
    let both = sent(2).await;
    let knows_first = both.verified_with_any_age(shop.secret());
    report.unnoticed(addition, "a receiver that has the secret before verifies", knows_first, &both.headers);
    let is_signed_twice = both.signatures() == 2 && both.verified_with_any_age(second);
    report.documented(addition, "both secrets sign", is_signed_twice, &both.headers);
    let (_, rotated) = shop.ask_endpoint("rotate-secret", json!({"overlapSeconds": 0})).await;
    let third = sent(3).await;
    let is_ended = !third.verified_with_any_age(second);
    let is_signed = third.verified_with_any_age(rotated["secret"].as_str().unwrap());
    report.documented(addition, "without an overlap the secret before ends", is_ended && is_signed, &third.headers);

    let edited = shop.edit_endpoint(json!({"events": ["payment.completed"], "description": "the till"})).await;
    let kept = ["id", "url", "createdAt"].iter().all(|field| edited[field] == shop.endpoint[field]);
    let is_edited = edited["events"] == json!(["payment.completed"]) && edited["description"] == "the till";
    report.documented(addition, "an edit keeps the rest", kept && is_edited, &edited);
    shop.paid().await;
    let last = shop.ended(4).await.remove(0);
    report.documented(addition, "an edit counts at once", last["event"] == "payment.completed", &last);
}

pub(super) async fn test_events(world: &World, report: &mut Report) {
    let addition = "Test events";
    let shop = Shop::open(world).await;
    let path = format!("/webhooks/{}/test", shop.endpoint["id"].as_str().unwrap());
    let (_, ping) = world.ask(&shop.key, Method::POST, &path, None).await;
    let data = &ping["payload"]["data"];
    let is_ping = ping["event"] == "test.ping" && names(data) == ["event", "timestamp", "developer_id", "message"];
    report.unnoticed(addition, "without a body it is a ping", is_ping, &ping);
    for kind in ["payment.created", "payment.completed", "payment.partially_refunded", "payment.refunded"] {
        let (_, test) = shop.ask_endpoint("test", json!({"event": kind})).await;
        let data = &test["payload"]["data"];
        let is_test = data["isSimulated"] == true && data["metadata"]["test"] == true;
        let is_event = test["payload"]["event"] == kind && has(data, &["id", "amount", "status"]);
        let has_reason = data.get("refund_reason").is_some() == kind.ends_with("refunded");
        report.documented(addition, kind, is_test && is_event && has_reason, &test);
    }
    let kinds: Vec<_> = shop.receiver.received().iter().map(|one| one.headers["x-service-event"].clone()).collect();
    report.documented(addition, "each is sent", kinds.len() == 5, &kinds);
    let payments = shop.get("/payments").await;
    report.unnoticed(addition, "no payment stands behind them", payments["total"] == 0, &payments);
}

pub(super) async fn list_of_events(world: &World, report: &mut Report) {
    let addition = "List of events";
    let shop = Shop::open(world).await;
    let payment = shop.paid().await;
    shop.ended(2).await;
    let mut sent: Vec<Value> =
        shop.receiver.received().iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
    sent.sort_by_key(|event| event["event"] == "payment.completed");
    let is_plain = sent.iter().all(|event| names(event) == ["id", "event", "created_at", "data"]);
    report.unnoticed(addition, "the envelope", is_plain, &sent);

    let list = eventually("both events", async || {
        let list = shop.get("/events").await;
        (list["items"].as_array().unwrap().len() == 2).then_some(list)
    })
    .await;
    report.documented(addition, "what was sent", list["items"] == json!(sent), &list);
    let first = list["items"][0]["id"].as_str().unwrap();
    let later = shop.get(&format!("/events?after={first}")).await;
    report.documented(addition, "what followed an event", later["items"] == json!([sent[1]]), &later);
    let one = shop.get(&format!("/events/{first}")).await;
    report.documented(addition, "one event", one == sent[0], &one);

    shop.post("/sandbox/reset", json!({})).await;
    let unsent = shop.create().await;
    let list = eventually("an event without an endpoint", async || {
        let list = shop.get("/events").await;
        (!list["items"].as_array().unwrap().is_empty()).then_some(list)
    })
    .await;
    let is_there = each(&list, "data") == [&unsent] && unsent["id"] != payment["id"];
    report.documented(addition, "what would have been sent", is_there, &list);
}
