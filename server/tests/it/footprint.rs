//! How many bytes the store writes for one event with many deliveries.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    lost_files::{entries_end, files},
    server::{Server, payment_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_100_deliveries_is_stored_once() {
    let server = Server::start();
    // Nothing listens on this port.
    let url = "http://127.0.0.1:9/hook";
    for _ in 0..100 {
        let made = server.request(Method::POST, "/webhooks").json(&json!({"url": url, "events": "*"}));
        assert_eq!(made.send().await.unwrap().status(), StatusCode::CREATED);
    }
    let before = entries_end(&files(&server)[0]);
    let mut body = payment_of(&json!(100));
    body["metadata"] = json!({"long": "x".repeat(16_000)});
    let payment = server.create(&body).await;
    let deliveries = server.ended_deliveries(100).await;
    let written = entries_end(&files(&server)[0]) - before;
    assert!(written < 1_000_000, "{written} bytes for a 16 KB payment and its 100 failed deliveries");
    for delivery in deliveries {
        assert_eq!((&delivery["status"], &delivery["payload"]["data"]), (&json!("failed"), &payment));
    }
}
