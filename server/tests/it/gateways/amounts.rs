//! Amounts that no gateway takes are refused when the payment is created, in the sandbox too.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::live;
use crate::server::{Server, payment_of};

const LIMITS: &str = "amount must be from 0.5 to 999999.99 in USD, the limits of Stripe";

/// Asserts which amounts in dollars are accepted.
async fn check(request: impl Fn() -> RequestBuilder) {
    for (amount, is_taken) in [
        (json!(0.1), false),
        (json!(0.49), false),
        (json!(0.5), true),
        (json!(999_999.99), true),
        (json!(1_000_000), false),
    ] {
        let mut body = payment_of(&amount);
        body["currency"] = json!("USD");
        let answer = request().json(&body).send().await.unwrap();
        let (status, body): (_, Value) = (answer.status(), answer.json().await.unwrap());
        assert_eq!(status, if is_taken { StatusCode::CREATED } else { StatusCode::BAD_REQUEST }, "{amount}: {body}");
        if !is_taken {
            assert_eq!((&body["message"][0], &body["code"]), (&json!(LIMITS), &json!("amount_invalid")));
            assert_eq!(body["fields"][0]["field"], "amount");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_that_the_gateway_does_not_take_is_refused_with_its_limits() {
    let live = live().await;
    check(|| live.request(Method::POST, "/payments")).await;
    // A refund of a part may be smaller.
    let id = live.paid(5.0, "USD").await;
    let part = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", "part");
    assert_eq!(part.json(&json!({"amount": 0.1})).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_has_the_limits_of_live_payments() {
    let server = Server::start();
    check(|| server.request(Method::POST, "/payments")).await;
    check(|| server.keyless(Method::POST, "/api/v1/checkout/demo-session")).await;
    for amount in [json!(0.01), json!(37.5), json!(999_999_999_999.99_f64)] {
        server.create(&payment_of(&amount)).await;
    }
}
