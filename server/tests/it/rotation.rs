//! Rotation of the secret of a webhook endpoint.

use payments_client::{RotateSecret, WebhookEndpoint};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::Receiver,
    server::{Server, payment_of},
};

async fn both_secrets_sign_while_a_rotation_overlaps(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let receiver = Receiver::ok().await;
    let first = receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let rotate = || {
        let path = format!("/webhooks/{id}/rotate-secret");
        server.request(Method::POST, &path).header("idempotency-key", "r-1").send()
    };
    let (one, other) = tokio::join!(rotate(), rotate());
    let (one, other) = (one.unwrap().text().await.unwrap(), other.unwrap().text().await.unwrap());
    assert_eq!(one, other, "the secret is replaced once");
    let rotated: WebhookEndpoint = serde_json::from_str(&one).unwrap();
    let second = rotated.secret.reveal().to_owned();
    assert_ne!(second, first);
    let overlap = rotated.previous_secret_expires_at.unwrap().as_millis() - rotated.updated_at.as_millis();
    assert_eq!(overlap, 24 * 60 * 60 * 1000);

    server.crash_and_restart();
    assert_eq!(server.client().webhooks().list().await.unwrap(), [rotated]);
    server.create(&payment_of(&json!(1))).await;
    server.ended_deliveries(1).await;
    let received = receiver.received().remove(0);
    assert_eq!(received.signatures(), 2);
    assert_eq!(received.verified_with(&first).id(), received.verified_with(&second).id());
    assert!(!received.verified_with_any_age("whsec_another"));

    // Without an overlap, the previous secret ends at once. The one before it keeps its own end.
    let at_once = RotateSecret::default().overlap_seconds(0);
    let third = server.client().webhooks().rotate_secret(&id, at_once).await.unwrap();
    let third = third.secret.reveal();
    let ping = server.client().webhooks().test(&id).await.unwrap().unwrap();
    let received = receiver.received().remove(1);
    assert_eq!(received.headers["x-service-delivery"], *ping.id.as_str());
    assert_eq!(received.signatures(), 2);
    assert!(received.verified_with_any_age(third) && received.verified_with_any_age(&first));
    assert!(!received.verified_with_any_age(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_while_a_rotation_overlaps_on_a_directory() {
    both_secrets_sign_while_a_rotation_overlaps(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_while_a_rotation_overlaps_on_postgresql() {
    both_secrets_sign_while_a_rotation_overlaps(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_overlap_only_the_new_secret_signs_and_a_bad_overlap_is_refused() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    let first = receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let second = RotateSecret::default().overlap_seconds(1);
    let second = server.client().webhooks().rotate_secret(&id, second).await.unwrap().secret;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    server.client().webhooks().test(&id).await.unwrap().unwrap();
    let received = receiver.received().remove(0);
    assert_eq!(received.signatures(), 1);
    assert!(received.verified_with_any_age(second.reveal()) && !received.verified_with_any_age(&first));
    assert_eq!(server.client().webhooks().list().await.unwrap().remove(0).previous_secret_expires_at, None);

    let rotate = |id: &str, body: Value| {
        let request = server.request(Method::POST, &format!("/webhooks/{id}/rotate-secret")).json(&body);
        async move { request.send().await.unwrap() }
    };
    for (bad, hint) in [(json!(-1), ""), (json!(604_801), ""), (json!(1.5), ""), (json!("60"), ", without quotes")] {
        let answer = rotate(id.as_str(), json!({"overlapSeconds": bad})).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let message = answer.json::<Value>().await.unwrap()["message"].take();
        let fault = format!("overlapSeconds must be a whole number of seconds, 0 to 604800{hint}");
        assert_eq!(message, json!([fault]));
    }
    assert_eq!(rotate("wh_0", json!({})).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(server.client().webhooks().list().await.unwrap().remove(0).secret, second);
}
