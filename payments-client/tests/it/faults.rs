//! Faulty servers: errors, lost responses, hangs and redirects.

use std::time::{Duration, Instant};

use payments_client::{Client, CreatePayment, ErrorCode, Method, Money, SimulateOutcome};

use crate::scripted_server::{Action, ScriptedServer, respond};

const LIST: &str = r#"{"items":[],"total":0,"page":1,"limit":20}"#;
const REMOVED: &str = r#"{"success":true,"message":"Webhook endpoint removed"}"#;

fn cup() -> CreatePayment {
    CreatePayment::of(Money::taka(750)).success_url("https://shop.example/paid").cancel_url("https://shop.example/cart")
}

fn truncated() -> Action {
    Action::Respond("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"it".into())
}

fn key_of(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).expect("it carries a key")
}

#[tokio::test]
async fn transient_failures_are_retried() {
    for action in [
        respond(500, "", "oops"),
        respond(503, "retry-after: 0\r\n", ""),
        respond(429, "", ""),
        respond(408, "", ""),
        truncated(),
        Action::Respond(String::new()),
    ] {
        let server = ScriptedServer::start(vec![action, respond(200, "", LIST)]).await;
        let response = server.client().payments().list().send_for_response().await.unwrap();
        assert_eq!((response.tries, response.value.total), (2, Some(0)));
    }
}

#[tokio::test]
async fn all_tries_and_their_error_have_the_same_idempotency_key() {
    let server = ScriptedServer::start(vec![respond(500, "", "<html>")]).await;
    let error = server.client().payments().create(cup()).await.unwrap_err();
    let requests = server.requests();
    assert_eq!((requests.len(), error.tries(), error.status()), (3, 3, Some(500)));
    assert!(error.is_server() && error.is_retryable());
    assert_eq!(error.response().unwrap().body, "<html>");
    assert!(requests.iter().all(|request| key_of(request) == error.idempotency_key().unwrap().as_str()));
    assert!(!format!("{error:?}{error}").contains("verysecret"));
}

#[tokio::test]
async fn a_request_without_a_key_is_retried_only_if_it_did_not_run() {
    for (action, requests) in [(respond(500, "", ""), 1), (truncated(), 1), (respond(429, "", ""), 3)] {
        let server = ScriptedServer::start(vec![action]).await;
        let id = "pay_1".parse().unwrap();
        let error = server.client().checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap_err();
        assert_eq!(server.requests().len(), requests, "{error:?}");
        assert!(server.requests().iter().all(|request| !request.contains("verysecret")));
    }
}

#[tokio::test]
async fn a_stored_failure_is_not_retried() {
    let server = ScriptedServer::start(vec![respond(503, "idempotent-replayed: true\r\n", "")]).await;
    assert_eq!(server.client().payments().create(cup()).await.unwrap_err().tries(), 1);
}

