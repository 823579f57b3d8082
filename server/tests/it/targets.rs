//! Which addresses may receive webhooks, by server configuration.

use payments_client::{Client, CreateWebhook, Subscription};
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
    let shop = Client::builder(server.new_key("Rahim", "test")).base_url(&server.url).build().unwrap();
    inside.subscribe(&shop).await;
    let old = shop.webhooks().list().await.unwrap().remove(0);
    server.kill();
    let server = server.restarted_with(&["--base-url", "https://pay.example", "--sandbox"]);
    for url in [inside.url(), inside.url().replace("http", "https"), "https://localhost/hook".to_owned()] {
        let (status, body) = subscribe(&server, &url).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{url}: {body}");
    }
    let ping = shop.webhooks().test(&old.id).await.unwrap().unwrap();
    assert_eq!((ping.response_status, ping.response_body), (None, None));
    assert_eq!(ping.error.unwrap().code.as_str(), "address_not_allowed");
    assert!(inside.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_cannot_be_the_server_itself_and_a_webhook_that_reaches_it_does_nothing() {
    let mut server = Server::start();
    let demo = "/api/v1/checkout/demo-session";
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "a.localhost"] {
        let (status, body) = subscribe(&server, &format!("http://{host}:{port}{demo}")).await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("url_not_allowed")), "{body}");
        assert_eq!(body["message"][0], "url must not lead to this server itself");
    }
    let elsewhere = Receiver::ok().await;
    let secret = elsewhere.subscribe(&server.client()).await;
    assert!(secret.starts_with("whsec_"));
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let moved = json!({"url": format!("http://localhost:{port}{demo}")});
    let moved = server.request(Method::PATCH, &format!("/webhooks/{id}")).json(&moved).send().await.unwrap();
    assert_eq!(moved.status(), StatusCode::BAD_REQUEST);

    // Sends webhooks on with their headers, as a proxy does.
    server.client().webhooks().test(&id).await.unwrap();
    let received = elsewhere.received().remove(0);
    let total = async || server.get("/payments").await["total"].clone();
    let before = total().await;
    let pass_on = server.keyless(Method::POST, demo).headers(received.headers.clone()).body(received.body.clone());
    let answer = pass_on.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert_eq!(answer.json::<Value>().await.unwrap()["code"], "webhook_loop");
    assert_eq!(total().await, before);

    server.kill();
    let server = server.restarted_with(&["--base-url", "https://pay.example", "--sandbox"]);
    let (status, body) = subscribe(&server, "https://pay.example/hook").await;
    assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("url_not_allowed")), "{body}");
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
