//! What a healthy server never does.

use std::time::{Duration, Instant};

use payments_client::{Client, CreatePayment, SimulateOutcome};

use crate::ill_server::{Act, IllServer, answer};

const LIST: &str = r#"{"items":[],"total":0,"page":1,"limit":20}"#;
const REMOVED: &str = r#"{"success":true,"message":"Webhook endpoint removed"}"#;

fn cup() -> CreatePayment {
    CreatePayment::new("750".parse().unwrap(), "https://shop.example/paid", "https://shop.example/cart")
}

fn cut() -> Act {
    Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"it".into())
}

fn key_of(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).expect("it carries a key")
}

#[tokio::test]
async fn what_may_pass_is_asked_for_again() {
    for act in [
        answer(500, "", "oops"),
        answer(503, "retry-after: 0\r\n", ""),
        answer(429, "", ""),
        answer(408, "", ""),
        cut(),
        Act::Say(String::new()),
    ] {
        let server = IllServer::start(vec![act, answer(200, "", LIST)]).await;
        let response = server.client().payments().list().send_for_response().await.unwrap();
        assert_eq!((response.tries, response.value.total), (2, 0));
    }
}

#[tokio::test]
async fn the_key_is_the_same_over_all_tries_and_in_the_error() {
    let server = IllServer::start(vec![answer(500, "", "<html>")]).await;
    let error = server.client().payments().create(cup()).await.unwrap_err();
    let heard = server.heard();
    assert_eq!((heard.len(), error.tries(), error.status()), (3, 3, Some(500)));
    assert!(error.is_server() && error.is_retryable());
    assert_eq!(error.body_start(), Some("<html>"));
    assert!(heard.iter().all(|request| key_of(request) == error.idempotency_key().unwrap().as_str()));
    assert!(!format!("{error:?}{error}").contains("verysecret"));
}

#[tokio::test]
async fn a_request_without_a_key_is_repeated_only_when_it_did_not_run() {
    for (act, requests) in [(answer(500, "", ""), 1), (cut(), 1), (answer(429, "", ""), 3)] {
        let server = IllServer::start(vec![act]).await;
        let id = "pay_1".parse().unwrap();
        let error = server.client().checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap_err();
        assert_eq!(server.heard().len(), requests, "{error:?}");
        assert!(server.heard().iter().all(|request| !request.contains("verysecret")));
    }
}

#[tokio::test]
async fn a_failure_that_was_kept_is_final() {
    let server = IllServer::start(vec![answer(503, "idempotent-replayed: true\r\n", "")]).await;
    assert_eq!(server.client().payments().create(cup()).await.unwrap_err().tries(), 1);
}

#[tokio::test]
async fn a_server_that_asks_for_more_than_the_deadline_is_not_waited_for() {
    let begun = Instant::now();
    for (header, seconds) in [
        ("retry-after: 3600\r\n", 3600),
        ("date: Sun, 01 Mar 2026 00:00:00 GMT\r\nretry-after: Sun, 01 Mar 2026 01:00:00 GMT\r\n", 3600),
    ] {
        let server = IllServer::start(vec![answer(429, header, "")]).await;
        let error = server.client().payments().list().await.unwrap_err();
        assert!(error.is_rate_limited());
        assert_eq!((error.tries(), error.retry_after()), (1, Some(Duration::from_secs(seconds))));
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_within_the_deadline() {
    let server = IllServer::start(vec![Act::Hang]).await;
    let client = server.builder().attempt_timeout(Duration::from_millis(50)).build().unwrap();
    let error = client.payments().create(cup()).await.unwrap_err();
    assert!(error.is_timeout() && error.is_transport() && error.is_retryable(), "{error:?}");
    assert_eq!((error.tries(), error.status()), (3, None));
}

#[tokio::test]
async fn nobody_who_listens_is_no_connection() {
    let client = Client::builder("sk_test_1").base_url("http://127.0.0.1:9").retries(0).build().unwrap();
    let error = client.payments().list().await.unwrap_err();
    assert!(error.is_connect() && std::error::Error::source(&error).is_some(), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_says_where() {
    let broken = r#"{"items":[],"total":"many","page":1,"limit":20}"#;
    for (status, body, path) in
        [(200, broken, "total"), (200, "<html>", "."), (204, "", "."), (200, "{\"items\":[", ".")]
    {
        let server = IllServer::start(vec![answer(status, "", body)]).await;
        let error = server.client().payments().list().await.unwrap_err();
        assert!(error.is_decode() && !error.is_retryable(), "{error:?}");
        assert_eq!((error.status(), error.tries()), (Some(status), 1));
        assert!(error.decode_path().unwrap().starts_with(path) || path == ".", "{error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = IllServer::start(vec![answer(200, "", LIST)]).await;
    let server = IllServer::start(vec![answer(302, &format!("location: {}/\r\n", elsewhere.url), "")]).await;
    assert_eq!(server.client().payments().list().await.unwrap_err().status(), Some(302));
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn a_removal_whose_answer_was_lost_is_a_success() {
    let id = "wh_1".parse().unwrap();
    let missing = || answer(404, "", r#"{"statusCode":404,"message":"no such webhook","error":"Not Found"}"#);
    let server = IllServer::start(vec![cut(), missing()]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap().success);
    let server = IllServer::start(vec![missing()]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap_err().is_not_found());
    let server = IllServer::start(vec![cut(), answer(200, "", REMOVED)]).await;
    assert!(server.client().webhooks().delete(&id).await.unwrap().success);
}

#[tokio::test]
async fn a_dead_server_is_not_hammered_by_clones() {
    let server = IllServer::start(vec![answer(503, "", "")]).await;
    let client = server.builder().retry_budget(5).build().unwrap();
    for _ in 0..10 {
        assert!(client.clone().payments().list().await.unwrap_err().is_server());
    }
    assert_eq!(server.heard().len(), 10 + 5);
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_has_closed_costs_no_try() {
    // It says nothing of closing, and closes.
    let open = || Act::Say(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{LIST}", LIST.len()));
    let server = IllServer::start(vec![open()]).await;
    let client = server.builder().retries(0).build().unwrap();
    for _ in 0..50 {
        let response = client.payments().list().send_for_response().await.unwrap();
        assert_eq!(response.tries, 1);
    }
}
