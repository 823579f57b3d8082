//! Bad input: every refusal has the error body, names the fault and changes nothing.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{SANDBOX_KEY, Server, payment_of};

/// Asserts that a response has the error body and returns its messages.
async fn refused(answer: reqwest::Response, status: u16) -> Vec<String> {
    assert_eq!(answer.status().as_u16(), status);
    let headers = answer.headers().clone();
    assert_eq!(headers["content-type"], "application/json");
    assert!(headers["x-request-id"].to_str().unwrap().starts_with("req_"));
    let body: Value = answer.json().await.unwrap();
    let names: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(names[..4], ["statusCode", "message", "error", "code"]);
    assert!(names.len() == 4 || names[4..] == ["fields"], "{names:?}");
    assert_eq!(body["statusCode"], status);
    assert_eq!(body["error"], StatusCode::from_u16(status).unwrap().canonical_reason().unwrap());
    match &body["message"] {
        Value::String(sentence) => vec![sentence.clone()],
        sentences => serde_json::from_value(sentences.clone()).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_body_returns_400_and_names_every_wrong_field() {
    let server = Server::start();
    let bad = json!({"amount": 0, "currency": "EUR", "success_url": "/x", "metadata": 1, "customer": {"name": 1}});
    let sentences = refused(server.request(Method::POST, "/payments").json(&bad).send().await.unwrap(), 400).await;
    assert_eq!(
        sentences,
        [
            "amount must be a positive number",
            "success_url must be an absolute URL",
            "cancel_url must be given",
            "currency must be one of BDT, USD",
            "metadata must be an object",
            "customer.name must be a string",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_other_than_a_json_object_returns_400() {
    let server = Server::start();
    let deep = format!("{{\"metadata\":{}1{}}}", "{\"a\":".repeat(9000), "}".repeat(9000));
    for (body, sentence) in [
        (&b"{"[..], "body must be valid JSON; it ends too early at line 1, column 1"),
        (b"", "body must be valid JSON; it is empty"),
        (b"[]", "body must be a JSON object"),
        (b"{\"amount\":\"\xff\"}", "body must be UTF-8"),
        (b"{\"amount\":1,\"amount\":2}", "amount must be given once"),
        (deep.as_bytes(), "metadata must be at most 16384 bytes of JSON"),
    ] {
        let request = server.request(Method::POST, "/payments").header("content-type", "application/json");
        let sentences = refused(request.body(body.to_vec()).send().await.unwrap(), 400).await;
        assert!(sentences.iter().any(|found| found == sentence), "{sentences:?}");
    }
    let form = server.request(Method::POST, "/payments").header("content-type", "text/plain").body("{}");
    assert_eq!(refused(form.send().await.unwrap(), 400).await, ["Content-Type must be application/json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_malformed_or_unknown_key_returns_401_before_other_checks() {
    let server = Server::start();
    let long = format!("sk_test_{}", "x".repeat(5000));
    for (header, value) in [
        ("x-nothing", ""),
        ("authorization", "sk_test_demo"),
        ("authorization", "Basic sk_test_demo"),
        ("authorization", "Bearer "),
        ("authorization", "Bearer sk_test_"),
        ("authorization", "Bearer sk_live_demo"),
        ("authorization", "Bearer nonsense"),
        ("x-api-key", "sk_test_unknown"),
        ("x-api-key", &long),
    ] {
        for (method, path) in [
            (Method::POST, "/api/v1/payments"),
            (Method::PATCH, "/api/v1/payments"),
            (Method::GET, "/api/v1/payments?limit=no"),
            (Method::GET, "/api/v1/payments/pay_unknown"),
            (Method::POST, "/api/v1/webhooks"),
            (Method::GET, "/api/v1/webhooks/deliveries"),
        ] {
            let answer = server.keyless(method, path).header(header, value).body("nonsense").send().await.unwrap();
            assert_eq!(answer.headers()["www-authenticate"], "Bearer");
            refused(answer, 401).await;
        }
    }
    let good = server.keyless(Method::GET, "/api/v1/payments").header("x-api-key", SANDBOX_KEY).send().await.unwrap();
    assert_eq!(good.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_return_404_and_wrong_methods_405_with_allow() {
    let server = Server::start();
    for path in
        ["/payments/pay_unknown", "/payments/..%2f", "/nothing", "/payments/a/b", "/webhooks/deliveries?webhookId=wh_x"]
    {
        refused(server.request(Method::GET, path).send().await.unwrap(), 404).await;
    }
    for path in
        ["/index.html", "/api", "/api/v1", "/api/v2/payments", "/api/v1/checkout/pay_unknown", "/assets/nothing"]
    {
        refused(server.keyless(Method::GET, path).send().await.unwrap(), 404).await;
    }
    for (method, path, allow) in [
        (Method::DELETE, "/payments", "GET, HEAD, POST"),
        (Method::POST, "/payments/pay_unknown", "GET, HEAD"),
        (Method::PUT, "/webhooks", "GET, HEAD, POST"),
        (Method::POST, "/webhooks/deliveries", "GET, HEAD"),
        (Method::POST, "/checkout/pay_unknown", "GET, HEAD"),
        (Method::GET, "/checkout/pay_unknown/simulate", "POST"),
    ] {
        let answer = server.request(method, path).send().await.unwrap();
        assert_eq!(answer.headers()["allow"], allow);
        refused(answer, 405).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_query_returns_400() {
    let server = Server::start();
    for (query, sentence) in [
        ("page=0", "page must be a whole number from 1"),
        ("page=-1", "page must be a whole number from 1"),
        ("page=99999999999", "page must be a whole number from 1"),
        ("limit=101", "limit must be a whole number from 1 to 100"),
        ("limit=%2B5", "limit must be a whole number from 1 to 100"),
        ("limit=", "limit must be a whole number from 1 to 100"),
        ("status=paid", "status must be one of pending, completed, failed, cancelled, refunded, expired"),
    ] {
        let answer = server.request(Method::GET, &format!("/payments?{query}")).send().await.unwrap();
        assert_eq!(refused(answer, 400).await, [sentence]);
    }
    assert_eq!(server.get("/payments?page=4294967295&limit=100").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_64_kib_returns_413_with_and_without_content_length() {
    let server = Server::start();
    let mut body = payment_of(&json!(1));
    body["ignored"] = "x".repeat(64 * 1024).into();
    refused(server.request(Method::POST, "/payments").json(&body).send().await.unwrap(), 413).await;

    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk_test_demo\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..65 {
        if stream.write_all(format!("400\r\n{}\r\n", "x".repeat(1024)).as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_body_returns_408() {
    let server = Server::start();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let head =
        "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk_test_demo\r\ncontent-length: 10\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_cannot_end_again() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    let failed: Value = server
        .keyless(Method::POST, &simulate)
        .json(&json!({"action": "fail"}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!((&failed["status"], &failed["success"]), (&json!("failed"), &json!(false)));
    let again = server.keyless(Method::POST, &simulate).send().await.unwrap();
    assert_eq!(refused(again, 409).await, ["a payment that is failed cannot become paid"]);
    let unknown = server.keyless(Method::POST, &simulate).json(&json!({"status": "paid"})).send().await.unwrap();
    assert_eq!(refused(unknown, 400).await, ["status must be one of completed, failed, cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_cannot_be_paid() {
    let server = Server::start_with(&["--session-ttl", "1"]);
    let payment = server.create(&payment_of(&json!(5))).await;
    let id = payment["id"].as_str().unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let session: Value =
        server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap().json().await.unwrap();
    assert_eq!(session["isExpired"], true);
    let late = server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap();
    assert_eq!(refused(late, 409).await, ["a payment that is expired cannot become paid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_session_expires_and_a_paid_one_does_not() {
    let mut server = Server::start_with(&["--session-ttl", "2"]);
    let create = async || {
        let payment = server.create(&payment_of(&json!(5))).await;
        payment["id"].as_str().unwrap().to_owned()
    };
    let (open, paid) = (create().await, create().await);
    server.keyless(Method::POST, &format!("/api/v1/checkout/{paid}/simulate")).send().await.unwrap();
    // The session expires while the server is down.
    server.kill();
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.restart();
    let statuses = async |id: &str| {
        let payment = server.get(&format!("/payments/{id}")).await;
        json!([payment["status"], payment["rawStatus"]])
    };
    crate::server::eventually("the session to expire", async || {
        (statuses(&open).await == json!(["expired", "expired"])).then_some(())
    })
    .await;
    assert_eq!(statuses(&paid).await, json!(["completed", "paid"]));
    for (filter, total) in [("expired", 1), ("completed", 1), ("pending", 0)] {
        assert_eq!(server.get(&format!("/payments?status={filter}")).await["total"], total, "{filter}");
    }
    let page = server.keyless(Method::GET, &format!("/checkout/{open}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("This payment link has expired"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_or_private_webhook_url_returns_400() {
    let server = Server::start();
    for (url, sentence) in [
        ("nonsense", "url must be an absolute URL"),
        ("ftp://a.example/", "url must begin with http:// or https://"),
        ("http://169.254.169.254/latest/meta-data", "url must lead to a public address"),
        ("https://user:secret@a.example/", "url must not hold a user name or password"),
    ] {
        let body = json!({"url": url, "events": ["payment.created"]});
        let answer = server.request(Method::POST, "/webhooks").json(&body).send().await.unwrap();
        assert_eq!(refused(answer, 400).await, [sentence]);
    }
}

/// Requests that violate HTTP, and invalid UTF-8. The server may answer anything except 5xx.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_http_never_stops_the_server() {
    let server = Server::start();
    let address = server.address().to_owned();
    for malformed in [
        &b"\0\0\0\0"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk_test_demo\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /api/v1/payments?status=%ff%00&page=%f0%9f HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk_test_demo\r\n\r\n",
        b"GET /checkout/%00%ff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /api/v1/payments/\xff\xfe HTTP/1.1\r\nhost: localhost\r\nauthorization: \xff\xfe\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(malformed).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.starts_with("HTTP/1.1 5"), "{malformed:?} got {text}");
    }
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    let good = server.request(Method::POST, "/payments").json(&payment_of(&json!(1))).send().await.unwrap();
    assert_eq!(good.status(), StatusCode::CREATED);
}
