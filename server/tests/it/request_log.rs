//! The log of a developer's requests.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use payments_client::{Client, ErrorCode, RequestPage};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    server::{Server, eventually, payment_of},
};

/// The log, once it has this many requests.
async fn logged(client: &Client, count: usize) -> RequestPage {
    eventually("the requests to be logged", || async {
        let page = client.request_log().list().limit(100).await.unwrap();
        (page.items.len() >= count).then_some(page)
    })
    .await
}

async fn requests_are_logged_for_their_developer(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let mine = server.new_key("Shop", "test");
    let client = Client::builder(&mine).base_url(format!("http://{}", server.address())).build().unwrap();
    let other = server.new_key("Other shop", "test");
    let ask = |method: Method, path: &str, key: &str| {
        server.keyless(method, &format!("/api/v1{path}")).bearer_auth(key).send()
    };
    let created = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&mine).json(&payment_of(&json!(5)));
    let created = created.send().await.unwrap();
    let id = created.headers()["x-request-id"].to_str().unwrap().to_owned();
    ask(Method::GET, "/payments?customerEmail=a@shop.example", &mine).await.unwrap();
    ask(Method::GET, "/payments/pay_0", &mine).await.unwrap();
    ask(Method::GET, "/payments", "sk_test_unknown").await.unwrap();
    ask(Method::GET, "/account", &other).await.unwrap();

    let page = logged(&client, 3).await;
    let found: Vec<_> = page.items.iter().map(|it| (&*it.method, &*it.path, it.status, it.error.clone())).collect();
    assert_eq!(
        found,
        [
            ("GET", "/api/v1/payments/pay_0", 404, Some(ErrorCode::PaymentNotFound)),
            ("GET", "/api/v1/payments", 200, None),
            ("POST", "/api/v1/payments", 201, None)
        ],
        "newest first, without queries, other developers and reads of the log"
    );
    assert_eq!((&page.items[2].id, &*page.items[2].key_last4), (&id, &mine[mine.len() - 4..]));
    assert!(page.items.windows(2).all(|pair| pair[0].created_at >= pair[1].created_at));
    let failed = client.request_log().list().failed().await.unwrap();
    assert_eq!(failed.items, page.items[..1]);
    let first = client.request_log().list().limit(2).await.unwrap();
    assert_eq!((first.items.len(), first.has_more), (2, true));
    let rest = client.request_log().list().before(&first.next.unwrap()).await.unwrap();
    assert_eq!((&rest.items[..], rest.has_more), (&page.items[2..], false));

    // A stopping server stores the requests that it has not stored yet.
    ask(Method::GET, "/account/balance", &mine).await.unwrap();
    server.terminate();
    server.restart();
    let client = Client::builder(&mine).base_url(format!("http://{}", server.address())).build().unwrap();
    let page = client.request_log().list().await.unwrap();
    assert_eq!((page.items.len(), &*page.items[0].path), (4, "/api/v1/account/balance"));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_logged_for_their_developer_on_a_directory() {
    requests_are_logged_for_their_developer(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_logged_for_their_developer_on_postgresql() {
    requests_are_logged_for_their_developer(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_request_log_name_wrong_parameters() {
    let server = Server::start();
    for (query, named) in [("before=x", "before"), ("failed=yes", "failed"), ("limit=0", "limit")] {
        let answer = server.request(Method::GET, &format!("/requests?{query}")).send().await.unwrap();
        assert_eq!(answer.status(), 400);
        let body: Value = answer.json().await.unwrap();
        assert!(body["message"].to_string().contains(named), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_bounded_in_characters_and_a_seconds_refusals_share_a_line() {
    let server = Server::start_with(&["--rate-limit", "5"]);
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Shop"]);
    let create = ["keys", "create", "--workspace", &workspace, "--environment", "test"];
    let [busy, reader] = [(); 2].map(|()| server.run_for_line(&create));
    let path = format!("/api/v1/payments/{}", "é".repeat(3000));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {busy}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    for nth in 0..40 {
        let asked = server.keyless(Method::GET, "/api/v1/account").bearer_auth(&busy).send().await.unwrap();
        assert_eq!(asked.status() == 429, nth >= 4);
    }
    // The requests that read the log are limited too.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let log = server.keyless(Method::GET, "/api/v1/requests?limit=100").bearer_auth(&reader).send().await.unwrap();
    let log: Value = log.json().await.unwrap();
    let items = log["items"].as_array().unwrap();
    let logged = items.last().unwrap()["path"].as_str().unwrap();
    assert_eq!((logged.chars().count(), path.starts_with(logged)), (160, true));
    let refused: Vec<_> = items.iter().filter(|it| it["status"] == 429).collect();
    let counted: u64 = refused.iter().map(|it| it["count"].as_u64().unwrap_or(1)).sum();
    assert_eq!(counted, 36, "{log}");
    assert!(refused.len() <= 5 && refused.iter().all(|it| it["error"] == "rate_limited"), "{log}");
}
