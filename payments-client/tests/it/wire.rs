//! Unexpected responses.

use std::time::Duration;

use payments_client::{Client, KeyHeader};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, header, method},
};

async fn client_of(server: &MockServer) -> Client {
    let backoff = Duration::from_millis(1);
    Client::builder("sk_test_demo").base_url(server.uri()).backoff(backoff, backoff).build().unwrap()
}

async fn server_returning(template: ResponseTemplate) -> (MockServer, Client) {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(template).mount(&server).await;
    let client = client_of(&server).await;
    (server, client)
}

#[tokio::test]
async fn html_and_no_content_are_decode_errors_with_their_status() {
    for (template, status) in [
        (ResponseTemplate::new(200).set_body_raw("<html>maintenance</html>", "text/html"), 200),
        (ResponseTemplate::new(204), 204),
    ] {
        let (server, client) = server_returning(template).await;
        let error = client.account().balance().await.unwrap_err();
        assert!(error.is_decode() && !error.is_retryable(), "{error:?}");
        assert_eq!((error.status(), error.tries()), (Some(status), 1));
        assert_eq!(server.received_requests().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_server_error_with_html_is_retried_and_keeps_its_status() {
    let server = MockServer::start().await;
    let page = ResponseTemplate::new(502).set_body_raw("<html>bad gateway</html>", "text/html");
    Mock::given(method("GET")).respond_with(page).up_to_n_times(1).mount(&server).await;
    let balances =
        ResponseTemplate::new(200).set_body_raw(r#"{"bdt_balance":1.5,"usd_balance":0}"#, "application/json");
    Mock::given(method("GET")).respond_with(balances).mount(&server).await;
    let response = client_of(&server).await.account().balance().send_for_response().await.unwrap();
    assert_eq!((response.tries, response.value.bdt_balance.as_minor()), (2, 150));
    let (_server, client) = server_returning(ResponseTemplate::new(502).set_body_string("<html>")).await;
    assert_eq!(client.account().balance().await.unwrap_err().status(), Some(502));
}

#[tokio::test]
async fn the_client_does_not_follow_redirects() {
    let elsewhere = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&elsewhere).await;
    for key_header in [KeyHeader::Authorization, KeyHeader::XApiKey] {
        let server = MockServer::start().await;
        let away = ResponseTemplate::new(307).insert_header("location", elsewhere.uri());
        Mock::given(any()).respond_with(away).mount(&server).await;
        let client = Client::builder("sk_test_demo").base_url(server.uri()).key_header(key_header).build().unwrap();
        assert_eq!(client.account().balance().await.unwrap_err().status(), Some(307));
    }
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_late_response_is_a_timeout_within_the_deadline() {
    let late = ResponseTemplate::new(200).set_delay(Duration::from_secs(30));
    let (server, _) = server_returning(late).await;
    let client = Client::builder("sk_test_demo").base_url(server.uri()).attempt_timeout(Duration::from_millis(80));
    let client = client.total_timeout(Duration::from_millis(400)).build().unwrap();
    let begun = std::time::Instant::now();
    let error = client.account().balance().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_client_waits_for_retry_after_and_ignores_invalid_values() {
    for (text, at_least) in [("1", Duration::from_secs(1)), ("soon", Duration::ZERO), ("-5", Duration::ZERO)] {
        let server = MockServer::start().await;
        let busy = ResponseTemplate::new(429).insert_header("retry-after", text);
        Mock::given(header("authorization", "Bearer sk_test_demo"))
            .respond_with(busy)
            .up_to_n_times(1)
            .mount(&server)
            .await;
        let balances = ResponseTemplate::new(200).set_body_string(r#"{"bdt_balance":0,"usd_balance":0}"#);
        Mock::given(any()).respond_with(balances).mount(&server).await;
        let begun = std::time::Instant::now();
        client_of(&server).await.account().balance().await.unwrap();
        assert!(begun.elapsed() >= at_least, "{text}");
    }
}
