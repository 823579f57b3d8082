//! Resent deliveries.

use futures_util::future::join_all;
use payments_client::{CreateWebhook, Delivery, DeliveryStatus, RecoverWebhook, Subscription, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually, metric, payment_of, text_of},
};

/// Waits until a receiver has this many requests.
async fn received(receiver: &Receiver, count: usize) {
    eventually("the endpoint to be called", || async { (receiver.received().len() == count).then_some(()) }).await;
}

async fn resend(server: &Server, id: &str) -> (StatusCode, Value) {
    let answer = server.request(Method::POST, &format!("/webhooks/deliveries/{id}/resend")).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn a_delivery_is_sent_again_with_the_same_body_freshly_signed(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let receiver = Receiver::start(Reply::Status(StatusCode::BAD_GATEWAY, "restarting".into())).await;
    let secret = receiver.subscribe(&server.client()).await;
    let payment = server.create(&payment_of(&json!(7.5))).await;
    let first = server.ended_deliveries(1).await.remove(0);
    assert_eq!(first["status"], "failed");

    let again: Delivery =
        server.client().webhooks().resend(&first["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    assert_eq!((&again.status, again.attempts), (&DeliveryStatus::Pending, 0));
    assert_ne!(again.id.as_str(), first["id"]);
    received(&receiver, 2).await;
    let deliveries = server.ended_deliveries(2).await;
    assert_eq!((&deliveries[0]["id"], &deliveries[0]["attempts"]), (&json!(again.id), &json!(1)));
    assert_eq!(deliveries[0]["payload"], first["payload"]);

    let [one, other] = &receiver.received()[..] else { panic!("two requests") };
    assert_eq!(one.body, other.body);
    let events = [one, other].map(|received| received.verified_with(&secret));
    assert_eq!(events[0].id(), events[1].id());
    assert_eq!(events[1].payment().unwrap().id.as_str(), payment["id"]);
    assert_ne!(one.headers["x-service-delivery"], other.headers["x-service-delivery"]);

    // A resent delivery can be sent again, and so can a ping.
    assert_eq!(resend(&server, again.id.as_str()).await.0, StatusCode::CREATED);
    let endpoint = server.client().webhooks().list().await.unwrap().remove(0).id;
    let ping = server.client().webhooks().test(&endpoint).await.unwrap().unwrap();
    assert_eq!(resend(&server, ping.id.as_str()).await.1["payload"], json!(ping.payload));
    received(&receiver, 5).await;
    server.ended_deliveries(5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_on_a_directory() {
    a_delivery_is_sent_again_with_the_same_body_freshly_signed(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_sent_again_on_postgresql() {
    a_delivery_is_sent_again_with_the_same_body_freshly_signed(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_resend_with_one_key_sends_once_and_an_operator_may_resend_any_delivery() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(1))).await;
    let delivery = server.ended_deliveries(1).await.remove(0);
    let path = format!("/webhooks/deliveries/{}/resend", delivery["id"].as_str().unwrap());
    let keyed = || server.request(Method::POST, &path).header("idempotency-key", "again").send();
    let (one, other) = tokio::join!(keyed(), keyed());
    let (one, other) = (one.unwrap().text().await.unwrap(), other.unwrap().text().await.unwrap());
    assert_eq!(one, other);
    received(&receiver, 2).await;

    let id = server.run_for_line(&["deliveries", "resend", delivery["id"].as_str().unwrap()]);
    received(&receiver, 3).await;
    assert_eq!(server.ended_deliveries(3).await[0]["id"], json!(id));
    let unknown = server.try_run(&["deliveries", "resend", "del_0"]);
    assert!(text_of(&unknown).contains("no webhook delivery has this id"), "{}", text_of(&unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_not_resent_while_pending_without_its_endpoint_or_by_others() {
    let server = Server::start();
    let hanging = Receiver::start(Reply::Never).await;
    let endpoint = CreateWebhook::new(hanging.url(), Subscription::All);
    let endpoint = server.client().webhooks().create(endpoint).await.unwrap();
    server.create(&payment_of(&json!(1))).await;
    let pending = server.get("/webhooks/deliveries").await["items"][0]["id"].as_str().unwrap().to_owned();
    let (status, body) = resend(&server, &pending).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["message"], "this delivery cannot be sent again: it is still pending");

    server.client().webhooks().delete(&endpoint.id).await.unwrap();
    server.ended_deliveries(1).await;
    let (status, body) = resend(&server, &pending).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["message"], "this delivery cannot be sent again: its webhook endpoint was removed");

    let other = server.new_key("another shop", "test");
    let path = format!("{}/api/v1/webhooks/deliveries/{pending}/resend", server.url);
    let foreign = reqwest::Client::new().post(path).bearer_auth(other).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);
    assert_eq!(resend(&server, "del_0").await.0, StatusCode::NOT_FOUND);
    assert_eq!(resend(&server, "%2f").await.0, StatusCode::NOT_FOUND);
}

async fn what_failed_is_sent_again_once(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let receiver = Receiver::start(Reply::Status(StatusCode::BAD_GATEWAY, "restarting".into())).await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    for _ in 0..3 {
        server.create(&payment_of(&json!(5))).await;
    }
    server.client().webhooks().test(&id).await.unwrap();
    let failed = server.ended_deliveries(4).await;
    assert!(failed.iter().all(|delivery| delivery["status"] == "failed"));
    // One delivery is resent by hand, and fails too.
    let by_hand = failed.iter().find(|delivery| delivery["event"] == "payment.created").unwrap();
    assert_eq!(resend(&server, by_hand["id"].as_str().unwrap()).await.0, StatusCode::CREATED);
    server.ended_deliveries(5).await;

    let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let all = RecoverWebhook::since(since);
    let client = server.client();
    let (one, other) =
        tokio::join!(client.webhooks().recover(&id, &all).send(), client.webhooks().recover(&id, &all).send());
    let (one, other) = (one.unwrap(), other.unwrap());
    // A request that comes during the other one gets the same answer.
    let resent = (one.resent.min(other.resent), one.resent.max(other.resent), one.has_more);
    assert!([(0, 3, false), (3, 3, false)].contains(&resent), "{resent:?}");
    assert_eq!(server.ended_deliveries(8).await.len(), 8, "of each event the last delivery, and no test event");
    let before = all.clone().until("2026-01-02T00:00:00Z".parse().unwrap());
    assert_eq!(client.webhooks().recover(&id, &before).await.unwrap().resent, 0);

    server.crash_and_restart();
    let line = server.run_for_line(&["deliveries", "recover", id.as_str(), "--since", "2026-01-01"]);
    assert_eq!(line, "3", "those that failed again");
    server.ended_deliveries(11).await;
    let off = json!({"isActive": false});
    server.request(Method::PATCH, &format!("/webhooks/{id}")).json(&off).send().await.unwrap();
    let refused = server.client().webhooks().recover(&id, &all).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_waits_for_the_endpoint_and_two_requests_share_it() {
    const FAILED: usize = 300;
    let server = Server::start_with(&["--rate-limit", "0"]);
    // Nothing listens on this port.
    let hook = json!({"url": "http://127.0.0.1:9/hook", "events": "*"});
    let made =
        server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().json::<Value>().await.unwrap();
    let path = format!("/webhooks/{}", made["id"].as_str().unwrap());
    let payment = payment_of(&json!(5));
    for _ in 0..FAILED / 50 {
        join_all((0..50).map(|_| server.create(&payment))).await;
    }
    eventually("all to fail", async || {
        let metrics = server.metrics().await;
        let failed = "payments_deliveries_total{outcome=\"Unanswered\"}";
        (metrics.contains(failed) && metric::<usize>(&metrics, failed) == FAILED).then_some(())
    })
    .await;
    let silent = Receiver::start(Reply::Never).await;
    let moved = json!({"url": silent.url()});
    assert_eq!(server.request(Method::PATCH, &path).json(&moved).send().await.unwrap().status(), StatusCode::OK);

    let recover = || async {
        let since = json!({"since": "2026-01-01T00:00:00Z"});
        let recover = server.request(Method::POST, &format!("{path}/recover")).json(&since);
        let answer = recover.send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap())
    };
    let (one, other) = tokio::join!(recover(), recover());
    assert_eq!(one.0, StatusCode::OK);
    assert_eq!(one, other, "the second request gets the first one's answer");
    let resent = one.1["resent"].as_u64().unwrap();
    assert!((50..=150).contains(&resent) && one.1["hasMore"] == true, "{}", one.1);
    // The endpoint has not taken any delivery yet. Each attempt takes 8 seconds, and a new one follows each that ends.
    let (status, more) = recover().await;
    match status {
        StatusCode::OK => assert!(more["resent"].as_u64().unwrap() <= 100, "{more}"),
        _ => assert_eq!((status.as_u16(), &more["code"]), (503, &json!("too_many_in_progress"))),
    }
    assert!(silent.received().len() <= 96, "{} requests", silent.received().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_are_recovered_once_on_a_directory() {
    what_failed_is_sent_again_once(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_are_recovered_once_on_postgresql() {
    what_failed_is_sent_again_once(Engine::Postgres).await;
}
