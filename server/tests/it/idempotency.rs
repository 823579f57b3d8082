//! `Idempotency-Key`: one key has one effect and one stored response.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    live::Live,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

async fn create(server: &Server, key: &str, body: &Value) -> (StatusCode, bool, String) {
    let request = server.request(Method::POST, "/payments").header("idempotency-key", key).json(body);
    let answer = request.send().await.unwrap();
    let replayed = answer.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
    (answer.status(), replayed, answer.text().await.unwrap())
}

async fn total(server: &Server) -> Value {
    server.get("/payments").await["total"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_replays_the_first_response_after_a_crash_and_a_status_change() {
    let mut server = Server::start();
    let (status, replayed, first) = create(&server, "key-1", &payment_of(&json!(10))).await;
    assert_eq!((status, replayed), (StatusCode::CREATED, false));
    let id = serde_json::from_str::<Value>(&first).unwrap()["id"].as_str().unwrap().to_owned();
    server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap();
    server.crash_and_restart();
    assert_eq!(create(&server, "key-1", &payment_of(&json!(10))).await, (StatusCode::CREATED, true, first));
    assert_eq!(total(&server).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reusing_a_key_for_another_request_returns_422() {
    let server = Server::start();
    create(&server, "key-1", &payment_of(&json!(10))).await;
    let (status, replayed, body) = create(&server, "key-1", &payment_of(&json!(11))).await;
    assert_eq!((status, replayed), (StatusCode::UNPROCESSABLE_ENTITY, false));
    assert!(body.contains("Idempotency-Key"), "{body}");
    assert_eq!(total(&server).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_json_in_another_notation_replays_the_first_response() {
    let server = Server::start();
    let create = async |body: &str| {
        let request = server.request(Method::POST, "/payments").header("idempotency-key", "key-1");
        let request = request.header("content-type", "application/json").body(body.to_owned());
        let answer = request.send().await.unwrap();
        let replayed = answer.headers().contains_key("idempotent-replayed");
        (answer.status().as_u16(), replayed, answer.text().await.unwrap())
    };
    let first = r#"{"amount":12.5,"success_url":"https://shop.example/paid","cancel_url":"https://shop.example/cart","metadata":{"order":1,"tax":1.10,"lines":[{"sku":"a","n":2}]}}"#;
    let (status, replayed, text) = create(first).await;
    assert_eq!((status, replayed), (201, false));
    for same in [
        first.replace(':', " : ").replace("https : ", "https:").replace(',', ",\n"),
        r#"{"metadata":{"lines":[{"n":2,"sku":"\u0061"}],"tax":1.10,"order":1},"cancel_url":"https:\/\/shop.example/cart","success_url":"https://shop.example/paid","amount":12.5}"#.to_owned(),
    ] {
        assert_eq!(create(&same).await, (201, true, text.clone()), "{same}");
    }
    for other in [
        first.replace("12.5", "12.50"),
        first.replace("1.10", "1.1"),
        first.replace(r#""order":1"#, r#""order":"1""#),
        first.replace(r#"{"sku":"a","n":2}"#, r#"{"sku":"a","n":2},{}"#),
    ] {
        assert_eq!(create(&other).await.0, 422, "{other}");
    }
    assert_eq!(total(&server).await, 1);

    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let ping = || server.request(Method::POST, &format!("/webhooks/{id}/test")).header("idempotency-key", "ping");
    let text = ping().send().await.unwrap().text().await.unwrap();
    let again = ping().json(&json!({})).send().await.unwrap();
    assert_eq!(again.text().await.unwrap(), text, "no body equals an empty object");
    let other = server.request(Method::POST, &format!("/webhooks/{id}/test")).header("idempotency-key", "other");
    let refused = other.header("content-type", "application/json").body("{").send().await.unwrap();
    assert_eq!(refused.status(), 400, "a body that is not JSON has no effect");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_with_one_key_make_one_payment_and_share_its_response() {
    let server = Server::start();
    let body = payment_of(&json!(10));
    let answers = futures_util::future::join_all((0..40).map(|_| create(&server, "key-1", &body))).await;
    assert_eq!(answers.iter().filter(|(_, replayed, _)| !replayed).count(), 1);
    for (status, _, text) in &answers {
        assert_eq!((*status, text), (StatusCode::CREATED, &answers[0].2));
    }
    assert_eq!(total(&server).await, 1);
}

async fn post(server: &Server, path: &str, key: &str, body: &Value) -> (u16, bool, String) {
    let answer = server.request(Method::POST, path).header("idempotency-key", key).json(body).send().await.unwrap();
    let replayed = answer.headers().contains_key("idempotent-replayed");
    (answer.status().as_u16(), replayed, answer.text().await.unwrap())
}

async fn deliveries(server: &Server) -> Value {
    server.get("/webhooks/deliveries").await
}

/// Creates an endpoint that gets only pings. Returns the path that sends them.
async fn pings_to(server: &Server, url: &str) -> String {
    let hook = json!({"url": url, "events": ["payment.refunded"]});
    let answer = server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
    let endpoint: Value = answer.json().await.unwrap();
    format!("/webhooks/{}/test", endpoint["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn six_concurrent_pings_with_one_key_send_one_and_share_its_response() {
    let server = Server::start();
    let receiver = Receiver::start(Reply::Delayed(Duration::from_millis(300))).await;
    let path = pings_to(&server, &receiver.url()).await;
    let none = json!({});
    let answers = futures_util::future::join_all((0..6).map(|_| post(&server, &path, "ping", &none))).await;
    assert_eq!(answers.iter().filter(|(_, replayed, _)| *replayed).count(), 5);
    for (status, _, text) in &answers {
        assert_eq!((*status, text), (200, &answers[0].2));
    }
    assert_eq!(receiver.received().len(), 1);
    assert_eq!(deliveries(&server).await["total"], 1);
    let delivery: Value = serde_json::from_str(&answers[0].2).unwrap();
    assert_eq!(deliveries(&server).await["items"][0], delivery);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_key_refuses_another_request() {
    let server = Server::start();
    let receiver = Receiver::start(Reply::Delayed(Duration::from_millis(300))).await;
    let path = pings_to(&server, &receiver.url()).await;
    let (none, other) = (json!({}), json!({"a": 1}));
    let second = async {
        eventually("the first ping", async || (!receiver.received().is_empty()).then_some(())).await;
        post(&server, &path, "ping", &other).await
    };
    let (first, second) = tokio::join!(post(&server, &path, "ping", &none), second);
    assert_eq!((first.0, second.0), (200, 422), "{}", second.2);
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_is_logged_and_replayed_even_if_its_client_hung_up() {
    let server = Server::start();
    let receiver = Receiver::start(Reply::Delayed(Duration::from_millis(500))).await;
    let path = pings_to(&server, &receiver.url()).await;
    let body = json!({});
    let arrived = eventually("the ping", async || (!receiver.received().is_empty()).then_some(()));
    tokio::select! {
        _ = post(&server, &path, "ping", &body) => panic!("a response before the endpoint replied"),
        () = arrived => {}
    }
    // The first client hung up. This request waits for the first one's effect.
    let (status, replayed, text) = post(&server, &path, "ping", &body).await;
    assert_eq!((status, replayed), (200, true), "{text}");
    assert_eq!((receiver.received().len(), &deliveries(&server).await["total"]), (1, &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_frees_a_key_claimed_before_a_crash() {
    let mut server = Server::start();
    let receiver = Receiver::start(Reply::Never).await;
    let path = pings_to(&server, &receiver.url()).await;
    let body = json!({});
    let arrived = eventually("the ping", async || (!receiver.received().is_empty()).then_some(()));
    tokio::select! {
        _ = post(&server, &path, "ping", &body) => panic!("the endpoint does not reply"),
        () = arrived => {}
    }
    server.kill();
    server.run(&["check"]);
    server.restart();
    // If the key were still claimed, this request would time out, because the lease is longer than a request waits.
    let (status, replayed, text) = post(&server, &path, "ping", &body).await;
    assert_eq!((status, replayed), (200, false), "{text}");
    assert_eq!((receiver.received().len(), &deliveries(&server).await["total"]), (2, &json!(1)));
    assert_eq!(post(&server, &path, "ping", &body).await, (200, true, text));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_does_not_use_up_its_key() {
    let server = Server::start();
    let (status, _, _) = create(&server, "key-1", &payment_of(&json!(-1))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, replayed, _) = create(&server, "key-1", &payment_of(&json!(1))).await;
    assert_eq!((status, replayed), (StatusCode::CREATED, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_serves_two_paths_independently() {
    let server = Server::start();
    create(&server, "key-1", &payment_of(&json!(1))).await;
    let webhook = json!({"url": "http://127.0.0.1:9/", "events": "*"});
    let request = server.request(Method::POST, "/webhooks").header("idempotency-key", "key-1").json(&webhook);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_with_a_slash_at_its_end_is_the_same_request() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let ping = server.client().webhooks().test(&id).await.unwrap().unwrap().id;
    let hook = json!({"url": "http://127.0.0.1:9/", "events": "*"});
    for (path, body) in [
        ("/payments", payment_of(&json!(1))),
        ("/webhooks", hook),
        (&format!("/webhooks/{id}/test"), json!({})),
        (&format!("/webhooks/{id}/rotate-secret"), json!({})),
        (&format!("/webhooks/deliveries/{ping}/resend"), json!({})),
    ] {
        let plain = post(server, path, "key-1", &body).await;
        assert!(matches!(plain, (200 | 201, false, _)), "{path}: {plain:?}");
        let slashed = post(server, &format!("{path}/"), "key-1", &body).await;
        assert_eq!(slashed, (plain.0, true, plain.2), "{path}");
    }

    let id = live.paid(12.5, "USD").await;
    let refund = async |path: &str| {
        let request = live.request(Method::POST, path).header("idempotency-key", "return-1");
        let answer = request.json(&json!({"amount": 5})).send().await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("idempotent-replayed"))
    };
    assert_eq!(refund(&format!("/payments/{id}/refund/")).await, (200, false));
    assert_eq!(refund(&format!("/payments/{id}/refund")).await, (200, true));
    // Other spellings of the path are unknown paths.
    for path in [
        format!("/payments/{id}/refund//"),
        format!("/payments/{id}//refund"),
        format!("/payments//{id}/refund"),
        format!("//payments/{id}/refund"),
        format!("/payments/{}/refund", id.replace('_', "%5F")),
        format!("/payments/{id}/%72efund"),
        format!("/payments/{id}/refund%2F"),
        format!("/Payments/{id}/refund"),
    ] {
        assert_eq!(refund(&path).await, (404, false), "{path}");
    }
    assert_eq!(live.payment(&id).await["amountRefunded"], 5);
    assert_eq!(live.stripe.program().books()[0].refunded, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_1_to_255_visible_ascii_characters() {
    let server = Server::start();
    let longest = "k".repeat(255);
    assert_eq!(create(&server, &longest, &payment_of(&json!(1))).await.0, StatusCode::CREATED);
    for key in ["", "a b", &"k".repeat(256)] {
        let (status, _, body) = create(&server, key, &payment_of(&json!(1))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{key:?}");
        assert!(body.contains("Idempotency-Key"), "{body}");
    }
}
