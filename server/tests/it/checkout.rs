//! Keyless checkout routes: pay and demo sessions. Refunds of test payments.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{Server, eventually, payment_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn paying_a_test_session_simulates_success() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let pay = format!("/api/v1/checkout/{}/pay", payment["id"].as_str().unwrap());
    let bad = server
        .keyless(Method::POST, &pay)
        .json(&json!({"paymentMethod": "Cash", "phoneNumber": 1}))
        .send()
        .await
        .unwrap();
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
    let sentences = bad.json::<Value>().await.unwrap()["message"].clone();
    assert_eq!(
        sentences,
        json!(["paymentMethod must be mfs, card, test, or the name of a way to pay", "phoneNumber must be a string"])
    );
    let paid = server.keyless(Method::POST, &pay).json(&json!({"paymentMethod": "mfs"})).send().await.unwrap();
    assert_eq!(paid.status(), StatusCode::OK);
    let paid: Value = paid.json().await.unwrap();
    assert_eq!((&paid["status"], &paid["success"]), (&json!("paid"), &json!(true)));
    assert!(paid["redirectUrl"].as_str().unwrap().starts_with("https://shop.example/paid?payment_id=pay_"));
    assert_eq!(server.keyless(Method::POST, &pay).send().await.unwrap().status(), StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_session_is_a_sandbox_payment_and_its_event_wraps_the_payment() {
    let server = Server::start();
    let receiver = Receiver::ok().await;
    let secret = receiver.subscribe(&server.client()).await;
    let made = server.keyless(Method::POST, "/api/v1/checkout/demo-session").send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED);
    let session: Value = made.json().await.unwrap();
    let id = session["id"].as_str().unwrap();
    assert!(id.starts_with("test_pay_"), "{id}");
    assert_eq!((&session["amount"], &session["currency"]), (&json!(100), &json!("BDT")));
    assert_eq!(session["checkoutUrl"], format!("/checkout/{id}"));
    assert_eq!(session["checkout_url"], format!("{}/checkout/{id}", server.url));

    let event = eventually("the event", || async { receiver.received().first().cloned() }).await;
    let event = event.verified_with(&secret);
    let data: Value = event.data().parse().unwrap();
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["event", "payment"]);
    assert_eq!((&data["event"], &data["payment"]["id"]), (&json!("payment.created"), &json!(id)));
    assert_eq!(event.payment().unwrap().id.as_str(), id);

    let other = json!({"amount": 12.5, "currency": "USD", "customerName": "Asha", "description": "Tea"});
    let other = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&other).send().await.unwrap();
    let other: Value = other.json().await.unwrap();
    assert_eq!(
        (&other["amount"], &other["customerName"], &other["description"]),
        (&json!(12.5), &json!("Asha"), &json!("Tea"))
    );
    let bad =
        server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({"amount": 0})).send().await.unwrap();
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);

    let page = server.keyless(Method::GET, &format!("/checkout/{id}")).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("৳100.00"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_payment_cannot_be_refunded() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let id = payment["id"].as_str().unwrap();
    let refund =
        || server.request(Method::POST, &format!("/payments/{id}/refund")).json(&json!({"reason": "damaged"})).send();
    assert_eq!(refund().await.unwrap().status(), StatusCode::CONFLICT);
    server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap();
    let refused = refund().await.unwrap();
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["message"], "a test payment cannot become refunded; only a payment made with a live key can");
    let bad = server
        .request(Method::POST, &format!("/payments/{id}/refund"))
        .json(&json!({"reason": 1}))
        .send()
        .await
        .unwrap();
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
    let unknown = server.request(Method::POST, "/payments/pay_unknown/refund").send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}
