//! The limit of webhook endpoints per developer and environment, under concurrent requests.

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

const REFUSED: &str = "webhook endpoint limit reached (100 per developer and environment); delete one first";

fn create(server: &Server, idempotency_key: &str) -> reqwest::RequestBuilder {
    let body = json!({"url": "http://127.0.0.1:9/hook", "events": ["payment.refunded"]});
    server.request(Method::POST, "/webhooks").header("idempotency-key", idempotency_key).json(&body)
}

async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn listed(server: &Server) -> Vec<Value> {
    serde_json::from_value(server.get("/webhooks").await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_concurrent_creates_make_exactly_a_hundred_endpoints() {
    let server = Server::start();
    let keys: Vec<String> = (0..200).map(|number| format!("endpoint-{number}")).collect();
    let answers = join_all(keys.iter().map(|key| answer(create(&server, key)))).await;
    let made = answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(made, 100);
    for (_, body) in answers.iter().filter(|(status, _)| *status != StatusCode::CREATED) {
        assert_eq!((&body["statusCode"], &body["message"]), (&json!(409), &json!(REFUSED)));
    }
    assert_eq!(listed(&server).await.len(), 100);

    // A repeated create is replayed; a repeated refusal is a new refusal.
    for (key, (status, body)) in keys.iter().zip(&answers) {
        let again = answer(create(&server, key)).await;
        assert_eq!((&again.0, &again.1["id"]), (status, &body["id"]));
    }

    // The other environment has its own limit.
    let account = server.get("/account").await;
    let workspace = account["workspace"]["id"].as_str().unwrap();
    let live = server.run(&["keys", "create", "--workspace", workspace, "--environment", "live"]);
    let body = json!({"url": "http://127.0.0.1:9/hook", "events": "*"});
    let other = server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(live).json(&body);
    assert_eq!(answer(other).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_removals_of_one_endpoint_make_room_for_one_new_endpoint() {
    let server = Server::start();
    join_all((0..100).map(|number| answer(create(&server, &number.to_string())))).await;
    let endpoints = listed(&server).await;
    assert_eq!(endpoints.len(), 100);
    let path = format!("/webhooks/{}", endpoints[0]["id"].as_str().unwrap());
    let removed = join_all((0..8).map(|_| answer(server.request(Method::DELETE, &path)))).await;
    assert!(removed.iter().any(|(status, _)| *status == StatusCode::OK), "{removed:?}");
    assert_eq!(listed(&server).await.len(), 99);
    let answers = join_all((0..8).map(|number| answer(create(&server, &format!("again-{number}"))))).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).count(), 1, "{answers:?}");
    assert_eq!(listed(&server).await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_above_the_endpoint_limit_keeps_its_endpoints_and_refuses_new_ones() {
    let mut server = Server::start_with(&["--max-webhook-endpoints", "5"]);
    join_all((0..5).map(|number| answer(create(&server, &number.to_string())))).await;
    server.kill();
    server.restart_with(&["--max-webhook-endpoints", "2"]);
    let endpoints = listed(&server).await;
    assert_eq!(endpoints.len(), 5);
    let (status, body) = answer(create(&server, "new")).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(body["message"], REFUSED.replace("100", "2"));
    server.create(&payment_of(&json!(5))).await;
    for endpoint in &endpoints[..4] {
        let path = format!("/webhooks/{}", endpoint["id"].as_str().unwrap());
        assert_eq!(answer(create(&server, "new")).await.0, StatusCode::CONFLICT);
        assert_eq!(answer(server.request(Method::DELETE, &path)).await.0, StatusCode::OK);
    }
    assert_eq!(answer(create(&server, "new")).await.0, StatusCode::CREATED);
    assert_eq!(listed(&server).await.len(), 2);
}
