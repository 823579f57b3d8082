//! Deliveries that the libraries of Standard Webhooks verify. `server/tests/clients` has those of npm and PyPI.

use payments_client::{
    CreateWebhook, Event, EventKind, RotateSecret, SignatureScheme, Subscription, UpdateWebhook,
    webhook::{Secret, StandardHeaders, Verifier},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::{receiver::Receiver, server::Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_standards_own_library_verifies_deliveries_during_a_rotation_and_without_one() {
    let (server, receiver) = (Server::start(), Receiver::ok().await);
    let client = server.client();
    let params = CreateWebhook::new(receiver.url(), Subscription::All);
    let endpoint = client.webhooks().create(params.signature(SignatureScheme::Standard)).await.unwrap();
    assert_eq!(endpoint.signature, Some(SignatureScheme::Standard));
    client.webhooks().test(&endpoint.id).await.unwrap();
    let rotated = client.webhooks().rotate_secret(&endpoint.id, RotateSecret::default()).await.unwrap();
    client.webhooks().test(&endpoint.id).await.unwrap();

    let received = receiver.received();
    let [old, new] = [&endpoint, &rotated].map(|endpoint| endpoint.secret.reveal());
    for (delivery, secrets) in [(&received[0], vec![old]), (&received[1], vec![old, new])] {
        for secret in secrets {
            Webhook::new(secret).unwrap().verify(&delivery.body, &delivery.headers).unwrap();
            // Both schemes, by our own verifier.
            let event = delivery.verified_with(secret);
            let header = |name: &str| delivery.headers[name].as_bytes();
            let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
            assert_eq!((id, event.kind()), (event.id().as_str().as_bytes(), &EventKind::TestPing));
            let headers = StandardHeaders { id, timestamp, signature: header("webhook-signature") };
            let verifier = Verifier::new(Secret::new(secret).unwrap());
            let verified = verifier.verify_standard(headers, &delivery.body).unwrap();
            assert_eq!(Event::from_verified(verified).unwrap(), event);
        }
        assert!(Webhook::new(old).unwrap().verify(b"{}", &delivery.headers).is_err());
    }
    assert!(Webhook::new(new).unwrap().verify(&received[0].body, &received[0].headers).is_err());

    let changes = UpdateWebhook::default().signature(SignatureScheme::Service);
    assert_eq!(client.webhooks().update(&endpoint.id, changes).await.unwrap().signature, None);
    client.webhooks().test(&endpoint.id).await.unwrap();
    assert!(!receiver.received()[2].headers.contains_key("webhook-signature"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_signature_is_refused() {
    let server = Server::start();
    let hook = json!({"url": "https://shop.example/hook", "events": "*", "signature": "pgp"});
    let answer = server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let body: Value = answer.json().await.unwrap();
    assert!(body.to_string().contains("signature must be"), "{body}");
}
