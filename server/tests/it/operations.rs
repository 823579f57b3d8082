//! Operations: metrics, logs and graceful shutdown.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, metric, payment_of, server_binary, text_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_requests_commits_deliveries_and_payments() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let paid = server.create(&payment_of(&json!(5))).await;
    server.create(&payment_of(&json!(6))).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", paid["id"].as_str().unwrap());
    server.keyless(Method::POST, &simulate).send().await.unwrap();
    server.keyless(Method::GET, "/no/such/path/4711").send().await.unwrap();
    let text = eventually("three deliveries", async || {
        let text = server.metrics().await;
        // The metric counts a delivery just before the delivery leaves the outbox.
        let is_made = text.contains("payments_deliveries_total{outcome=\"Success\"} 3");
        (is_made && text.contains("payments_outbox_deliveries 0\n")).then_some(text)
    })
    .await;
    for (line, expected) in [
        ("payments_requests_total{route=\"/api/v1/payments\",method=\"POST\",status=\"201\"}", 2.0),
        ("payments_requests_total{route=\"/api/v1/checkout/{id}/simulate\",method=\"POST\",status=\"200\"}", 1.0),
        ("payments_requests_total{route=\"other\",method=\"GET\",status=\"404\"}", 1.0),
        ("payments_request_duration_seconds_count{route=\"/api/v1/payments\"}", 2.0),
        ("payments_payments{environment=\"test\",status=\"pending\"}", 1.0),
        ("payments_payments{environment=\"test\",status=\"completed\"}", 1.0),
        ("payments_outbox_deliveries", 0.0),
        ("payments_outbox_oldest_seconds", 0.0),
        ("payments_reviews_open", 0.0),
        ("payments_panics_total", 0.0),
        ("payments_fan_out_delay_seconds_count", 3.0),
        ("payments_delivery_duration_seconds_count", 3.0),
        (concat!("payments_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\",revision=\"unknown\"}"), 1.0),
    ] {
        assert_eq!(metric::<f64>(&text, line), expected, "{line}");
    }
    assert!(metric::<f64>(&text, "payments_commit_sync_seconds_count") >= 4.0);
    assert!(metric::<f64>(&text, "payments_commit_batch_changes_sum") >= 4.0);
    // The digits alone could be part of a time.
    assert!(!text.contains("/4711") && !text.contains(paid["id"].as_str().unwrap()), "no label holds a path");
    assert!(text.ends_with("# EOF\n"));

    let proxied = server.keyless(Method::GET, "/metrics").header("x-forwarded-for", "127.0.0.1");
    assert_eq!(proxied.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    let closed = Server::start_with(&["--metrics-from", "192.0.2.0/24"]);
    let answer = closed.keyless(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_server_serves_metrics_only_at_a_separate_address() {
    // Requests from a local proxy without forwarding headers look local.
    let status = async |server: &Server| server.keyless(Method::GET, "/metrics").send().await.unwrap().status();
    let public = Server::start_with(&["--base-url", "https://pay.example"]);
    assert_eq!(status(&public).await, StatusCode::NOT_FOUND);
    public.assert_logs("/metrics is off");

    for base_url in ["https://pay.example", "http://localhost:8080"] {
        let server = Server::start_with(&["--base-url", base_url, "--metrics-listen", "127.0.0.1:0"]);
        assert_eq!(status(&server).await, StatusCode::NOT_FOUND, "{base_url}");
        server.assert_logs("/metrics is on ");
        let log = server.log();
        let own = log.split("/metrics is on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        let ask = async |path: &str| reqwest::get(format!("{own}{path}")).await.unwrap();
        let answer = ask("/metrics").await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.headers().contains_key("x-request-id"));
        assert!(answer.text().await.unwrap().contains("payments_outbox_deliveries 0"));
        for path in ["/", "/healthz", "/api/v1/payments", "/dashboard"] {
            assert_eq!(ask(path).await.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }
    let local = Server::start_with(&["--base-url", "http://localhost:8080"]);
    assert_eq!(status(&local).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_request_ids_and_no_secrets_or_personal_data() {
    let receiver = Receiver::ok().await;
    let server = Server::start_logging("trace", &["--log-format", "json"]);
    let secret = receiver.subscribe(&server.client()).await;
    let mut body = payment_of(&json!(5));
    body["customer"] = json!({"name": "Karim Mia", "email": "karim@example.com", "phone": "01712345678"});
    let request = server.request(Method::POST, "/payments").header("idempotency-key", "order-77");
    let answer = request.json(&body).send().await.unwrap();
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let payment: Value = answer.json().await.unwrap();
    let id = payment["id"].as_str().unwrap();
    server.keyless(Method::GET, &format!("/checkout/{id}")).send().await.unwrap();
    server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap();
    let verify = json!({"payload": "x", "signature": "t=1,v1=00", "secret": secret});
    server.keyless(Method::POST, "/api/v1/webhooks/verify").json(&verify).send().await.unwrap();
    let wrong = server.keyless(Method::GET, "/api/v1/account").bearer_auth("sk_live_this_is_a_wrong_key");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
    let key = server.new_key("Rahim", "live");
    eventually("the event", async || (!receiver.received().is_empty()).then_some(())).await;

    let log = eventually("the request's line", async || {
        let log = server.log();
        log.contains(&request_id).then_some(log)
    })
    .await;
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    for hidden in
        [SANDBOX_KEY, "this_is_a_wrong_key", &secret, &key, "Karim", "karim@example.com", "01712345678", "order-77"]
    {
        assert!(!log.contains(hidden), "{hidden} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_succeeds_while_the_server_is_ready_and_says_why_it_fails() {
    let mut server = Server::start();
    let health = |address: &str| Command::new(server_binary()).args(["health", "--listen", address]).output().unwrap();
    let address = server.address().to_owned();
    let port = address.rsplit(':').next().unwrap();
    for listen in [&*address, &format!("0.0.0.0:{port}")] {
        let output = health(listen);
        assert!(output.status.success() && output.stdout == b"ready\n", "{}", text_of(&output));
    }
    server.kill();
    let output = health(&address);
    assert_eq!(output.status.code(), Some(1));
    let said = text_of(&output);
    assert!(said.contains("/readyz does not answer") && said.contains("start the server"), "{said}");
    server.restart();
}

const CONTINUE: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Sends a request's head and no body. Returns once the server waits for the body.
fn half_a_request(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SANDBOX_KEY}\r\n\
         content-type: application/json\r\ncontent-length: 400\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; CONTINUE.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *CONTINUE);
    stream
}

#[test]
fn sigterm_lets_running_requests_finish_and_accepts_no_new_ones() {
    let mut server = Server::start_with(&["--drain", "8"]);
    let mut stream = half_a_request(&server);
    let idle = TcpStream::connect(server.address()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let address = server.url.clone();
    let finishing = std::thread::spawn(move || {
        let begun = Instant::now();
        while TcpStream::connect(address.strip_prefix("http://").unwrap()).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(5), "new connections are still accepted");
            std::thread::sleep(Duration::from_millis(20));
        }
        let body = payment_of(&json!(5)).to_string();
        stream.write_all(format!("{body:<400}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let begun = Instant::now();
    assert!(server.terminate().success());
    assert!(begun.elapsed() < Duration::from_secs(7), "an idle connection delayed the shutdown");
    let answer = finishing.join().unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    drop(idle);
}

#[test]
fn an_unfinished_request_delays_shutdown_only_until_the_drain_limit() {
    let mut server = Server::start_with(&["--drain", "1"]);
    let _stream = half_a_request(&server);
    let begun = Instant::now();
    assert!(server.terminate().success());
    assert!((1..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}
