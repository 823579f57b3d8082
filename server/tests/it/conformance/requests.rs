//! Keys, idempotency, errors and limits.

use std::time::{Duration, Instant};

use gateway_fakes::Fault;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{report::Report, world::World};
use crate::{
    engine::Engine,
    receiver::{Receiver, Reply},
    server::{SANDBOX_KEY, Server, payment_of},
};

pub(super) async fn idempotency_and_authentication(world: &World, report: &mut Report) {
    let server = world.server();
    let post = async |key: &str| {
        let request = server.keyless(Method::POST, "/api/v1/payments").header("idempotency-key", "conformance-1");
        let answer = request.bearer_auth(key).json(&payment_of(&json!(3))).send().await.unwrap();
        let replayed = answer.headers().get("idempotent-replayed").map(|value| value.to_str().unwrap().to_owned());
        (replayed, answer.text().await.unwrap())
    };
    let (first, second, other) = (post(SANDBOX_KEY).await, post(SANDBOX_KEY).await, post(&world.live.key).await);
    let holds = first.1 == second.1 && other.1 != first.1;
    report.row("Idempotency", "deduplicated for 24 hours per developer", holds, &(&first, &second, &other));
    let marked = first.0.is_none() && second.0.as_deref() == Some("true");
    report.row("Idempotency", "Idempotent-Replayed: true", marked, &(first.0, second.0));

    let section = "Authentication";
    let with = async |name: &str, value: String| {
        server.keyless(Method::GET, "/api/v1/account").header(name, value).send().await.unwrap().status().as_u16()
    };
    let bearer = with("authorization", format!("Bearer {SANDBOX_KEY}")).await;
    report.row(section, "Bearer", bearer == 200, &bearer);
    let header = with("x-api-key", SANDBOX_KEY.into()).await;
    report.row(section, "x-api-key", header == 200, &header);
    let live_key = &world.live.key;
    report.row(section, "prefixes", live_key.starts_with("sk_live_"), &"a live key's prefix");
    let workspace = world.live.server.run(&["workspaces", "create", "--name", "Conformance"]);
    let key = world.live.server.run(&["keys", "create", "--workspace", &workspace, "--environment", "test"]);
    let listed = world.live.server.run(&["keys", "list"]);
    let id = listed.lines().find(|line| line.contains(&workspace)).unwrap().split(' ').next().unwrap().to_owned();
    let before = with("x-api-key", key.clone()).await;
    let rotated = world.live.server.run(&["keys", "rotate", &id]);
    if world.engine == Engine::Postgres {
        // The command changes the database directly. The server notices it within a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (after, new) = (with("x-api-key", key.clone()).await, with("x-api-key", rotated).await);
    let mut wrong = vec![after];
    for bad in ["", "sk_test_unknown", "nonsense"] {
        wrong.push(with("x-api-key", bad.into()).await);
    }
    wrong.push(server.keyless(Method::GET, "/api/v1/account").send().await.unwrap().status().as_u16());
    report.row(section, "missing, malformed or revoked", wrong.iter().all(|status| *status == 401), &wrong);
    report.row("Errors", "401", wrong.iter().all(|status| *status == 401), &wrong);
    let hidden = !listed.contains(&key) && (before, new) == (200, 200);
    report.row(section, "SHA-256, shown once, rotation", hidden, &(before, after, new));
    report.row(section, "sandbox key", bearer == 200, &bearer);
    let verify = json!({"payload": "a", "signature": "t=1,v1=00", "secret": "s"});
    let answer = server.keyless(Method::POST, "/api/v1/webhooks/verify").json(&verify).send().await.unwrap();
    report.row(section, "keyless routes", answer.status() == 200, &answer.status());
}

pub(super) async fn errors_and_limits(world: &World, report: &mut Report) {
    let server = world.server();
    let (status, invalid) = world.ask(SANDBOX_KEY, Method::POST, "/payments", Some(&json!({"amount": "x"}))).await;
    report.row("Errors", "400", status == 400, &invalid);
    let all = invalid["message"].as_array().is_some_and(|sentences| sentences.len() == 3);
    let body = invalid["statusCode"] == 400 && all && invalid["error"] == "Bad Request";
    report.row("Errors", "Validation failure body", body, &invalid);
    let answer = server.request(Method::GET, "/payments").send().await.unwrap();
    report.row(
        "Errors",
        "Successful responses are JSON",
        answer.headers()["content-type"] == "application/json",
        &answer,
    );
    let id = world.live.create(5.0, "BDT").await;
    world.live.bkash.faults().next("create", Fault::ErrorBefore);
    let path = format!("/api/v1/checkout/{id}/pay");
    let answer = server.keyless(Method::POST, &path).send().await.unwrap();
    let retryable = answer.status() == 503 && answer.headers().contains_key("retry-after");
    report.row("Errors", "5xx", retryable, &answer);
    let outside = server.keyless(Method::GET, "/payments").send().await.unwrap().status();
    report.row("Limits", "prefix /api/v1", outside == 404, &outside);

    let limited = Server::start_on(world.engine, &["--keyless-rate-limit", "3", "--rate-limit", "120"]);
    let ask = |path: &str| limited.keyless(Method::GET, path).bearer_auth(SANDBOX_KEY).send();
    let first = ask("/api/v1/account").await.unwrap();
    let count = |answer: &reqwest::Response, name: &str| -> Option<u64> {
        answer.headers().get(name)?.to_str().ok()?.parse().ok()
    };
    let (limit, left) = (count(&first, "x-ratelimit-limit"), count(&first, "x-ratelimit-remaining"));
    report.row("Limits", "120 per minute", (limit, left) == (Some(120), Some(119)), &(limit, left));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(limited.keyless(Method::GET, "/api/v1/checkout/pay_0").send().await.unwrap());
    }
    let refused = limited.keyless(Method::GET, "/api/v1/checkout/pay_0").send().await.unwrap();
    let wait = count(&refused, "retry-after");
    let holds = refused.status() == 429 && wait.is_some_and(|wait| (1..=60).contains(&wait));
    report.row("Limits", "keyless per address", statuses.iter().all(|one| one.status() == 404) && holds, &refused);
    let unknown = limited.keyless(Method::GET, "/nowhere").send().await.unwrap();
    let keyless = limited.keyless(Method::GET, "/api/v1/account").send().await.unwrap();
    let everywhere = statuses
        .iter()
        .chain([&refused, &unknown, &keyless])
        .all(|answer| count(answer, "x-ratelimit-limit").is_some() && count(answer, "x-ratelimit-remaining").is_some());
    report.row("Limits", "X-RateLimit headers on every response", everywhere, &(unknown, keyless));
    let mut last = first;
    for _ in 0..120 {
        last = ask("/api/v1/account").await.unwrap();
    }
    let wait = count(&last, "retry-after");
    let holds = last.status() == 429 && wait.is_some_and(|wait| (1..=60).contains(&wait));
    report.row("Limits", "429 with Retry-After", holds, &last);
    report.row("Errors", "429", holds, &last);
    let begun = Instant::now();
    let hanging = Receiver::start(Reply::Never).await;
    let body = json!({"url": hanging.url(), "events": "*"});
    world.ask(SANDBOX_KEY, Method::POST, "/webhooks", Some(&body)).await;
    let payment = server.create(&payment_of(&json!(5))).await;
    let prompt = begun.elapsed() < Duration::from_secs(3) && payment["status"] == "pending";
    report.row("Delivery", "do not block the payment", prompt, &begun.elapsed());
}

pub(super) async fn a_body_that_does_not_arrive(server: &Server) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/payments HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SANDBOX_KEY}\r\n\
         content-type: application/json\r\ncontent-length: 10\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}
