//! A server whose connections to its database break, stall and fail, while merchants create and pay.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use test_support::{cluster::Cluster, relay::Relay};

use crate::{
    engine::run_sql,
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, payment_of},
};

const SHOPS: usize = 16;
const PAYMENTS_EACH: usize = 15;

/// Sends a request until the server answers it. Returns the answer and how many tries failed.
async fn insist(request: RequestBuilder) -> (StatusCode, String, u32) {
    let begun = Instant::now();
    for failed in 0.. {
        if let Ok(answer) = request.try_clone().unwrap().send().await {
            let status = answer.status();
            if let Ok(text) = answer.text().await
                && !status.is_server_error()
            {
                return (status, text, failed);
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no answer for a minute");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("the loop ends by an answer")
}

/// Creates and pays payments under keys. Returns each key with the first answer to it.
async fn shop(http: &Client, url: &str, shop: usize) -> Vec<(String, String)> {
    let mut answered = Vec::new();
    for number in 0..PAYMENTS_EACH {
        let key = format!("shop-{shop}-{number}");
        let create =
            http.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY).header("idempotency-key", &key);
        let (status, created, _) = insist(create.json(&payment_of(&json!(100)))).await;
        assert_eq!(status, 201, "{created}");
        let id = serde_json::from_str::<Value>(&created).unwrap()["id"].as_str().unwrap().to_owned();
        let (status, paid, failed) = insist(http.post(format!("{url}/api/v1/checkout/{id}/simulate"))).await;
        // A failed try may have paid the payment.
        assert!(status == 200 || (status == 409 && failed > 0), "{status} {paid}");
        answered.push((key, created));
    }
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connections_to_the_database_lose_and_repeat_nothing() {
    // Set RELAY_SEED for another schedule.
    let seed = std::env::var("RELAY_SEED").map_or(7, |text| text.parse().unwrap());
    let cluster = Cluster::shared();
    let database = cluster.new_database();
    let name = database.split(['/', '?']).nth(3).unwrap();
    let relay = Relay::start(cluster.socket(), seed).await;
    let server = Server::start_with(&["--database-url", &relay.url(name)]);
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let http = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();

    let begun = Instant::now();
    relay.set_faults(8, 300);
    let answered = join_all((0..SHOPS).map(|number| shop(&http, &server.url, number))).await.concat();
    eprintln!("{} payments in {:?} with {:?}", answered.len(), begun.elapsed(), relay.hits());
    let everything = SHOPS * PAYMENTS_EACH;

    // The events arrive while connections still break, and nobody helps the server.
    let events = async || {
        let received = receiver.received();
        let id = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["id"].as_str().unwrap().to_owned();
        received.iter().map(|one| id(&one.body)).collect::<HashSet<_>>()
    };
    // If the answer to a claim is lost, its lane may stay claimed for ten seconds.
    while events().await.len() < 2 * everything {
        let missing = 2 * everything - events().await.len();
        assert!(begun.elapsed() < Duration::from_secs(90), "{missing} events did not arrive");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    eprintln!("every event after {:?}", begun.elapsed());
    assert_eq!(relay.hits().len(), 6, "a fault did not happen: {:?}", relay.hits());
    relay.set_faults(0, 0);
    assert_eq!(events().await.len(), 2 * everything, "an event twice under two ids");
    let deliveries = "SELECT count(*), count(*) FILTER (WHERE status = 'pending') FROM payments.delivery";
    let all_sent = format!("{}|0", 2 * everything);
    eventually("every delivery to end", async || (run_sql(&database, deliveries) == all_sent).then_some(())).await;

    let mut ids = HashMap::new();
    for (key, created) in &answered {
        let again = server.request(Method::POST, "/payments").header("idempotency-key", key);
        let again = again.json(&payment_of(&json!(100))).send().await.unwrap();
        assert_eq!(again.headers().get("idempotent-replayed").map(|value| value.as_bytes()), Some(&b"true"[..]));
        assert_eq!(&again.text().await.unwrap(), created);
        ids.insert(serde_json::from_str::<Value>(created).unwrap()["id"].to_string(), key);
    }
    assert_eq!(ids.len(), everything, "two keys made one payment");
    for (status, expected) in [("pending", 0), ("completed", everything)] {
        let list = server.get(&format!("/payments?limit=1&status={status}")).await;
        assert_eq!(list["total"], expected, "{status}");
    }
    let account = server.get("/account").await;
    assert_eq!(account["volume"], json!({"bdt": everything * 100, "usd": 0, "total_payments": everything}));
    assert_eq!(account["balance"]["bdt"], everything * 95);
    assert_eq!(run_sql(&database, "SELECT count(*) FROM payments.event WHERE is_pending"), "0");
}
