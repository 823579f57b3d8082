//! A payment's timeline, for support staff.

use gateway_fakes::{Fault, stripe};
use payments_client::{Client, DeliveryStatus, EventKind, PaymentId, SimulateOutcome, Timeline, TimelineKind};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    live::Live,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

fn client_of(live: &Live) -> Client {
    Client::builder(live.key.as_str()).base_url(&live.server.url).build().unwrap()
}

/// The kinds of a timeline's entries. An event's entry has the event's kind.
fn kinds(timeline: &Timeline) -> Vec<String> {
    let kind = |entry: &payments_client::TimelineEntry| match &entry.event {
        Some(event) => event.event.to_string(),
        None => entry.kind.to_string(),
    };
    timeline.items.iter().map(kind).collect()
}

async fn a_timeline_tells_each_move_with_its_cause_and_each_event_with_its_deliveries(engine: Engine) {
    let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
    let client = client_of(&live);
    let receiver = Receiver::ok().await;
    receiver.subscribe(&client).await;
    let id: PaymentId = live.paid(12.5, "USD").await.parse().unwrap();
    live.stripe.faults().next("refund", Fault::DropBefore);
    let refund =
        || live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "r-1").send();
    let lost = refund().await.unwrap();
    assert!(lost.status().is_server_error(), "{}", lost.status());
    assert_eq!(refund().await.unwrap().status(), StatusCode::OK);
    let timeline = eventually("three deliveries", async || {
        let timeline = client.payments().timeline(&id).await.unwrap();
        let deliveries = timeline.items.iter().flat_map(|entry| &entry.event).flat_map(|event| &event.deliveries);
        (deliveries.filter(|delivery| delivery.status == DeliveryStatus::Success).count() == 3).then_some(timeline)
    })
    .await;
    assert_eq!(
        kinds(&timeline),
        [
            "created",
            "payment.created",
            "sent_to_gateway",
            "completed",
            "payment.completed",
            "refund_requested",
            "gateway_error",
            "refunded",
            "payment.refunded"
        ]
    );
    assert!(!timeline.has_more_deliveries && timeline.items.is_sorted_by_key(|entry| entry.created_at));
    let described = |kind: TimelineKind| &*timeline.items.iter().find(|it| it.kind == kind).unwrap().description;
    assert_eq!(described(TimelineKind::SentToGateway), "The customer was sent to Stripe.");
    assert!(described(TimelineKind::Completed).starts_with("Stripe confirmed the money: transaction pi_"));
    assert!(described(TimelineKind::GatewayError).starts_with("Stripe gave no usable response"));
    assert_eq!(described(TimelineKind::Refunded), "12.5 USD were given back.");
    let text =
        live.request(Method::GET, &format!("/payments/{id}/timeline")).send().await.unwrap().text().await.unwrap();
    assert!(!text.contains(stripe::SECRET_KEY) && !text.contains("whsec_"));

    // A resent delivery is listed too.
    let event = timeline.items.last().unwrap().event.as_ref().unwrap();
    let resend = format!("/webhooks/deliveries/{}/resend", event.deliveries[0].id);
    assert!(live.request(Method::POST, &resend).send().await.unwrap().status().is_success());
    eventually("the resent delivery", async || {
        let timeline = client.payments().timeline(&id).await.unwrap();
        (timeline.items.last()?.event.as_ref()?.deliveries.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_each_move_with_its_cause_and_each_event_with_its_deliveries_on_a_directory() {
    a_timeline_tells_each_move_with_its_cause_and_each_event_with_its_deliveries(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_each_move_with_its_cause_and_each_event_with_its_deliveries_on_postgresql() {
    a_timeline_tells_each_move_with_its_cause_and_each_event_with_its_deliveries(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_says_how_a_payment_ended_and_why_a_webhook_failed_and_is_private() {
    let mut server = Server::start();
    let receiver = Receiver::start(Reply::Status(StatusCode::INTERNAL_SERVER_ERROR, String::new())).await;
    receiver.subscribe(&server.client()).await;
    let payment = server.create(&payment_of(&json!(750))).await;
    let id = payment["id"].as_str().unwrap().parse().unwrap();
    server.client().checkout().simulate(&id, SimulateOutcome::Cancelled).await.unwrap();
    server.ended_deliveries(1).await;
    server.crash_and_restart();
    let timeline = server.client().payments().timeline(&id).await.unwrap();
    assert_eq!(kinds(&timeline), ["created", "payment.created", "cancelled"]);
    assert_eq!(timeline.items[2].description, "The outcome was simulated.");
    let event = timeline.items[1].event.as_ref().unwrap();
    let delivery = &event.deliveries[0];
    assert_eq!(event.event, EventKind::PaymentCreated);
    assert_eq!((&delivery.status, delivery.response_status), (&DeliveryStatus::Failed, Some(500)));
    let other = server.new_key("Other shop", "test");
    let request = server.keyless(Method::GET, &format!("/api/v1/payments/{id}/timeline")).bearer_auth(&other);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "payment_not_found");
}
