//! Misspelt and contradictory fields that concern money are refused.

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::{
    live::Live,
    server::{Server, payment_of},
};

async fn refused(request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    body["message"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_returns_400_and_suggests_the_right_name() {
    let server = Server::start();
    for (wrong, right) in [("curency", "currency"), ("currnecy", "currency"), ("Currency", "currency")] {
        let mut body = payment_of(&json!(5));
        body[wrong] = "USD".into();
        let message = refused(server.request(Method::POST, "/payments").json(&body)).await;
        assert_eq!(message, json!([format!("{wrong} is not a field; did you mean {right}?")]));
        let demo = server.keyless(Method::POST, "/api/v1/checkout/demo-session").json(&json!({ wrong: "USD" }));
        assert_eq!(refused(demo).await, json!([format!("{wrong} is not a field; did you mean {right}?")]));
    }
    assert_eq!(server.get("/payments").await["total"], 0, "a refused request creates no payment");

    let mut body = payment_of(&json!(5));
    body["metadata"] = json!({"curency": "USD"});
    body["successUrl"] = "https://shop.example/another-name".into();
    body["orderId"] = 7.into();
    server.create(&body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flat_customer_fields_are_read_and_must_not_contradict_the_nested_ones() {
    let server = Server::start();
    let mut body = payment_of(&json!(5));
    body["customerName"] = "Asha".into();
    body["customerPhone"] = "01712345678".into();
    body["customer"] = json!({"email": "asha@example.com", "name": "Asha"});
    let payment = server.create(&body).await;
    let customer = json!({"name": "Asha", "email": "asha@example.com", "phone": "01712345678"});
    assert_eq!(payment["customer"], customer);
    assert_eq!(payment["customerName"], "Asha");

    body["customerName"] = "Karim".into();
    let message = refused(server.request(Method::POST, "/payments").json(&body)).await;
    assert_eq!(message, json!(["customerName and customer.name disagree; give one of them, or the same in both"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_a_misspelt_amount_moves_no_money() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.paid(12.5, "USD").await;
    let refund = |body: Value| live.request(Method::POST, &format!("/payments/{id}/refund")).json(&body);
    let misspelt = refused(refund(json!({"amout": 2.5}))).await;
    assert_eq!(misspelt, json!(["amout is not a field; did you mean amount?"]));
    assert_eq!(refused(refund(json!({"amount": "12.5"}))).await, json!(["amount must be a positive number"]));
    assert_eq!(live.payment(&id).await["rawStatus"], "paid");
    assert_eq!(live.stripe.program().books()[0].refunded, 0);

    let answer = refund(json!({"amount": 12.50, "reason": "damaged"})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(live.stripe.program().books()[0].refunded, 1);
}
