//! Retries of webhooks, for endpoints that ask for them. The tests wait for the first retry, after 5 to 6 seconds.

use std::time::Duration;

use payments_client::{
    CreateWebhook, Delivery, DeliveryStatus, DisabledReason, Retries, SimulateOutcome, Subscription, UpdateWebhook,
    WebhookEndpoint,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

const FAILS: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

async fn failing(statuses: &[StatusCode]) -> Receiver {
    Receiver::start(Reply::InTurn(statuses.to_vec())).await
}

async fn subscribe(server: &Server, receiver: &Receiver, retries: Retries) -> WebhookEndpoint {
    let params = CreateWebhook::new(receiver.url(), Subscription::All).retries(retries);
    server.client().webhooks().create(params).await.unwrap()
}

async fn endpoint(server: &Server) -> WebhookEndpoint {
    server.client().webhooks().list().await.unwrap().remove(0)
}

/// Waits until the only delivery waits for its next attempt.
async fn waiting(server: &Server) -> Delivery {
    eventually("the delivery to wait", || async {
        let delivery = server.client().webhooks().deliveries().await.unwrap().items.pop()?;
        delivery.next_attempt_at.is_some().then_some(delivery)
    })
    .await
}

async fn waiting_by_metric(server: &Server) -> bool {
    server.metrics().await.contains("payments_deliveries_waiting 1\n")
}

async fn a_failed_attempt_is_repeated_and_later_events_of_its_payment_do_not_wait(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let receiver = failing(&[FAILS, StatusCode::OK]).await;
    let endpoint = subscribe(&server, &receiver, Retries::Standard).await;
    assert_eq!(endpoint.retries, Some(Retries::Standard));
    let payment = server.create(&payment_of(&json!(7.5))).await;

    let first = waiting(&server).await;
    let log = first.attempt_log.as_ref().unwrap();
    assert_eq!((&first.status, first.attempts, first.response_status), (&DeliveryStatus::Pending, 1, Some(500)));
    assert_eq!((log.len(), log[0].response_status, &log[0].error), (1, Some(500), &None));
    let wait_millis = first.next_attempt_at.unwrap().as_millis() - log[0].attempted_at.as_millis();
    assert!((5_000..8_000).contains(&wait_millis), "{wait_millis}");
    assert!(waiting_by_metric(&server).await);
    let resend =
        server.request(Method::POST, &format!("/webhooks/deliveries/{}/resend", first.id)).send().await.unwrap();
    assert_eq!(resend.status(), StatusCode::CONFLICT);

    let id = payment["id"].as_str().unwrap().parse().unwrap();
    server.client().checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap();
    let ended = server.ended_deliveries(2).await;
    assert_eq!(ended.iter().map(|it| &it["event"]).collect::<Vec<_>>(), ["payment.completed", "payment.created"]);
    assert_eq!((&ended[1]["status"], &ended[1]["attempts"]), (&json!("success"), &json!(2)));
    assert_eq!(ended[1]["id"], json!(first.id));
    assert_eq!(ended[1]["nextAttemptAt"], Value::Null);
    let statuses: Vec<_> = ended[1]["attemptLog"].as_array().unwrap().iter().map(|it| &it["responseStatus"]).collect();
    assert_eq!(statuses, [500, 200]);
    assert!(!waiting_by_metric(&server).await);

    let received = receiver.received();
    let kinds = received.iter().map(|it| it.headers["x-service-event"].to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(kinds, ["payment.created", "payment.completed", "payment.created"]);
    assert_eq!(received[0].body, received[2].body);
    assert_eq!(received[2].headers["x-service-delivery"], first.id.as_str());
    received[2].verified_with(endpoint.secret.reveal());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_repeated_on_a_directory() {
    a_failed_attempt_is_repeated_and_later_events_of_its_payment_do_not_wait(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_repeated_on_postgresql() {
    a_failed_attempt_is_repeated_and_later_events_of_its_payment_do_not_wait(Engine::Postgres).await;
}

async fn a_delivery_that_waits_at_a_crash_is_attempted_again_after_the_restart(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let receiver = failing(&[FAILS, StatusCode::NO_CONTENT]).await;
    subscribe(&server, &receiver, Retries::Standard).await;
    server.create(&payment_of(&json!(1))).await;
    let before = waiting(&server).await;
    server.crash_and_restart();
    let after = server.ended_deliveries(1).await.remove(0);
    assert_eq!((&after["id"], &after["status"], &after["attempts"]), (&json!(before.id), &json!("success"), &json!(2)));
    assert_eq!(after["attemptLog"][0], json!(before.attempt_log.unwrap()[0]));
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_is_lost_at_a_crash_on_a_directory() {
    a_delivery_that_waits_at_a_crash_is_attempted_again_after_the_restart(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempt_is_lost_at_a_crash_on_postgresql() {
    a_delivery_that_waits_at_a_crash_is_attempted_again_after_the_restart(Engine::Postgres).await;
}

async fn each_attempt_is_made_when_the_server_is_killed_between_and_during_attempts(engine: Engine) {
    const PAYMENTS: usize = 12;
    let mut server = Server::start_on(engine, &[]);
    let receiver = failing(&[[FAILS; 2 * PAYMENTS].as_slice(), &[StatusCode::OK]].concat()).await;
    subscribe(&server, &receiver, Retries::Standard).await;
    for amount in 1..=PAYMENTS {
        server.create(&payment_of(&json!(amount))).await;
    }
    // The second attempts, 5 to 6 seconds after the first, fail too. The third ones would come minutes later.
    for millis in [100, 4_900, 300, 300, 300, 300] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        server.crash_and_restart();
    }
    let settled = eventually("two attempts of each delivery", || async {
        let deliveries = server.client().webhooks().deliveries().limit(100).await.unwrap().items;
        deliveries.iter().all(|it| it.attempts >= 2 || it.status == DeliveryStatus::Success).then_some(deliveries)
    })
    .await;
    assert_eq!(settled.len(), PAYMENTS);
    let received = receiver.received();
    for delivery in settled {
        let requests = received.iter().filter(|it| it.headers["x-service-delivery"] == delivery.id.as_str()).count();
        // An attempt in flight at a crash is made again but counts once.
        assert!(requests >= usize::try_from(delivery.attempts).unwrap(), "{delivery:?}");
        assert_eq!(delivery.attempt_log.unwrap().len(), usize::try_from(delivery.attempts).unwrap());
        assert_eq!(delivery.next_attempt_at.is_some(), delivery.status == DeliveryStatus::Pending);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_delivery_is_lost_in_many_crashes_on_a_directory() {
    each_attempt_is_made_when_the_server_is_killed_between_and_during_attempts(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_delivery_is_lost_in_many_crashes_on_postgresql() {
    each_attempt_is_made_when_the_server_is_killed_between_and_during_attempts(Engine::Postgres).await;
}

async fn the_status_410_disables_an_endpoint_with_retries_until_it_is_turned_on(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let receiver = failing(&[StatusCode::GONE, StatusCode::OK]).await;
    let id = subscribe(&server, &receiver, Retries::Standard).await.id;
    server.create(&payment_of(&json!(1))).await;
    let failed = server.ended_deliveries(1).await.remove(0);
    assert_eq!((&failed["status"], &failed["attempts"]), (&json!("failed"), &json!(1)));
    let disabled = endpoint(&server).await;
    assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Gone)));
    server.assert_logs("webhook endpoint disabled");
    server.assert_logs("reason=gone");
    server.create(&payment_of(&json!(2))).await;
    assert_eq!(server.get("/webhooks/deliveries").await["total"], 1, "no delivery is made");

    let on = server.client().webhooks().update(&id, UpdateWebhook::default().is_active(true)).await.unwrap();
    assert_eq!((on.is_active, on.disabled_reason, on.retries), (true, None, Some(Retries::Standard)));
    server.create(&payment_of(&json!(3))).await;
    assert_eq!(server.ended_deliveries(2).await[0]["status"], "success");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_410_disables_an_endpoint_on_a_directory() {
    the_status_410_disables_an_endpoint_with_retries_until_it_is_turned_on(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_410_disables_an_endpoint_on_postgresql() {
    the_status_410_disables_an_endpoint_with_retries_until_it_is_turned_on(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_retries_a_delivery_has_one_attempt_and_nothing_disables_the_endpoint() {
    let server = Server::start();
    let receiver = failing(&[StatusCode::GONE, FAILS]).await;
    let body = json!({"url": receiver.url(), "events": "*"});
    let post = async |body: &Value| server.request(Method::POST, "/webhooks").json(body).send().await.unwrap();
    let refused = post(&json!({"url": receiver.url(), "events": "*", "retries": "often"})).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(refused.json::<Value>().await.unwrap()["message"], json!(["retries must be \"none\" or \"standard\""]));
    let created: Value = post(&body).await.json().await.unwrap();
    assert_eq!(created["retries"], "none");
    server.create(&payment_of(&json!(1))).await;
    server.create(&payment_of(&json!(2))).await;
    for ended in server.ended_deliveries(2).await {
        assert_eq!((&ended["status"], &ended["attempts"]), (&json!("failed"), &json!(1)));
        assert_eq!((ended.get("attemptLog"), ended.get("nextAttemptAt")), (None, None));
    }
    assert!(endpoint(&server).await.is_active);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_delivery_ends_when_its_endpoint_is_removed_or_gives_up_retries() {
    let server = Server::start();
    let removed = failing(&[FAILS]).await;
    let endpoint = subscribe(&server, &removed, Retries::Standard).await;
    server.create(&payment_of(&json!(1))).await;
    waiting(&server).await;
    server.client().webhooks().delete(&endpoint.id).await.unwrap();
    let ended = server.ended_deliveries(1).await.remove(0);
    assert_eq!((&ended["error"]["code"], &ended["attempts"]), (&json!("endpoint_removed"), &json!(1)));
    assert_eq!((&ended["responseStatus"], &ended["attemptLog"][0]["responseStatus"]), (&Value::Null, &json!(500)));

    let other = failing(&[FAILS]).await;
    let endpoint = subscribe(&server, &other, Retries::Standard).await;
    server.create(&payment_of(&json!(2))).await;
    eventually("the second delivery to wait", || async { waiting_by_metric(&server).await.then_some(()) }).await;
    let update = UpdateWebhook::default().retries(Retries::None);
    assert_eq!(server.client().webhooks().update(&endpoint.id, update).await.unwrap().retries, Some(Retries::None));
    let ended = server.ended_deliveries(2).await.remove(0);
    assert_eq!((&ended["status"], &ended["attempts"]), (&json!("failed"), &json!(2)));
    assert_eq!(ended["attemptLog"].as_array().unwrap().len(), 2);
}
