//! HTTP details of real clients, proxies and browsers.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{SANDBOX_KEY, Server, eventually, payment_of};

/// A response read from a socket.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

impl Answer {
    /// Asserts that it has this status, the error body and a request id.
    fn assert_refused(&self, status: u16) {
        assert_eq!((self.status, &self.body["statusCode"]), (status, &json!(status)), "{self:?}");
        assert!(self.head.contains("x-request-id: req_"), "{self:?}");
        assert!(["message", "error", "code"].iter().all(|name| self.body[name].is_string()), "{self:?}");
    }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Reads one whole response.
fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole response");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a whole response");
    Answer { status, head, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
}

#[test]
fn a_client_that_sends_a_whole_refused_body_reads_the_whole_response() {
    const BODY: usize = 2 * 1024 * 1024;
    let server = Server::start_with(&["--rate-limit", "1", "--keyless-rate-limit", "3"]);
    let key = format!("authorization: Bearer {SANDBOX_KEY}\r\n");
    for (method, path, key, status) in [
        ("POST", "/api/v1/payments", key.as_str(), 413),
        ("POST", "/api/v1/payments", &key, 429),
        ("POST", "/api/v1/payments", "", 401),
        ("POST", "/nothing", "", 404),
        ("PATCH", "/api/v1/checkout/pay_0", "", 405),
        ("POST", "/api/v1/webhooks/verify", "", 429),
        ("POST", "/nothing", "", 429),
    ] {
        for is_chunked in [false, true].into_iter().take(if status == 429 { 2 } else { 1 }) {
            let mut stream = connect(&server);
            let framing =
                if is_chunked { "transfer-encoding: chunked".to_owned() } else { format!("content-length: {BODY}") };
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{key}content-type: application/json\r\n{framing}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let body = if is_chunked {
                let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                chunk.repeat(BODY / 0x10000) + "0\r\n\r\n"
            } else {
                "x".repeat(BODY)
            };
            stream.write_all(body.as_bytes()).unwrap_or_else(|error| panic!("{method} {path} {status}: {error}"));
            read_answer(&mut stream).assert_refused(status);
            // The server read the whole body, so the connection stays usable.
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
            assert_eq!(read_answer(&mut stream).status, 200);
        }
    }
}

