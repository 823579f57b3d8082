//! The administration API over TCP, with platform keys.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    server::{Server, server_binary, text_of},
};

const SCOPES: [&str; 11] = [
    "merchants:read",
    "merchants:write",
    "keys:write",
    "deliveries:write",
    "money:read",
    "money:write",
    "customers:write",
    "audit:read",
    "server:read",
    "server:write",
    "people:write",
];

/// A server, and the address of its administration API.
fn start(engine: Engine) -> (Server, String) {
    let server = Server::start_on(engine, &["--admin-listen", "127.0.0.1:0"]);
    server.assert_logs("/admin/v1 is on ");
    let log = server.log();
    let own = log.split("/admin/v1 is on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    (server, own)
}

fn platform_key(server: &Server, scopes: &str) -> String {
    let create = ["platform-keys", "create", "--name", "ops laptop", "--expires", "2099-01-01", "--scope", scopes];
    server.run_for_line(&create)
}

async fn ask(at: &str, key: &str, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request = reqwest::Client::new().request(method.parse().unwrap(), format!("{at}{path}")).bearer_auth(key);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

/// Runs a command against a server elsewhere.
fn remotely(at: &str, key: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(server_binary())
        .args(arguments)
        .args(["--server", at])
        .env("PAYMENTS_ADMIN_KEY", key)
        .env_remove("PAYMENTS_DATA_DIR")
        .output()
        .unwrap();
    (output.status.success(), text_of(&output))
}

async fn the_commands_work_from_elsewhere(engine: Engine) {
    let (server, at) = start(engine);
    let key = platform_key(&server, "merchants:write,keys:write,money:write,audit:read");
    let (done, id) = remotely(&at, &key, &["workspaces", "create", "--name", "Rahim & Sons / Dhaka"]);
    assert!(done && id.starts_with("ws_"), "{id}");
    let name = ["keys", "create", "--workspace", "Rahim & Sons / Dhaka", "--environment", "test"];
    let create = ["apps", "create", "--workspace", "Rahim & Sons / Dhaka", "--name", "Shop"];
    assert!(remotely(&at, &key, &create).1.contains("app_"));
    let (done, secret) = remotely(&at, &key, &name);
    assert!(done, "{secret}");
    let answer = server.keyless(Method::GET, "/api/v1/account").bearer_auth(secret.trim()).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap()["workspace"]["name"], "Rahim & Sons / Dhaka");
    // Both print the same.
    for list in [&["workspaces", "list"][..], &["apps", "list"], &["refunds", "list"], &["payouts", "list"]] {
        let (done, printed) = remotely(&at, &key, list);
        assert_eq!((done, printed.trim_end()), (true, server.run(list).trim_end()), "{list:?}");
    }
    let (done, refused) = remotely(&at, &key, &["gateways", "list"]);
    assert!(!done && refused.contains("this needs the permission server:read"), "{refused}");
    let (done, refused) = remotely(&at, "adm_unknown", &["workspaces", "list"]);
    assert!(!done && refused.contains("with a platform key that works"), "{refused}");
    let (done, refused) = remotely(&at, &key, &["settlements", "report"]);
    assert!(!done && refused.contains("reads a store"), "{refused}");
    assert!(!server.log().contains(&key) && !server.run(&["platform-keys", "list"]).contains(&key));

    let listed: Value = serde_json::from_str(&server.run(&["platform-keys", "list", "--json"])).unwrap();
    let own = listed["platformKeys"]["rows"][0]["id"].as_str().unwrap();
    server.run(&["platform-keys", "revoke", own]);
    assert!(!remotely(&at, &key, &["workspaces", "list"]).0, "the key is revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_from_elsewhere_on_a_directory() {
    the_commands_work_from_elsewhere(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_from_elsewhere_on_postgresql() {
    the_commands_work_from_elsewhere(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_reaches_the_routes_that_need_it_and_no_other() {
    let (server, at) = start(Engine::Directory);
    let key = platform_key(&server, "server:read");
    let (status, document) = ask(&at, &key, "GET", "/admin/v1/openapi.json", None).await;
    assert_eq!(status, StatusCode::OK);
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let needed = operation["description"].as_str().unwrap().split('`').nth(1).unwrap().to_owned();
            let path = path.split('/').map(|part| if part.starts_with('{') { "x1" } else { part });
            routes.push((method.to_uppercase(), path.collect::<Vec<_>>().join("/"), needed));
        }
    }
    assert!(routes.len() > 35, "{}", routes.len());
    for scope in SCOPES {
        let key = platform_key(&server, scope);
        let grants = |needed: &str| {
            needed == scope
                || (needed == "merchants:read" && ["merchants:write", "keys:write"].contains(&scope))
                || (needed.ends_with(":read") && needed.replace("read", "write") == scope)
        };
        for (method, path, needed) in &routes {
            let body = (method != "GET").then(|| json!({}));
            let (status, answer) = ask(&at, &key, method, path, body).await;
            let message = answer["message"].as_str().unwrap_or_default();
            let is_refused = status == StatusCode::FORBIDDEN && answer["code"] == "permission_missing";
            // A request with missing fields is refused before its sender is.
            let is_unreadable = message.starts_with("this request is not right");
            assert!(is_refused != grants(needed) || is_unreadable, "{scope}: {method} {path}: {status} {answer}");
            assert!(!status.is_server_error(), "{method} {path}: {answer}");
        }
    }
    for (key, status) in [("", StatusCode::UNAUTHORIZED), ("sk_test_demo", StatusCode::UNAUTHORIZED)] {
        assert_eq!(ask(&at, key, "GET", "/admin/v1/workspaces", None).await.0, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused_with_a_sentence_and_the_public_listener_has_no_such_path() {
    let (server, at) = start(Engine::Directory);
    let key = platform_key(&server, "merchants:write,money:write,audit:read");
    for (method, path, body, status, words) in [
        ("GET", "/admin/v1/nothing", None, 404, "there is no such path"),
        ("DELETE", "/admin/v1/workspaces", None, 405, "this path allows GET, POST"),
        ("POST", "/admin/v1/workspaces", Some(json!({})), 400, "missing field `name`"),
        ("POST", "/admin/v1/workspaces", Some(json!({"name": "a", "nam": "b"})), 400, "unknown field `nam`"),
        (
            "POST",
            "/admin/v1/workspaces",
            Some(json!({"name": "a", "verb": "back_up"})),
            400,
            "leave verb and action out",
        ),
        ("POST", "/admin/v1/workspaces", Some(json!([])), 400, "the body must be a JSON object"),
        ("PUT", "/admin/v1/workspaces/none/ways", Some(json!({"ways": []})), 400, "no workspace has this id or name"),
        ("GET", "/admin/v1/coverage?day=tomorrow", None, 400, "this request is not right"),
        ("GET", "/admin/v1/audit?before=x", None, 400, "this request is not right"),
        ("GET", "/admin/v1/settlements/waiting?olderThanDays=3&olderThanDays=4", None, 400, "must be given once"),
        ("GET", "/admin/v1/settlements/waiting?olderThanDays=3", None, 200, ""),
    ] {
        let (given, answer) = ask(&at, &key, method, path, body).await;
        assert_eq!(given.as_u16(), status, "{method} {path}: {answer}");
        assert!(answer["message"].as_str().unwrap_or_default().contains(words), "{method} {path}: {answer}");
    }
    let public = server.keyless(Method::GET, "/admin/v1/workspaces").bearer_auth(&key).send().await.unwrap();
    assert_eq!(public.status(), StatusCode::NOT_FOUND);
    for path in ["/", "/healthz", "/api/v1/payments", "/metrics"] {
        let answer = reqwest::get(format!("{at}{path}")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
