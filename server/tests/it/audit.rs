//! The audit log: every change that somebody makes is in it, with who, from where and what.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::Receiver,
    server::{Server, payment_of},
};

async fn own(server: &Server, key: &str) -> Vec<Value> {
    let request = server.keyless(Method::GET, "/api/v1/account/audit?limit=100").bearer_auth(key);
    request.send().await.unwrap().json::<Value>().await.unwrap()["items"].as_array().unwrap().clone()
}

async fn send(server: &Server, key: &str, method: Method, path: &str, body: Value) -> Value {
    let request = server.keyless(method, &format!("/api/v1{path}")).bearer_auth(key).json(&body);
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.json().await.unwrap()
}

async fn the_log_tells_who_changed_what(engine: Engine) {
    let server = Server::start_on(engine, &[]);
    let receiver = Receiver::ok().await;
    let key = server.new_key_with("Karim Store", "test", &["--name", "the shop"]);
    let webhook = send(&server, &key, Method::POST, "/webhooks", json!({"url": receiver.url(), "events": "*"})).await;
    let (id, secret) = (webhook["id"].as_str().unwrap(), webhook["secret"].as_str().unwrap());
    let path = format!("/webhooks/{id}");
    send(&server, &key, Method::PATCH, &path, json!({"description": "till 2"})).await;
    let rotated = send(&server, &key, Method::POST, &format!("{path}/rotate-secret"), json!({})).await;
    let mut order = payment_of(&json!(750));
    order["customer"] = json!({"name": "Karim Mia", "phone": "01712345678"});
    send(&server, &key, Method::POST, "/payments", order).await;
    send(&server, &key, Method::DELETE, &path, json!({})).await;

    let log = own(&server, &key).await;
    let actions: Vec<_> = log.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = [
        "DELETE /api/v1/webhooks/{id}",
        "POST /api/v1/webhooks/{id}/rotate-secret",
        "PATCH /api/v1/webhooks/{id}",
        "POST /api/v1/webhooks",
        "POST /admin/v1/workspaces/{workspace}/keys",
        "POST /admin/v1/workspaces",
    ];
    assert_eq!(actions, expected);
    assert_eq!(log[0]["subject"], id);
    assert_eq!((&log[2]["actor"]["type"], &log[2]["actor"]["name"]), (&json!("api_key"), &json!("the shop")));
    assert_eq!(log[2]["address"], "127.0.0.1");
    let change = |entry: &Value, field: &str| {
        let changes = entry["changes"].as_array().unwrap().clone();
        changes.into_iter().find(|it| it["field"].as_str().unwrap().ends_with(field)).unwrap()
    };
    let described = change(&log[2], "description");
    assert_eq!(described["record"], format!("endpoint/{id}"));
    let changed = change(&log[1], "endpoint.secret");
    let end_of = |secret: &str| format!("…{}", &secret[secret.len() - 4..]);
    assert_eq!(changed["before"], end_of(secret));
    assert_eq!(changed["after"], end_of(rotated["secret"].as_str().unwrap()));
    assert_eq!(log[5]["actor"]["type"], "command");
    let text = serde_json::to_string(&log).unwrap();
    assert!(!text.contains(secret) && !text.contains("Karim Mia") && !text.contains(&key));

    // Another merchant reads its own.
    let other = server.new_key_with("Rahim & Sons", "test", &[]);
    assert!(
        own(&server, &other).await.iter().all(|entry| entry["action"].as_str().unwrap().starts_with("POST /admin"))
    );
    // The operator reads all, filtered.
    let lines = server.run(&["audit", "list"]);
    assert!(lines.contains("POST /api/v1/webhooks") && lines.contains("description: - -> till 2"), "{lines}");
    let filtered = server.run(&["audit", "list", "--workspace", "Rahim & Sons", "--request", "keys", "--json"]);
    assert_eq!(filtered.lines().count(), 1, "{filtered}");
    let key_id = log[0]["actor"]["id"].as_str().unwrap();
    assert_eq!(server.run(&["audit", "list", "--actor", key_id, "--json"]).lines().count(), 4);
    assert_eq!(server.run(&["audit", "list", "--since", "2099-01-01"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_who_changed_what_on_a_directory() {
    the_log_tells_who_changed_what(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_who_changed_what_on_postgresql() {
    the_log_tells_who_changed_what(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_or_repeated_leaves_no_entry() {
    let server = Server::start();
    let key = server.new_key("Karim Store", "test");
    let before = own(&server, &key).await.len();
    let body = json!({"url": "http://127.0.0.1:9/", "events": "*"});
    for _ in 0..2 {
        let request = server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(&key);
        let response = request.header("idempotency-key", "hook-1").json(&body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
    let refused = server.keyless(Method::PATCH, "/api/v1/webhooks/wh_none").bearer_auth(&key).json(&json!({}));
    assert_eq!(refused.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(own(&server, &key).await.len(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_server_is_in_the_log_too_and_the_store_stays_sound() {
    let mut server = Server::start();
    let key = server.new_key("Karim Store", "test");
    assert!(server.terminate().success());
    server.run(&["workspaces", "ways", "--workspace", "Karim Store", "bkash"]);
    assert!(server.run(&["check"]).contains("no violation") || server.try_run(&["check"]).status.success());
    server.restart();
    let log = own(&server, &key).await;
    assert_eq!(log[0]["action"], "PUT /admin/v1/workspaces/{workspace}/ways");
    assert_eq!(log[0]["subject"], "Karim Store");
    assert_eq!(log[0]["changes"][0]["after"], "bkash");
}
