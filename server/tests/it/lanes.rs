//! Concurrent deliveries to one endpoint, in order for each payment.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use payments_client::{CreateWebhook, Subscription};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::sleep};
use warp::{Filter, http::StatusCode};

use crate::{
    receiver::{Receiver, Reply},
    server::{Server, eventually, metric, payment_of},
};

/// Subscribes an endpoint that replies 200 once `answer` completes.
async fn endpoint<F: Future<Output = ()> + Send>(
    server: &Server,
    answer: impl Fn(Value) -> F + Clone + Send + Sync + 'static,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let route = warp::body::json().then(move |event: Value| {
        let answered = answer(event);
        async move {
            answered.await;
            StatusCode::OK
        }
    });
    tokio::spawn(warp::serve(route).incoming(listener).run());
    server.client().webhooks().create(CreateWebhook::new(url, Subscription::All)).await.unwrap();
}

async fn with_status(server: &Server, status: &str) -> usize {
    let log = server.get("/webhooks/deliveries?limit=100").await;
    log["items"].as_array().unwrap().iter().filter(|delivery| delivery["status"] == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hanging_request_does_not_delay_the_other_deliveries_of_its_endpoint() {
    let server = Server::start();
    let count = Arc::<AtomicUsize>::default();
    endpoint(&server, {
        let count = Arc::clone(&count);
        move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if number == 0 {
                    pending::<()>().await;
                }
            }
        }
    })
    .await;
    for _ in 0..64 {
        server.create(&payment_of(&json!(5))).await;
    }
    eventually("the others", async || (with_status(&server, "pending").await <= 1).then_some(())).await;
    assert_eq!(with_status(&server, "success").await, 63);
    assert_eq!(with_status(&server, "failed").await, 0, "the first delivery is still in flight");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_payment_are_sent_in_order_one_at_a_time() {
    const PAYMENTS: usize = 40;
    let server = Server::start();
    let (order, in_flight) =
        (Arc::<Mutex<HashMap<String, Vec<String>>>>::default(), Arc::<Mutex<Vec<String>>>::default());
    let (most, overtaken) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    endpoint(&server, {
        let (order, in_flight) = (Arc::clone(&order), Arc::clone(&in_flight));
        let (most, overtaken) = (Arc::clone(&most), Arc::clone(&overtaken));
        move |event| {
            let payment = event["data"]["id"].as_str().unwrap().to_owned();
            let event = event["event"].as_str().unwrap().to_owned();
            let (order, in_flight) = (Arc::clone(&order), Arc::clone(&in_flight));
            let (most, overtaken) = (Arc::clone(&most), Arc::clone(&overtaken));
            async move {
                order.lock().unwrap().entry(payment.clone()).or_default().push(event);
                {
                    let mut in_flight = in_flight.lock().unwrap();
                    overtaken.fetch_add(usize::from(in_flight.contains(&payment)), Ordering::SeqCst);
                    in_flight.push(payment.clone());
                    most.fetch_max(in_flight.len(), Ordering::SeqCst);
                }
                sleep(Duration::from_millis(20)).await;
                in_flight.lock().unwrap().retain(|other| *other != payment);
            }
        }
    })
    .await;
    for _ in 0..PAYMENTS {
        let payment = server.create(&payment_of(&json!(5))).await;
        let path = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
        let paid = server.keyless(Method::POST, &path).json(&json!({"status": "completed"})).send().await.unwrap();
        assert_eq!(paid.status(), StatusCode::OK);
    }
    eventually("all events", async || (with_status(&server, "success").await == 2 * PAYMENTS).then_some(())).await;
    assert_eq!(overtaken.load(Ordering::SeqCst), 0);
    assert!(order.lock().unwrap().values().all(|events| *events == ["payment.created", "payment.completed"]));
    assert!(most.load(Ordering::SeqCst) > 1, "no events of different payments were in flight at once");
}

async fn count(server: &Server, name: &str) -> usize {
    metric(&server.metrics().await, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_only_in_flight_deliveries_are_in_memory() {
    const ENDPOINTS: usize = 60;
    const PAYMENTS: usize = 12;
    const METADATA_KIB: usize = 15;
    let mut server = Server::start();
    for _ in 0..ENDPOINTS {
        endpoint(&server, |_| pending()).await;
    }
    let mut payment = payment_of(&json!(5));
    payment["metadata"] = json!({"text": "x".repeat(METADATA_KIB * 1024)});
    for _ in 0..PAYMENTS {
        server.create(&payment).await;
    }
    server.crash_and_restart();
    let all = ENDPOINTS * PAYMENTS;
    // A new permit reserves memory for a moment.
    let held = eventually("every lane to send", async || {
        let held = count(&server, "payments_delivery_places_held").await;
        let loaded = count(&server, "payments_delivery_loaded_kibibytes").await;
        let twice_each = held * 2 * METADATA_KIB..=held * 2 * (METADATA_KIB + 4);
        (held >= ENDPOINTS && twice_each.contains(&loaded)).then_some(held)
    })
    .await;
    eventually("all pending deliveries", async || {
        (count(&server, "payments_outbox_deliveries").await == all).then_some(())
    })
    .await;
    assert!(held <= ENDPOINTS * 4, "a lane starts with few slots, not {held}");
}

/// More events wait for fan-out than one round of it handles.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_events_reaches_every_endpoint() {
    const ENDPOINTS: usize = 30;
    const PAYMENTS: usize = 30;
    let server = Server::start();
    for _ in 0..ENDPOINTS {
        endpoint(&server, |_| async {}).await;
    }
    let payment = payment_of(&json!(5));
    futures_util::future::join_all((0..PAYMENTS).map(|_| server.create(&payment))).await;
    let made = eventually("the outbox to be empty", async || {
        let pending = count(&server, "payments_outbox_deliveries").await;
        let log: Value = server.get("/webhooks/deliveries?limit=1").await;
        (pending == 0).then(|| log["total"].as_u64())
    })
    .await;
    assert_eq!(made, Some((ENDPOINTS * PAYMENTS) as u64));
}

/// Deliveries end while the lanes read the outbox, and no new event wakes a lane that stops too early.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_delivers_the_whole_outbox_without_a_new_event() {
    const ENDPOINTS: usize = 4;
    const PAYMENTS: usize = 300;
    let mut server = Server::start();
    let is_answering = Arc::<AtomicBool>::default();
    for _ in 0..ENDPOINTS {
        let is_answering = Arc::clone(&is_answering);
        endpoint(&server, move |_| {
            let is_answering = is_answering.load(Ordering::SeqCst);
            async move {
                if !is_answering {
                    pending::<()>().await;
                }
            }
        })
        .await;
    }
    for _ in 0..PAYMENTS {
        server.create(&payment_of(&json!(5))).await;
    }
    is_answering.store(true, Ordering::SeqCst);
    server.crash_and_restart();
    let pending_deliveries = async || count(&server, "payments_outbox_deliveries").await;
    assert!(pending_deliveries().await > ENDPOINTS * PAYMENTS / 2);
    eventually("the outbox to be empty", async || (pending_deliveries().await == 0).then_some(())).await;
    assert_eq!(count(&server, "payments_delivery_places_held").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_merchants_silent_endpoint_leaves_test_pings_to_others() {
    let server = Server::start_with(&["--max-connections-per-address", "0", "--rate-limit", "0"]);
    let (silent, answering) = (Receiver::start(Reply::Never).await, Receiver::ok().await);
    let keys = [server.new_key("one", "test"), server.new_key("another", "test")];
    let mut pings = Vec::new();
    for (key, receiver) in keys.iter().zip([&silent, &answering]) {
        let hook = json!({"url": receiver.url(), "events": ["payment.refunded"]});
        let made = server.keyless(Method::POST, "/api/v1/webhooks").bearer_auth(key).json(&hook).send().await.unwrap();
        let made: Value = made.json().await.unwrap();
        let path = format!("/api/v1/webhooks/{}/test", made["id"].as_str().unwrap());
        pings.push(server.keyless(Method::POST, &path).bearer_auth(key));
    }
    let many: Vec<_> = (0..400).map(|_| pings[0].try_clone().unwrap().send()).collect();
    let many = tokio::spawn(futures_util::future::join_all(many));
    eventually("pings in progress", async || (count(&server, "payments_outside_effects").await >= 64).then_some(()))
        .await;
    eventually("refusals", async || {
        (count(&server, "payments_outside_effects_refused_total").await >= 300).then_some(())
    })
    .await;
    let answer = pings[1].try_clone().unwrap().send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["responseStatus"], 200, "{answer}");
    let many = many.await.unwrap();
    let refused = many.iter().filter(|answer| answer.as_ref().unwrap().status() == StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.count() >= 300);
}
