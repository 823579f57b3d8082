//! Changes of webhook endpoints.

use payments_client::{CreateWebhook, EventKind, Subscription, UpdateWebhook};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

async fn an_endpoint_moves_subscribes_anew_and_is_turned_off(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let client = server.client();
    let (first, second) = (Receiver::ok().await, Receiver::ok().await);
    let params = CreateWebhook::new(first.url(), Subscription::All).description("the old shop");
    let endpoint = client.webhooks().create(params).await.unwrap();
    assert_eq!(endpoint.description.as_deref(), Some("the old shop"));
    server.create(&payment_of(&json!(1))).await;
    server.ended_deliveries(1).await;

    let only = Subscription::Only(vec![EventKind::PaymentCompleted]);
    let moved = UpdateWebhook::default().url(second.url()).events(only.clone()).description("");
    let updated = client.webhooks().update(&endpoint.id, moved).await.unwrap();
    assert_eq!((updated.url.clone(), &updated.events, &updated.description), (second.url(), &only, &None));
    assert_eq!((&updated.secret, updated.created_at), (&endpoint.secret, endpoint.created_at));
    assert!(updated.updated_at > endpoint.updated_at);
    let payment = server.create(&payment_of(&json!(2))).await;
    let id = payment["id"].as_str().unwrap().parse().unwrap();
    client.checkout().simulate(&id, payments_client::SimulateOutcome::Completed).await.unwrap();
    server.ended_deliveries(2).await;
    assert_eq!((first.received().len(), second.received().len()), (1, 1));
    let event = second.received()[0].verified_with(endpoint.secret.reveal());
    assert_eq!(event.kind(), &EventKind::PaymentCompleted);

    let off = UpdateWebhook::default().events(Subscription::All).is_active(false);
    client.webhooks().update(&endpoint.id, off).await.unwrap();
    server.create(&payment_of(&json!(3))).await;
    assert_eq!(server.get("/webhooks/deliveries").await["total"], 2, "no delivery is made");
    server.crash_and_restart();
    let listed = client_of(&server).webhooks().list().await.unwrap().remove(0);
    assert_eq!((listed.is_active, &listed.events, listed.url), (false, &Subscription::All, second.url()));
    client_of(&server).webhooks().update(&endpoint.id, UpdateWebhook::default().is_active(true)).await.unwrap();
    server.create(&payment_of(&json!(4))).await;
    server.ended_deliveries(3).await;
    assert_eq!(second.received().len(), 2);
}

/// A client for the restarted server, which has another address.
fn client_of(server: &Server) -> payments_client::Client {
    server.client()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_changes_on_a_directory() {
    an_endpoint_moves_subscribes_anew_and_is_turned_off(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_changes_on_postgresql() {
    an_endpoint_moves_subscribes_anew_and_is_turned_off(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_deliveries_fail_when_their_endpoint_is_turned_off() {
    let server = Server::start();
    let hanging = Receiver::start(Reply::Never).await;
    let endpoint = CreateWebhook::new(hanging.url(), Subscription::All);
    let endpoint = server.client().webhooks().create(endpoint).await.unwrap();
    let payment = server.create(&payment_of(&json!(1))).await;
    eventually("the first request", || async { (hanging.received().len() == 1).then_some(()) }).await;
    // The payment's second event waits for its first.
    let id = payment["id"].as_str().unwrap().parse().unwrap();
    server.client().checkout().simulate(&id, payments_client::SimulateOutcome::Completed).await.unwrap();
    let both = || async { (server.get("/webhooks/deliveries?limit=5").await["total"] == 2).then_some(()) };
    eventually("both deliveries", both).await;
    server.client().webhooks().update(&endpoint.id, UpdateWebhook::default().is_active(false)).await.unwrap();
    let ended = server.ended_deliveries(2).await;
    assert_eq!((&ended[0]["event"], &ended[0]["attempts"]), (&json!("payment.completed"), &json!(0)));
    assert_eq!(ended[0]["error"]["code"], "endpoint_removed");
    assert_eq!(hanging.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_with_a_bad_field_or_address_or_by_anybody_else_is_refused() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let patch = |body: Value| {
        let request = server.request(Method::PATCH, &format!("/webhooks/{id}")).json(&body);
        async move {
            let answer = request.send().await.unwrap();
            (answer.status(), answer.json::<Value>().await.unwrap()["message"].take())
        }
    };
    let bad = patch(json!({"url": "ftp://a.example/", "events": [], "isActive": "no", "descripton": "x"})).await;
    assert_eq!(bad.0, StatusCode::BAD_REQUEST);
    assert_eq!(
        bad.1,
        json!([
            "url must begin with http:// or https://",
            "events must name at least one event, or be \"*\"",
            "isActive must be true or false",
            "descripton is not a field; did you mean description?"
        ])
    );
    let forbidden = patch(json!({"url": "http://169.254.169.254/latest"})).await;
    assert_eq!(forbidden.0, StatusCode::BAD_REQUEST, "{forbidden:?}");
    assert_eq!(server.client().webhooks().list().await.unwrap().remove(0).url, receiver.url());

    let other = server.new_key("another shop", "test");
    let path = format!("{}/api/v1/webhooks/{id}", server.url);
    let foreign = reqwest::Client::new().patch(path).bearer_auth(other).json(&json!({})).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);
}
