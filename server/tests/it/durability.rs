//! Acknowledged changes are durable: kills the server under load and traces its system calls.

use std::{
    collections::HashMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

/// A payment that the server acknowledged, and whether it acknowledged that it was paid.
#[derive(Debug, Clone)]
struct Acknowledged {
    key: String,
    created: String,
    paid: bool,
}

/// Creates and pays payments until `stop` is set. Returns the acknowledged payments and the keys without a response.
async fn shop(
    http: reqwest::Client,
    url: String,
    number: usize,
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
) -> (Vec<Acknowledged>, Vec<String>) {
    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let key = format!("shop-{number}-{}", made.fetch_add(1, Ordering::Relaxed));
        let create =
            http.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY).header("idempotency-key", &key);
        let created = match create.json(&payment_of(&json!(100))).send().await {
            Ok(answer) if answer.status() == StatusCode::CREATED => answer.text().await.ok(),
            _ => None,
        };
        let Some(created) = created else {
            unknown.push(key);
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let id = serde_json::from_str::<Value>(&created).unwrap()["id"].as_str().unwrap().to_owned();
        let simulate = http.post(format!("{url}/api/v1/checkout/{id}/simulate")).send().await;
        let paid = simulate.is_ok_and(|answer| answer.status() == StatusCode::OK);
        acknowledged.push(Acknowledged { key, created, paid });
    }
    (acknowledged, unknown)
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_and_repeat_no_acknowledged_payment() {
    kill_under_load(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_and_repeat_no_acknowledged_payment_on_postgresql() {
    kill_under_load(Engine::Postgres).await;
}

async fn kill_under_load(engine: Engine) {
    // Set CRASH_KILLS=200 for a long run.
    let kills = std::env::var("CRASH_KILLS").map_or(10_u64, |text| text.parse().unwrap());
    let mut server = Server::start_on(engine, &[]);
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let made = Arc::new(AtomicU64::new(0));
    let (mut acknowledged, mut unknown) = (Vec::<Acknowledged>::new(), Vec::<String>::new());
    for kill in 0..kills {
        let stop = Arc::new(AtomicBool::new(false));
        // Build the client before the load starts: on a slow machine this takes as long as the load runs.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
        let open = |number| shop(http.clone(), server.url.clone(), number, Arc::clone(&stop), Arc::clone(&made));
        let shops: Vec<_> = (0..8).map(|number| tokio::spawn(open(number))).collect();
        // Each kill comes at another time within the first half second after the first answers, because a server on a
        // database first prepares its new connections.
        let begun = made.load(Ordering::Relaxed);
        eventually("the first answers", async || (made.load(Ordering::Relaxed) > begun + 8).then_some(())).await;
        tokio::time::sleep(Duration::from_millis((kill * 97) % 450)).await;
        server.kill();
        stop.store(true, Ordering::Relaxed);
        for shop in shops {
            let (answered, unanswered) = shop.await.unwrap();
            acknowledged.extend(answered);
            unknown.extend(unanswered);
        }
        server.restart();
    }
    assert!(acknowledged.len() > 50, "only {} payments were acknowledged", acknowledged.len());

    // Every acknowledged payment exists with its status, and its key replays the response.
    let mut expected_ids = HashMap::new();
    for Acknowledged { key, created, paid } in &acknowledged {
        let created_payment: Value = serde_json::from_str(created).unwrap();
        let id = created_payment["id"].as_str().unwrap();
        let read = server.get(&format!("/payments/{id}")).await;
        assert_eq!(read["amount"], 100, "{read}");
        if *paid {
            assert_eq!(read["rawStatus"], "paid", "{id} was acknowledged as paid");
        }
        let again =
            server.request(Method::POST, "/payments").header("idempotency-key", key).json(&payment_of(&json!(100)));
        let again = again.send().await.unwrap();
        assert_eq!(
            again.headers().get("idempotent-replayed").map(|value| value.as_bytes()),
            Some(&b"true"[..]),
            "{key}"
        );
        assert_eq!(&again.text().await.unwrap(), created);
        expected_ids.insert(id.to_owned(), key);
    }
    assert_eq!(expected_ids.len(), acknowledged.len(), "two keys made one payment");

    // A key without a response has made one payment or none. After a retry it has made exactly one.
    for key in &unknown {
        let again =
            server.request(Method::POST, "/payments").header("idempotency-key", key).json(&payment_of(&json!(100)));
        let answer: Value = again.send().await.unwrap().json().await.unwrap();
        expected_ids.insert(answer["id"].as_str().unwrap().to_owned(), key);
    }
    let list = server.get("/payments?limit=1").await;
    assert_eq!(list["total"], expected_ids.len(), "a payment without a key, or two for one key");

    // Counts and balances agree with the payments.
    let total = |status: &'static str| {
        let request = server.request(Method::GET, &format!("/payments?limit=1&status={status}"));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap()["total"].as_u64().unwrap() }
    };
    let (pending, completed) = (total("pending").await, total("completed").await);
    assert_eq!(pending + completed, expected_ids.len() as u64);
    let account = server.get("/account").await;
    assert_eq!(account["volume"], json!({"bdt": completed * 100, "usd": 0, "total_payments": completed}));
    assert_eq!(account["balance"]["bdt"], completed * 95);

    // Each event arrives at least once, with the same bytes each time.
    let expected_events = expected_ids.len() + usize::try_from(completed).unwrap();
    let events = eventually("every event", || async {
        let mut events = HashMap::new();
        for received in receiver.received() {
            let id = serde_json::from_slice::<Value>(&received.body).unwrap()["id"].as_str().unwrap().to_owned();
            let first = events.entry(id).or_insert_with(|| received.clone());
            assert_eq!(first.body, received.body);
        }
        (events.len() == expected_events).then_some(events)
    })
    .await;
    if engine == Engine::Directory {
        server.run(&["check"]);
    }
    assert!(events.values().take(20).all(|received| received.verified_with_any_age(&secret)));
}

/// Traces system calls: a journal sync comes between the last journal write and the response.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_syncs_the_journal_before_every_acknowledgement() {
    let server = Server::start();
    let trace = server.directory.path().join("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-y", "-s", "16", "-e", "trace=pwrite64,fdatasync,sendto,writev,sendmsg", "-o"])
        .arg(&trace);
    strace.args(["-p", &server.process_id().to_string()]);
    let mut strace = strace.spawn().expect("strace is needed: apt-get install strace");
    eventually("strace to attach", || async { trace.exists().then_some(()) }).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..20 {
        let answer = server.request(Method::POST, "/payments").json(&payment_of(&json!(1))).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
    }
    Command::new("kill").arg(strace.id().to_string()).status().unwrap();
    strace.wait().unwrap();

    let (mut unsynced, mut written, mut synced, mut answered) = (0, 0, 0, 0);
    for line in std::fs::read_to_string(&trace).unwrap().lines() {
        let is_journal = line.contains(".journal>");
        if is_journal && line.contains("pwrite64(") {
            unsynced += 1;
            written += 1;
        } else if line.contains("fdatasync") && line.trim_end().ends_with("= 0") {
            // strace may print the end of a call on its own line without the file name. Only the journal uses fdatasync.
            unsynced = 0;
            synced += 1;
        } else if line.contains("HTTP/1.1 201") {
            assert_eq!(unsynced, 0, "a response before the sync: {line}");
            answered += 1;
        }
    }
    assert_eq!((written, synced, answered), (20, 20, 20));
}
