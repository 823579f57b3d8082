//! The sandbox: on for a local server, off for a public one unless `--sandbox` is given.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{SANDBOX_KEY, Server, payment_of};

const PUBLIC: [&str; 2] = ["--base-url", "https://pay.example"];
/// The pages that show the sandbox key.
const PAGES: [&str; 4] = ["/", "/docs", "/dashboard", "/api/v1/openapi.json"];

async fn demo_session(server: &Server) -> (StatusCode, Value) {
    let answer = server.keyless(Method::POST, "/api/v1/checkout/demo-session").send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn account(server: &Server) -> StatusCode {
    server.request(Method::GET, "/account").send().await.unwrap().status()
}

async fn text(server: &Server, path: &str) -> String {
    let answer = server.keyless(Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.text().await.unwrap()
}

fn keys(server: &Server) -> Value {
    serde_json::from_str::<Value>(&server.run(&["keys", "list", "--json"])).unwrap()["keys"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_server_has_no_sandbox() {
    let server = Server::start_with(&PUBLIC);
    assert_eq!(account(&server).await, StatusCode::UNAUTHORIZED);
    let (status, body) = demo_session(&server).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(body["message"], "the sandbox is off on this server; its operator turns it on with --sandbox");
    for page in PAGES {
        assert!(!text(&server, page).await.contains(SANDBOX_KEY), "{page} shows the key");
    }
    assert!(text(&server, "/docs").await.contains("Bearer sk_test_..."));
    assert_eq!(keys(&server), json!([]), "the server created a sandbox workspace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_server_refuses_a_stored_sandbox_key_unless_the_flag_allows_it() {
    let mut server = Server::start();
    server.create(&payment_of(&json!(5))).await;
    server.kill();
    server.restart_with(&PUBLIC);
    assert_eq!(keys(&server).as_array().unwrap().len(), 1, "the server deleted the key");
    assert_eq!(account(&server).await, StatusCode::UNAUTHORIZED);
    assert_eq!(demo_session(&server).await.0, StatusCode::NOT_FOUND);

    server.kill();
    server.restart_with(&[&PUBLIC[..], &["--sandbox"]].concat());
    assert_eq!(account(&server).await, StatusCode::OK);
    assert_eq!(demo_session(&server).await.0, StatusCode::CREATED);
    for page in &PAGES[..3] {
        assert!(text(&server, page).await.contains(SANDBOX_KEY), "{page} does not show the key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_sandbox_key_is_shown_on_no_page() {
    let server = Server::start();
    assert!(text(&server, "/docs").await.contains(SANDBOX_KEY));
    let id = keys(&server)[0]["id"].as_str().unwrap().to_owned();
    server.run(&["keys", "revoke", &id]);
    for page in PAGES {
        assert!(!text(&server, page).await.contains(SANDBOX_KEY), "{page} shows the key");
    }
    assert_eq!(account(&server).await, StatusCode::UNAUTHORIZED);
    let (status, body) = demo_session(&server).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(body["message"], "the sandbox is closed on this server: its key was revoked");
}
