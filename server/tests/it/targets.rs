//! Which addresses may receive webhooks, by server configuration.

use payments_client::{CreateWebhook, Subscription};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::{Receiver, Reply},
    server::Server,
};

/// Creates an endpoint at this URL and returns the response's status and body.
async fn subscribe(server: &Server, url: &str) -> (StatusCode, Value) {
    let body = json!({"url": url, "events": "*"});
    let answer = server.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_server_sends_no_webhook_to_its_own_machine() {
    let inside = Receiver::start(Reply::Status(StatusCode::OK, "secret".to_owned())).await;
    let mut server = Server::start();
    // The endpoint was created while the server was local.
    inside.subscribe(&server.client()).await;
    let old = server.client().webhooks().list().await.unwrap().remove(0);
    server.kill();
    let server = server.restarted_with(&["--base-url", "https://pay.example", "--sandbox"]);
    for url in [inside.url(), inside.url().replace("http", "https"), "https://localhost/hook".to_owned()] {
        let (status, body) = subscribe(&server, &url).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{url}: {body}");
    }
    let ping = server.client().webhooks().test(&old.id).await.unwrap().unwrap();
    assert_eq!((ping.response_status, ping.response_body), (None, None));
    assert_eq!(ping.error.unwrap().code.as_str(), "address_not_allowed");
    assert!(inside.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn allow_local_targets_lets_a_public_server_send_webhooks_to_its_own_machine() {
    let inside = Receiver::ok().await;
    let server = Server::start_with(&["--base-url", "https://pay.example", "--sandbox", "--allow-local-targets"]);
    let params = CreateWebhook::new(inside.url(), Subscription::All);
    let endpoint = server.client().webhooks().create(params).await.unwrap();
    let ping = server.client().webhooks().test(&endpoint.id).await.unwrap().unwrap();
    assert_eq!(ping.response_status, Some(200));
}
