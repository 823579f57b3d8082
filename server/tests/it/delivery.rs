//! Webhook deliveries: failures of one endpoint are logged and affect no other endpoint.

use std::time::{Duration, Instant};

use payments_client::{CreateWebhook, EventKind, Retries, Subscription};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_request_has_headers_with_the_configured_word() {
    let server = Server::start_with(&["--header-word", "Dhaka"]);
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    let delivery = &server.ended_deliveries(1).await[0];
    let request = receiver.received().remove(0);
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["x-dhaka-event"], "payment.created");
    assert_eq!(request.headers["x-dhaka-delivery"], delivery["id"].as_str().unwrap());
    assert!(request.headers["x-dhaka-signature"].to_str().unwrap().starts_with("t="));
    assert_eq!(delivery["payload"], serde_json::from_slice::<Value>(&request.body).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_delivery_is_logged_with_status_and_truncated_body_and_not_retried() {
    let server = Server::start();
    let receiver = Receiver::start(Reply::Status(StatusCode::INTERNAL_SERVER_ERROR, "অ".repeat(100_000))).await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    let delivery = &server.ended_deliveries(1).await[0];
    assert_eq!((&delivery["status"], &delivery["responseStatus"]), (&json!("failed"), &json!(500)));
    assert_eq!(delivery["responseBody"], "অ".repeat(341));
    assert_eq!(delivery["error"], Value::Null, "a response with a status has no error");
    assert!(delivery["durationMs"].is_u64(), "{delivery}");
    assert_eq!((&delivery["attempts"], &delivery["attemptNumber"]), (&json!(1), &json!(1)));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_without_a_response_reports_an_error_code() {
    let server = Server::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = Receiver::start(Reply::Never).await;
    let closed = format!("http://{}/hook", listener.local_addr().unwrap());
    drop(listener);
    for url in [closed, "http://no-such-host.invalid/hook".to_owned(), silent.url().replace("http", "https")] {
        let params = CreateWebhook::new(url, Subscription::All);
        server.client().webhooks().create(params).await.unwrap();
    }
    server.create(&payment_of(&json!(5))).await;
    let deliveries = server.ended_deliveries(3).await;
    let mut codes: Vec<_> = deliveries.iter().map(|delivery| delivery["error"]["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["connection_refused", "dns_failed", "tls_failed"], "{deliveries:?}");
    for delivery in &deliveries {
        assert_eq!((&delivery["responseStatus"], &delivery["deliveredAt"]), (&Value::Null, &Value::Null));
        assert!(delivery["durationMs"].is_u64() && delivery["error"]["message"].is_string(), "{delivery}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_an_endpoint_ends_its_deliveries_with_endpoint_removed() {
    let server = Server::start();
    let hanging = Receiver::start(Reply::Never).await;
    hanging.subscribe(&server.client()).await;
    for _ in 0..10 {
        server.create(&payment_of(&json!(5))).await;
    }
    eventually("the first delivery attempts", || async { (!hanging.received().is_empty()).then_some(()) }).await;
    // A fan-out after the removal would create no delivery.
    eventually("all deliveries", || async { (server.get("/webhooks/deliveries").await["total"] == 10).then_some(()) })
        .await;
    let endpoints = server.client().webhooks().list().await.unwrap();
    server.client().webhooks().delete(&endpoints[0].id).await.unwrap();
    let deliveries = server.ended_deliveries(10).await;
    let with = |code: &str| deliveries.iter().filter(|delivery| delivery["error"]["code"] == code).count();
    assert_eq!((with("timeout"), with("endpoint_removed")), (hanging.received().len(), 10 - hanging.received().len()));
    let removed = deliveries.iter().find(|delivery| delivery["error"]["code"] == "endpoint_removed").unwrap();
    assert_eq!((&removed["attempts"], &removed["durationMs"]), (&json!(0), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let server = Server::start();
    let elsewhere = Receiver::ok().await;
    let receiver = Receiver::start(Reply::Redirect(elsewhere.url())).await;
    receiver.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    let delivery = &server.ended_deliveries(1).await[0];
    assert_eq!((&delivery["status"], &delivery["responseStatus"]), (&json!("failed"), &json!(302)));
    assert!(elsewhere.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_endpoint_delays_no_other_and_times_out_after_8_seconds() {
    let server = Server::start();
    let hanging = Receiver::start(Reply::Never).await;
    let answering = Receiver::ok().await;
    hanging.subscribe(&server.client()).await;
    let secret = answering.subscribe(&server.client()).await;
    let begun = Instant::now();
    for _ in 0..20 {
        server.create(&payment_of(&json!(5))).await;
    }
    eventually("the answering endpoint's events", || async { (answering.received().len() == 20).then_some(()) }).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
    assert!(answering.received().iter().all(|one| one.verified_with(&secret).kind() == &EventKind::PaymentCreated));
    let timed_out = eventually("the hanging delivery attempt to time out", || async {
        let log = server.get("/webhooks/deliveries?limit=100").await;
        log["items"].as_array().unwrap().iter().find(|item| item["status"] == "failed").cloned()
    });
    assert_eq!(timed_out.await["responseStatus"], Value::Null);
    assert!(begun.elapsed() >= Duration::from_secs(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_resends_an_in_flight_delivery_as_the_same_event() {
    let mut server = Server::start();
    let hanging = Receiver::start(Reply::Never).await;
    let secret = hanging.subscribe(&server.client()).await;
    server.create(&payment_of(&json!(5))).await;
    eventually("the first delivery attempt", || async { (hanging.received().len() == 1).then_some(()) }).await;
    let address = hanging.url().strip_prefix("http://").unwrap().strip_suffix("/hook").unwrap().to_owned();
    let first = hanging.received().remove(0);
    server.kill();
    drop(hanging);
    let healed =
        eventually("the port to be free", || async { tokio::net::TcpListener::bind(&address).await.ok() }).await;
    drop(healed);
    let healed = Receiver::start_at(&address, Reply::Status(StatusCode::OK, String::new())).await;
    server.restart();
    let again = eventually("the second delivery attempt", || async { healed.received().into_iter().next() }).await;
    assert_eq!(again.verified_with(&secret).id(), first.verified_with(&secret).id());
    assert_eq!(again.body, first.body);
    assert_eq!(server.ended_deliveries(1).await[0]["status"], "success");
}

/// The event needs more deliveries than one fan-out batch has, and the kill comes right after the response.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_fan_out_leaves_one_delivery_per_event_and_endpoint() {
    const ENDPOINTS: usize = 150;
    let mut server = Server::start_with(&["--max-webhook-endpoints", "150"]);
    let receiver = Receiver::ok().await;
    for _ in 0..ENDPOINTS {
        receiver.subscribe(&server.client()).await;
    }
    for (made, delay_ms) in [0, 0, 1, 2, 4, 8].into_iter().enumerate() {
        server.create(&payment_of(&json!(5))).await;
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        server.kill();
        server.restart();
        let expected = (made + 1) * ENDPOINTS;
        let mut deliveries = Vec::new();
        for page in 1..=expected.div_ceil(100) {
            let path = format!("/webhooks/deliveries?limit=100&page={page}");
            let log = server.get(&path).await;
            assert_eq!(log["total"], expected, "after {delay_ms} ms");
            for delivery in log["items"].as_array().unwrap() {
                deliveries.push((delivery["payload"]["id"].to_string(), delivery["webhookId"].to_string()));
            }
        }
        deliveries.sort();
        deliveries.dedup();
        assert_eq!(deliveries.len(), expected, "after {delay_ms} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_hanging_endpoints_do_not_delay_fifty_others() {
    const ENDPOINTS: usize = 50;
    const PAYMENTS: usize = 10;
    let server = Server::start();
    let (prompt, hanging) = (Receiver::ok().await, Reply::Never);
    let hanging = Receiver::start(hanging).await;
    for _ in 0..ENDPOINTS {
        prompt.subscribe(&server.client()).await;
    }
    let deliver_all = async |expected: usize| {
        let begun = Instant::now();
        for _ in 0..PAYMENTS {
            server.create(&payment_of(&json!(5))).await;
        }
        eventually("the prompt deliveries", async || (prompt.received().len() == expected).then_some(())).await;
        begun.elapsed()
    };
    let alone = deliver_all(ENDPOINTS * PAYMENTS).await;
    for _ in 0..ENDPOINTS {
        hanging.subscribe(&server.client()).await;
    }
    let beside = deliver_all(2 * ENDPOINTS * PAYMENTS).await;
    let again = deliver_all(3 * ENDPOINTS * PAYMENTS).await;
    assert!(hanging.received().len() >= ENDPOINTS);
    // A hanging delivery attempt lasts 8 seconds.
    let bound = alone * 3 + Duration::from_secs(2);
    assert!(beside < bound && again < bound, "{alone:?} alone, {beside:?} and {again:?} beside hanging endpoints");
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_listed_in_the_order_of_their_events() {
    let server = Server::start();
    let hook = json!({"url": "http://127.0.0.1:9/hook", "events": ["payment.created"]});
    assert_eq!(server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().status(), 201);
    let mut created = Vec::new();
    for _ in 0..100 {
        created.push(server.create(&payment_of(&json!(5))).await["id"].clone());
    }
    let page = server.get("/webhooks/deliveries?limit=100").await;
    let listed =
        page["items"].as_array().unwrap().iter().rev().map(|delivery| delivery["payload"]["data"]["id"].clone());
    assert_eq!(listed.collect::<Vec<_>>(), created);
}

/// An endpoint on a bare socket. Each of its responses begins with this text.
async fn answering(head: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 * 1024];
            let mut read = 0;
            // The body follows the head. It is JSON.
            while !request[..read].ends_with(b"}") {
                read += stream.read(&mut request[read..]).await.unwrap();
            }
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_2xx_status_counts_even_if_the_rest_of_its_head_is_invalid() {
    let server = Server::start();
    let heads = [
        "HTTP/1.1 200 OK\r\nX-Powered-By : PHP/7.4\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-Folded: one\r\n two\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nPHP Warning in line 3\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.0 204 No Content\r\nContent-Length: none\r\n\r\n",
        "HTTP/1.1 500 Sorry\r\nContent-Length: none\r\n\r\n",
        "HTTP\r\n\r\n",
    ];
    for head in heads {
        let params = CreateWebhook::new(answering(head).await, Subscription::All).retries(Retries::Standard);
        server.client().webhooks().create(params).await.unwrap();
    }
    server.create(&payment_of(&json!(5))).await;
    let outcomes = eventually("an attempt at each endpoint", || async {
        let page = server.get("/webhooks/deliveries").await;
        let tried: Vec<_> =
            page["items"].as_array().unwrap().iter().filter(|it| it["attempts"] == 1).cloned().collect();
        (tried.len() == heads.len()).then_some(tried)
    });
    let outcomes = outcomes.await;
    let with = |status: Value, delivery: &str| {
        outcomes.iter().filter(|it| it["responseStatus"] == status && it["status"] == delivery).count()
    };
    assert_eq!((with(json!(200), "success"), with(json!(201), "success"), with(json!(204), "success")), (4, 1, 1));
    assert_eq!((with(json!(500), "pending"), with(Value::Null, "pending")), (1, 1), "{outcomes:#?}");
    assert_eq!(outcomes.iter().filter(|it| it["responseBody"] == "ok").count(), 4, "{outcomes:#?}");
}
