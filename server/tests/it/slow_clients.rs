//! Clients that read or send slowly. Their share of the server's memory is bounded, and nobody else waits for them.

use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, TcpStream},
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, future::join_all};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{SANDBOX_KEY, Server, eventually, metric, payment_of};

const MIB: u64 = 1024 * 1024;

fn start() -> Server {
    Server::start_with(&["--rate-limit", "0", "--keyless-rate-limit", "0", "--max-connections-per-address", "0"])
}

/// A client with another address, 127.0.0.2.
fn neighbour() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().local_address(IpAddr::from([127, 0, 0, 2]));
    client.timeout(Duration::from_secs(15)).build().unwrap()
}

/// A memory statistic of the process, in bytes.
fn memory(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() * 1024
}

/// Sends a text on a new connection.
fn send(server: &Server, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before everything is sent.
    let _ = stream.write_all(text.as_bytes());
    stream
}

/// The status of the response on a connection. The rest is not read.
fn status(mut stream: &TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    String::from_utf8_lossy(&line["HTTP/1.1 ".len()..]).into_owned()
}

/// Creates 100 payments of maximum length, a list of six megabytes.
async fn make_long_payments(server: &Server) {
    let create = |nth: usize| {
        let mut body = payment_of(&json!(5));
        // In JSON it is longer, because each of these characters is escaped.
        body["description"] = json!("\u{1}".repeat(2000));
        body["customer"] = json!({"name": "\"".repeat(320), "email": "\"".repeat(320)});
        let line = |item: usize| json!({"name": format!("{item:02}{}", "\"".repeat(198)), "quantity": 1});
        body["lineItems"] = (0..50).map(line).collect();
        body["metadata"] = json!({"nth": nth, "long": "x".repeat(16_000)});
        server.request(Method::POST, "/payments").json(&body)
    };
    for batch in 0..10 {
        for made in join_all((0..10).map(|nth| create(10 * batch + nth).send())).await {
            let made = made.unwrap();
            assert_eq!(made.status(), StatusCode::CREATED, "{}", made.text().await.unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_large_lists_take_bounded_memory_and_are_cut_off_after_30_seconds() {
    const READERS: usize = 230;
    const LIST: &str = "/payments?limit=100";
    let server = start();
    make_long_payments(&server).await;
    let list = server.request(Method::GET, LIST).send().await.unwrap().bytes().await.unwrap();
    assert!(list.len() > 3_900_000, "{}", list.len());
    let idle = memory(&server, "VmRSS");
    // From now on, VmHWM is the process's maximum memory.
    fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5").unwrap();

    let begun = Instant::now();
    let head = format!("GET /api/v1{LIST} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SANDBOX_KEY}\r\n\r\n");
    let readers: Vec<_> = (0..READERS).map(|_| send(&server, &head)).collect();
    let (served, refused): (Vec<_>, Vec<_>) = readers.iter().partition(|stream| status(stream) == "200");
    let peak = memory(&server, "VmHWM") - idle;
    println!("{READERS} slow readers of {} bytes take {} MiB; {} are served", list.len(), peak / MIB, served.len());
    assert!(peak < 160 * MIB, "{} MiB", peak / MIB);
    assert!(served.len() > 5, "{}", served.len());
    for mut stream in refused.iter().copied() {
        let mut rest = [0; 1024];
        let length = stream.read(&mut rest).unwrap();
        let rest = String::from_utf8_lossy(&rest[..length]);
        assert!(rest.contains("\r\nretry-after: 1\r\n") && rest.contains("too_many_in_progress"), "{rest}");
    }
    let metrics = server.metrics().await;
    let bytes: u64 = metric(&metrics, "payments_unsent_response_bytes");
    assert!((3 * MIB..=metric(&metrics, "payments_unsent_response_bytes_at_most")).contains(&bytes), "{bytes}");
    assert_eq!(metric::<usize>(&metrics, "payments_unsent_responses_refused_total"), refused.len());
    // A refused connection still works, a single payment needs no room, and another address has room.
    let mut again = refused[0];
    again.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(status(again), "200");
    let payment = server.create(&payment_of(&json!(5))).await;
    let path = format!("/payments/{}", payment["id"].as_str().unwrap());
    assert_eq!(server.request(Method::GET, &path).send().await.unwrap().status(), StatusCode::OK);
    let other = neighbour().get(format!("{}/api/v1{LIST}", server.url)).bearer_auth(SANDBOX_KEY);
    let other: Value = other.send().await.unwrap().json().await.unwrap();
    assert!(!other["items"].as_array().unwrap().is_empty());

    // The clients read no further.
    tokio::time::sleep(Duration::from_secs(25).saturating_sub(begun.elapsed())).await;
    eventually("the slow readers to be cut off", async || {
        let metrics = server.metrics().await;
        let is_free = metric::<u64>(&metrics, "payments_unsent_response_bytes") == 0;
        is_free.then(|| assert!(metric::<usize>(&metrics, "payments_slow_readers_closed_total") > 0))
    })
    .await;
    assert!(begun.elapsed() > Duration::from_secs(29), "{:?}", begun.elapsed());
    assert_eq!(server.request(Method::GET, LIST).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_heads_take_bounded_memory_and_the_next_long_head_gets_503() {
    let server = start();
    let head = |bytes: usize| format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(bytes));
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    // Long heads take most of the room, then shorter ones the rest.
    for (bytes, count) in [(60_000, 400), (9_000, 100)] {
        let head = head(bytes);
        let so_far = metric::<u64>(&server.metrics().await, "payments_input_refused_total");
        for _ in 0..count {
            held.push(send(&server, &head));
            let metrics = server.metrics().await;
            let bytes: u64 = metric(&metrics, "payments_input_bytes");
            assert!(bytes <= metric::<u64>(&metrics, "payments_input_bytes_at_most") / 2, "{bytes}");
            if metric::<u64>(&metrics, "payments_input_refused_total") > so_far {
                break;
            }
        }
        refused.extend(held.pop());
    }
    assert!((250..400).contains(&held.len()), "{}", held.len());
    let refused = refused.remove(1);
    let mut answer = String::new();
    (&refused).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("too_many_in_progress"), "{answer}");
    // A body has no room either, a usual request needs none, and another address has room.
    let mut body = payment_of(&json!(5));
    body["metadata"] = json!({"long": "x".repeat(16_000)});
    let create = || server.request(Method::POST, "/payments").json(&body);
    let answer = create().send().await.unwrap();
    assert_eq!(
        (answer.status(), &answer.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    server.create(&payment_of(&json!(5))).await;
    let other = neighbour().post(format!("{}/api/v1/payments", server.url)).bearer_auth(SANDBOX_KEY).json(&body);
    assert_eq!(other.send().await.unwrap().status(), StatusCode::CREATED);
    drop(held);
    eventually("room", async || (create().send().await.unwrap().status() == StatusCode::CREATED).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_payments_or_events_ends_at_four_mebibytes_and_says_where_to_go_on() {
    let server = start();
    make_long_payments(&server).await;
    for list in [
        "/payments?limit=100",
        "/payments?limit=100&status=pending",
        "/payments?limit=100&currency=BDT",
        "/events?limit=100",
    ] {
        let (mut path, mut found, mut pages) = (list.to_owned(), Vec::new(), Vec::new());
        loop {
            let answer = server.request(Method::GET, &path).send().await.unwrap();
            let text = answer.text().await.unwrap();
            assert!(text.len() < usize::try_from(4 * MIB).unwrap() + 1024, "{path}: {} bytes", text.len());
            let page: Value = serde_json::from_str(&text).unwrap();
            let items = page["items"].as_array().unwrap();
            found.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            pages.push(items.len());
            if page["hasMore"] != true {
                break;
            }
            path = format!("{list}&after={}", page["next"].as_str().unwrap());
        }
        let (all, different) = (found.len(), found.iter().collect::<std::collections::BTreeSet<_>>().len());
        assert_eq!((all, different, pages.len()), (100, 100, 2), "{list}: {pages:?}");
    }
    let all = server.client().payments().list().stream().collect::<Vec<_>>().await;
    assert_eq!(all.len(), 100);
}
