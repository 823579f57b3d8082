//! Acknowledged means durable: the server is killed at random moments under load, and its system calls are watched.

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
    receiver::{Manner, Receiver},
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

/// What a client knows: it created a payment under this key and was told so, and perhaps that it was paid.
#[derive(Debug, Clone)]
struct Told {
    key: String,
    created: String,
    paid: bool,
}

/// Creates and pays payments until told to stop; keeps what was acknowledged, and the keys whose answer never came.
async fn shop(
    http: reqwest::Client,
    url: String,
    number: usize,
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
) -> (Vec<Told>, Vec<String>) {
    let (mut told, mut unknown) = (Vec::new(), Vec::new());
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
        told.push(Told { key, created, paid });
    }
    (told, unknown)
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_under_load_lose_and_repeat_no_acknowledged_payment() {
    // The long form: CRASH_KILLS=200.
    let kills = std::env::var("CRASH_KILLS").map_or(10_u64, |text| text.parse().unwrap());
    let mut server = Server::start();
    let receiver = Receiver::start(Manner::Answer(StatusCode::OK, String::new())).await;
    let secret = receiver.subscribe(&server.client()).await;
    let made = Arc::new(AtomicU64::new(0));
    let (mut told, mut unknown): (Vec<Told>, Vec<String>) = (Vec::new(), Vec::new());
    for kill in 0..kills {
        let stop = Arc::new(AtomicBool::new(false));
        // Made before the load begins: on a slow machine it takes as long as the load is let run.
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
        let open = |number| shop(http.clone(), server.url.clone(), number, Arc::clone(&stop), Arc::clone(&made));
        let shops: Vec<_> = (0..8).map(|number| tokio::spawn(open(number))).collect();
        // Moments that do not repeat, within the first half second of load.
        tokio::time::sleep(Duration::from_millis(30 + (kill * 97) % 450)).await;
        server.kill();
        stop.store(true, Ordering::Relaxed);
        for shop in shops {
            let (acknowledged, unanswered) = shop.await.unwrap();
            told.extend(acknowledged);
            unknown.extend(unanswered);
        }
        server.restart();
    }
    assert!(told.len() > 50, "only {} payments were acknowledged", told.len());

    // Every acknowledged payment is there, as it was told, and its key still gives the same answer.
    let mut expected_ids = HashMap::new();
    for Told { key, created, paid } in &told {
        let created_payment: Value = serde_json::from_str(created).unwrap();
        let id = created_payment["id"].as_str().unwrap();
        let read: Value =
            server.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap().json().await.unwrap();
        assert_eq!(read["amount"], 100, "{read}");
        if *paid {
            assert_eq!(read["rawStatus"], "paid", "{id} was told to be paid");
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
    assert_eq!(expected_ids.len(), told.len(), "two keys made one payment");

    // A key whose answer never came has had its effect or has none; asked again it has exactly one.
    for key in &unknown {
        let again =
            server.request(Method::POST, "/payments").header("idempotency-key", key).json(&payment_of(&json!(100)));
        let answer: Value = again.send().await.unwrap().json().await.unwrap();
        expected_ids.insert(answer["id"].as_str().unwrap().to_owned(), key);
    }
    let list: Value = server.request(Method::GET, "/payments?limit=1").send().await.unwrap().json().await.unwrap();
    assert_eq!(list["total"], expected_ids.len(), "a payment that no key owns, or two for one key");

    // Counts and balances agree with the payments.
    let total = |status: &'static str| {
        let request = server.request(Method::GET, &format!("/payments?limit=1&status={status}"));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap()["total"].as_u64().unwrap() }
    };
    let (pending, completed) = (total("pending").await, total("completed").await);
    assert_eq!(pending + completed, expected_ids.len() as u64);
    let account: Value = server.request(Method::GET, "/account").send().await.unwrap().json().await.unwrap();
    assert_eq!(account["volume"], json!({"bdt": completed * 100, "usd": 0, "total_payments": completed}));
    assert_eq!(account["balance"]["bdt"], completed * 95);

    // Each payment's events arrive at least once, and each event is the same however often it came.
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
    let checked = server.administer(&["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(events.values().take(20).all(|received| received.verified_with_any_age(&secret)));
}

/// Between the last write to the journal and the answer stands a sync of the journal, in the order of system calls.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_syncs_the_journal_before_every_acknowledgement() {
    let server = Server::start();
    let trace = server.directory.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-s", "16", "-e", "trace=write,fdatasync,sendto,writev,sendmsg", "-o"]).arg(&trace);
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
        if is_journal && line.contains("write(") {
            unsynced += 1;
            written += 1;
        } else if line.contains("fdatasync") && line.trim_end().ends_with("= 0") {
            // Its end, which strace may tell on a line of its own, without the file's name. Nothing else syncs this way.
            unsynced = 0;
            synced += 1;
        } else if line.contains("HTTP/1.1 201") {
            assert_eq!(unsynced, 0, "an answer before the sync: {line}");
            answered += 1;
        }
    }
    assert_eq!((written, synced, answered), (20, 20, 20));
}
