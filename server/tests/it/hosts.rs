//! A web page cannot reach a server on loopback by giving its own name the address 127.0.0.1.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use crate::server::{SANDBOX_KEY, Server, launch, server_binary};

const STRANGE: &str = "rebound.evil.example:8080";

async fn ask(server: &Server, method: Method, path: &str, host: &str) -> reqwest::Response {
    server.keyless(method, path).header("host", host).bearer_auth(SANDBOX_KEY).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_loopback_answers_no_request_to_a_strange_host() {
    let server = Server::start();
    for (method, path) in [
        (Method::GET, "/api/v1/account"),
        (Method::GET, "/api/v1/webhooks"),
        (Method::POST, "/api/v1/checkout/demo-session"),
        (Method::GET, "/dashboard"),
        (Method::GET, "/metrics"),
        (Method::GET, "/readyz"),
        (Method::GET, "/nowhere"),
    ] {
        let answer = ask(&server, method, path, STRANGE).await;
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], "host_unknown", "{path}");
    }
    let port = server.address().rsplit(':').next().unwrap();
    for host in ["localhost", "127.0.0.1", "[::1]", "shop.localhost", "LOCALHOST."] {
        let answer = ask(&server, Method::GET, "/api/v1/account", &format!("{host}:{port}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_local_proxy_answers_for_its_base_url_and_allowed_hosts() {
    let arguments = ["--base-url", "https://pay.example", "--metrics-listen", "127.0.0.1:0"];
    let server = Server::start_with(&[&arguments[..], &["--allowed-host", "till.lan,payments_upstream"]].concat());
    for (host, status) in [
        ("pay.example", 200),
        ("PAY.example:443", 200),
        ("till.lan:8080", 200),
        ("payments_upstream", 200),
        ("127.0.0.1", 200),
        ("pay.example.evil.example", 421),
        (STRANGE, 421),
    ] {
        assert_eq!(ask(&server, Method::GET, "/readyz", host).await.status().as_u16(), status, "{host}");
    }
    let log = server.log();
    let metrics = log.split("/metrics is on ").nth(1).unwrap().split_whitespace().next().unwrap();
    for (host, status) in [("pay.example", 200), ("localhost", 200), (STRANGE, 421)] {
        let answer =
            reqwest::Client::new().get(format!("{metrics}/metrics")).header("host", host).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reachable_from_other_machines_answers_for_any_host() {
    let directory = TempDir::new().unwrap();
    let (mut process, url) = launch(Command::new(server_binary()), directory.path(), "0.0.0.0:0", &[]);
    let answer = reqwest::Client::new().get(format!("{url}/healthz")).header("host", STRANGE).send().await;
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}