#[test]
fn an_expect_100_continue_client_is_refused_before_it_sends_its_body() {
    let server = Server::start();
    let mut stream = connect(&server);
    let head =
        "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000000\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // The server sends no `100 Continue` first.
    read_answer(&mut stream).assert_refused(401);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_too_long_path_or_head_returns_the_error_body_and_a_request_id() {
    let server = Server::start();
    let fields = |count: usize| (0..count).map(|field| format!("x-{field}: y\r\n")).collect::<String>();
    for (path, fields, status) in [
        (format!("/{}", "p".repeat(8 * 1024 - 1)), String::new(), 404),
        (format!("/{}", "p".repeat(8 * 1024)), String::new(), 414),
        (format!("/healthz?{}", "q".repeat(60_000)), String::new(), 414),
        ("/healthz".into(), fields(63), 200),
        ("/healthz".into(), fields(64), 431),
        ("/healthz".into(), fields(250), 431),
        ("/healthz".into(), format!("x: {}\r\n", "y".repeat(16 * 1024)), 431),
        ("/healthz".into(), format!("x: {}\r\n", "y".repeat(60 * 1024)), 431),
    ] {
        let mut stream = connect(&server);
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n").as_bytes()).unwrap();
        let answer = read_answer(&mut stream);
        match status {
            200 => assert_eq!(answer.status, 200),
            _ => answer.assert_refused(status),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hyper_answers_an_unreadable_request_and_the_metric_counts_it() {
    let server = Server::start();
    let fields = (0..300).map(|field| format!("x-{field}: y\r\n")).collect::<String>();
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/9.9\r\n\r\n".into(), 400),
        (format!("GET / HTTP/1.1\r\n{fields}\r\n"), 431),
        (format!("GET /{} HTTP/1.1\r\n", "p".repeat(70_000)), 431),
    ] {
        let mut stream = connect(&server);
        let _ = stream.write_all(request.as_bytes());
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head, format!("HTTP/1.1 {status}").as_bytes());
    }
    // The metric counts a connection when it ends, a moment after the response.
    eventually("the count", async || {
        server.metrics().await.contains("payments_unreadable_requests_total 4\n").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_of_another_scheme_does_not_hide_a_valid_key() {
    let server = Server::start();
    let ask = async |fields: &[(&str, &str)], status: u16| {
        let request = server.keyless(Method::GET, "/api/v1/payments");
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{fields:?}");
    };
    // A proxy in front of the server may use Basic authentication.
    ask(&[("authorization", "Basic cHJveHk6cGFzcw=="), ("x-api-key", SANDBOX_KEY)], 200).await;
    ask(&[("authorization", "Digest username=proxy"), ("x-api-key", SANDBOX_KEY)], 200).await;
    ask(&[("authorization", "Basic cHJveHk6cGFzcw=="), ("authorization", "Bearer sk_test_demo")], 200).await;
    ask(&[("authorization", "Basic cHJveHk6cGFzcw==")], 401).await;
    ask(&[("authorization", "Basic cHJveHk6cGFzcw=="), ("x-api-key", "sk_test_unknown")], 401).await;
    // An invalid Bearer token is refused even beside a valid x-api-key.
    ask(&[("authorization", "Bearer sk_test_unknown"), ("x-api-key", SANDBOX_KEY)], 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn x_forwarded_for_accepts_ports_brackets_and_quotes() {
    let server = Server::start_with(&["--keyless-rate-limit", "1", "--trusted-proxy", "127.0.0.0/8"]);
    for (forwarded, status) in [
        ("192.0.2.1:5678", 404),
        ("192.0.2.2:5678", 404),
        ("192.0.2.1:9999", 429),
        ("[2001:db8::1]:443", 404),
        ("2001:db8::2", 429),
        ("\"[2001:db8:0:1::1]\"", 404),
        ("[2001:db8:0:1::2]", 429),
    ] {
        let request = server.keyless(Method::GET, "/api/v1/checkout/pay_0").header("x-forwarded-for", forwarded);
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{forwarded}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_invalid_json_names_line_and_column() {
    let server = Server::start();
    for (body, fault) in [
        ("", "it is empty"),
        ("\u{feff}{\"amount\": 1}", "it begins with a byte-order mark (line 1, column 1), send it without one"),
        ("{\n  \"amount\": 1,\n}", "trailing comma at line 3, column 1"),
        ("{\"amount\": 1", "it ends too early at line 1, column 12"),
    ] {
        let request = server.request(Method::POST, "/payments").header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["message"], json!([format!("body must be valid JSON; {fault}")]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_another_url_scheme_asks_for_http_or_https() {
    let server = Server::start();
    let mut body = payment_of(&json!(1));
    body["success_url"] = "localhost:3000/paid".into();
    body["cancel_url"] = "myapp://cancel".into();
    let answer = server.request(Method::POST, "/payments").json(&body).send().await.unwrap();
    let body: Value = answer.json().await.unwrap();
    let sentences =
        ["success_url must begin with http:// or https://", "cancel_url must begin with http:// or https://"];
    assert_eq!(body["message"], json!(sentences));
}

#[tokio::test(flavor = "multi_thread")]
async fn cors_allows_reading_the_openapi_document_and_nothing_else() {
    const ALLOWS: &str = "access-control-allow-origin";
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(1))).await;
    let id = payment["id"].as_str().unwrap();
    let ask = async |method: Method, path: &str| {
        let request = server.keyless(method, path).header("origin", "https://shop.example").bearer_auth(SANDBOX_KEY);
        request.header("access-control-request-method", "POST").send().await.unwrap()
    };
    let description = ask(Method::GET, "/api/v1/openapi.json").await;
    assert_eq!((description.status(), &description.headers()[ALLOWS]), (StatusCode::OK, &"*".parse().unwrap()));
    let document: Value = description.json().await.unwrap();
    assert!(document["info"]["description"].as_str().unwrap().contains("Access-Control-Allow-Origin"));
    let reference = ask(Method::GET, "/docs").await.text().await.unwrap();
    assert!(reference.contains("Access-Control-Allow-Origin"));

    let others = ["/docs", "/dashboard", "/checkout/{id}", "/healthz", "/readyz", "/metrics", "/nothing"];
    let described = document["paths"].as_object().unwrap().keys().map(String::as_str);
    for path in described.filter(|path| *path != "/api/v1/openapi.json").chain(others) {
        for method in [Method::OPTIONS, Method::GET, Method::POST] {
            let answer = ask(method.clone(), &path.replace("{id}", id)).await;
            let names = answer.headers().keys().filter(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(names.count(), 0, "{method} {path} {}", answer.status());
        }
    }
}