#[tokio::test]
async fn a_call_fails_if_retry_after_exceeds_the_deadline() {
    let begun = Instant::now();
    for (header, seconds) in [
        ("retry-after: 3600\r\n", 3600),
        ("date: Sun, 01 Mar 2026 00:00:00 GMT\r\nretry-after: Sun, 01 Mar 2026 01:00:00 GMT\r\n", 3600),
    ] {
        let server = ScriptedServer::start(vec![respond(429, header, "")]).await;
        let error = server.client().payments().list().await.unwrap_err();
        assert!(error.is_rate_limited());
        assert_eq!((error.tries(), error.retry_after()), (1, Some(Duration::from_secs(seconds))));
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn a_hanging_server_causes_a_timeout_on_each_try() {
    let server = ScriptedServer::start(vec![Action::Hang]).await;
    let client = server.builder().attempt_timeout(Duration::from_millis(50)).build().unwrap();
    let error = client.payments().create(cup()).await.unwrap_err();
    assert!(error.is_timeout() && error.is_transport() && error.is_retryable(), "{error:?}");
    assert_eq!((error.tries(), error.status()), (3, None));
}

#[tokio::test]
async fn a_timeout_includes_the_body_and_is_not_early() {
    let part = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"it";
    let server = ScriptedServer::start(vec![Action::RespondAndHang(part.into())]).await;
    let timeout = Duration::from_millis(100);
    let client = server.builder().attempt_timeout(timeout).retries(0).build().unwrap();
    // The kept timer is in a different state for each of these requests.
    for _ in 0..5 {
        let begun = Instant::now();
        let error = client.payments().list().await.unwrap_err();
        assert!(error.is_timeout() && std::error::Error::source(&error).is_some(), "{error:?}");
        assert!(begun.elapsed() >= timeout, "{:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test]
async fn a_body_of_several_chunks_is_complete() {
    let chunks: String = LIST.as_bytes().chunks(7).map(|part| chunk(std::str::from_utf8(part).unwrap())).collect();
    let response = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{}", chunk(""));
    let server = ScriptedServer::start(vec![Action::Respond(response)]).await;
    assert_eq!(server.client().payments().list().await.unwrap().limit, 20);
}

fn chunk(part: &str) -> String {
    format!("{:x}\r\n{part}\r\n", part.len())
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error() {
    let client = Client::builder("sk_test_1").base_url("http://127.0.0.1:9").retries(0).build().unwrap();
    let error = client.payments().list().await.unwrap_err();
    assert!(error.is_connect() && std::error::Error::source(&error).is_some(), "{error:?}");
}

#[tokio::test]
async fn an_unparseable_response_is_a_decode_error_with_its_path() {
    let broken = r#"{"items":[],"total":"many","page":1,"limit":20}"#;
    for (status, body, path) in
        [(200, broken, "total"), (200, "<html>", "."), (204, "", "."), (200, "{\"items\":[", ".")]
    {
        let server = ScriptedServer::start(vec![respond(status, "", body)]).await;
        let error = server.client().payments().list().await.unwrap_err();
        assert!(error.is_decode() && !error.is_retryable(), "{error:?}");
        assert_eq!((error.status(), error.tries()), (Some(status), 1));
        assert!(error.decode_path().unwrap().starts_with(path) || path == ".", "{error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = ScriptedServer::start(vec![respond(200, "", LIST)]).await;
    let server = ScriptedServer::start(vec![respond(302, &format!("location: {}/\r\n", elsewhere.url), "")]).await;
    assert_eq!(server.client().payments().list().await.unwrap_err().status(), Some(302));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_delete_succeeds_if_the_response_to_the_first_try_was_lost() {
    let id = "wh_1".parse().unwrap();
    let missing = || respond(404, "", r#"{"statusCode":404,"message":"no such webhook","error":"Not Found"}"#);
    let server = ScriptedServer::start(vec![truncated(), missing()]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap().success);
    let server = ScriptedServer::start(vec![truncated(), missing()]).await;
    let raw = server.client().webhooks().delete(&id).send_raw().await.unwrap_err();
    assert!(raw.is_not_found() && raw.tries() == 2, "no response is made up: {raw:?}");
    let server = ScriptedServer::start(vec![missing()]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap_err().is_not_found());
    let server = ScriptedServer::start(vec![truncated(), respond(200, "", REMOVED)]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap().success);
}

#[tokio::test]
async fn a_request_to_any_route_is_retried_if_http_allows_it() {
    const ROUTE: &str = "/api/v1/later";
    let keyed = |client: Client| client.request(Method::POST, ROUTE).idempotency_key("once");
    let server = ScriptedServer::start(vec![truncated(), respond(200, "", "[1]")]).await;
    let response = keyed(server.client()).json(&[7]).await.unwrap();
    assert_eq!((response.status, response.tries, response.json::<[u8; 1]>().unwrap()), (200, 2, [1]));
    assert!(server.requests().iter().all(|request| key_of(request) == "once" && request.ends_with("\r\n\r\n[7]")));
    for (method, requests) in [(Method::GET, 3), (Method::PUT, 3), (Method::POST, 1), (Method::PATCH, 1)] {
        let server = ScriptedServer::start(vec![respond(503, "", "{}")]).await;
        let error = server.client().request(method.clone(), ROUTE).await.unwrap_err();
        assert_eq!((server.requests().len(), error.status()), (requests, Some(503)), "{method}");
    }
}

#[tokio::test]
async fn an_error_of_an_older_or_a_newer_server_is_readable() {
    const SPECIFIED: &str = r#""statusCode":404,"message":"gone","error":"Not Found""#;
    for (rest, code) in [
        ("", None),
        (r#","code":7,"fields":{}"#, None),
        (r#","code":"payment_not_found","hint":"x""#, Some(ErrorCode::PaymentNotFound)),
        (r#","code":"payment_hidden","fields":[]"#, Some("payment_hidden".into())),
    ] {
        let server = ScriptedServer::start(vec![respond(404, "", &format!("{{{SPECIFIED}{rest}}}"))]).await;
        let error = server.client().payments().retrieve(&"pay_1".parse().unwrap()).await.unwrap_err();
        assert_eq!(
            (error.code(), error.fields(), error.messages()),
            (code.as_ref(), &[][..], &["gone".to_owned()][..])
        );
    }
}

#[tokio::test]
async fn a_dead_server_is_not_hammered_by_clones() {
    let server = ScriptedServer::start(vec![respond(503, "", "")]).await;
    let client = server.builder().retry_budget(5).build().unwrap();
    for _ in 0..10 {
        assert!(client.clone().payments().list().await.unwrap_err().is_server());
    }
    assert_eq!(server.requests().len(), 10 + 5);
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_closed_does_not_cost_a_try() {
    // The server closes the connection without `connection: close`.
    let open = || Action::Respond(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{LIST}", LIST.len()));
    let server = ScriptedServer::start(vec![open()]).await;
    let client = server.builder().retries(0).build().unwrap();
    for _ in 0..50 {
        let response = client.payments().list().send_for_response().await.unwrap();
        assert_eq!(response.tries, 1);
    }
}
