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
async fn a_refund_with_an_unreadable_amount_refunds_nothing() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.paid(12.5, "USD").await;
    let refund = |query: &str| live.request(Method::POST, &format!("/payments/{id}/refund{query}"));
    let json = |body: &str| refund("").header("content-type", "application/json").body(body.to_owned());
    for (body, sentence) in [
        (r#"{"amout": 2.5}"#, "amout is not a field; did you mean amount?"),
        (r#"{"Amount": 2.5}"#, "Amount is not a field; did you mean amount?"),
        (r#"{"refund_amount": 5}"#, "refund_amount is not a field; the fields are amount, reason"),
        (r#"{"refundAmount": 5}"#, "refundAmount is not a field; the fields are amount, reason"),
        (r#"{"value": 5}"#, "value is not a field; the fields are amount, reason"),
        (r#"{"sum": 5, "reason": "damaged"}"#, "sum is not a field; the fields are amount, reason"),
        (r#"{"refund": {"amount": 5}}"#, "refund is not a field; the fields are amount, reason"),
        (r#"{"amount": 5, "currency": "BDT"}"#, "currency is not a field; the fields are amount, reason"),
        (r#"{"amount": null}"#, "amount must be a positive number, or be left out to refund what is left"),
        (r#"{"amount": "12.5"}"#, "amount must be a positive number, without quotes"),
        (r#"{"amount": 5, "amount": 12.5}"#, "amount must be given once"),
    ] {
        assert_eq!(refused(json(body)).await, json!([sentence]), "{body}");
    }
    let too_long = refused(refund("").json(&json!({"reason": "অ".repeat(501)}))).await;
    assert_eq!(too_long, json!(["reason must be at most 500 characters long"]));
    for query in ["?amount=5", "?reason=damaged&amount=5", "?x"] {
        let message = refused(refund(query)).await;
        assert!(message[0].as_str().unwrap().ends_with("is in the query; send fields in the body"), "{message}");
    }
    for body in ["null", "[]", "5", " ", r#"{"amount": 5"#] {
        refused(json(body)).await;
    }
    refused(refund("").header("content-type", "application/x-www-form-urlencoded").body("amount=5")).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "paid");
    assert_eq!(live.stripe.program().books()[0].refunded, 0);

    let answer = refund("?").json(&json!({"amount": 12.50, "reason": "অ".repeat(500)})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(live.stripe.program().books()[0].refunded, 1);
    for body in ["", "{}", r#"{"reason": null}"#] {
        let id = live.paid(12.5, "USD").await;
        let path = format!("/payments/{id}/refund");
        let all = live.request(Method::POST, &path).header("content-type", "application/json").body(body.to_owned());
        assert_eq!(all.send().await.unwrap().json::<Value>().await.unwrap()["rawStatus"], "refunded", "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_that_names_no_outcome_pays_nothing() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let path = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    let simulate = |body: Value| server.keyless(Method::POST, &path).json(&body);
    let neither = "status must be given (completed, failed, cancelled), or action (success, fail, cancel)";
    for (body, near) in [
        (json!({"outcome": "failed"}), None),
        (json!({"result": {"status": "failed"}}), None),
        (json!({"status": null}), None),
        (json!({"Status": "failed"}), Some("Status is not a field; did you mean status?")),
        (json!({"stauts": "failed"}), Some("stauts is not a field; did you mean status?")),
    ] {
        let sentences: Vec<&str> = [neither].into_iter().chain(near).collect();
        assert_eq!(refused(simulate(body.clone())).await, json!(sentences), "{body}");
    }
    let misspelt = refused(simulate(json!({"status": "completed", "actoin": "fail"}))).await;
    assert_eq!(misspelt, json!(["actoin is not a field; did you mean action?"]));
    let id = payment["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/payments/{id}")).await["rawStatus"], "created");
    let failed: Value = simulate(json!({"status": "failed", "note": 1})).send().await.unwrap().json().await.unwrap();
    assert_eq!(failed["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_whose_absence_means_something_returns_400() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let (id, hook) = (live.create(20.0, "BDT").await, json!({"url": "http://127.0.0.1:9/", "events": "*"}));
    let keyed = |path: &str| server.request(Method::POST, path);
    let endpoint: Value = keyed("/webhooks").json(&hook).send().await.unwrap().json().await.unwrap();
    let test = format!("/webhooks/{}/test", endpoint["id"].as_str().unwrap());
    let pay = || server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
    let with = |name: &str| {
        let mut hook = hook.clone();
        hook[name] = json!("app_0");
        hook
    };
    for (request, wrong, right) in [
        (pay().json(&json!({"paymentMetod": "card"})), "paymentMetod", "paymentMethod"),
        (pay().json(&json!({"payment_metod": "card"})), "payment_metod", "paymentMethod"),
        (pay().json(&json!({"redirectURL": "https://shop.example/"})), "redirectURL", "redirectUrl"),
        (keyed("/webhooks").json(&with("appID")), "appID", "appId"),
        (keyed(&test).json(&json!({"evnt": "payment.refunded"})), "evnt", "event"),
    ] {
        assert_eq!(refused(request).await, json!([format!("{wrong} is not a field; did you mean {right}?")]));
    }
    assert!(live.bkash.program().books().is_empty(), "no gateway was called");
    assert_eq!(server.get("/webhooks/deliveries").await["total"], 0, "no test event was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_is_read_in_camel_case_and_in_snake_case() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.create(20.0, "BDT").await;
    let pay = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
    let method = refused(pay.json(&json!({"payment_method": "card"}))).await;
    assert_eq!(method, json!(["paymentMethod must be mfs or bkash for a live payment in BDT"]));
    let body = json!({"amount": 5, "successUrl": "https://shop.example/paid", "cancelUrl": "https://shop.example/cart",
        "merchant_transaction_id": "order-1017", "line_items": [{"name": "Cup"}], "customer_name": "Asha"});
    let payment = live.server.create(&body).await;
    assert_eq!(payment["success_url"], "https://shop.example/paid");
    assert_eq!((&payment["merchantTransactionId"], &payment["customerName"]), (&json!("order-1017"), &json!("Asha")));
    assert_eq!(payment["lineItems"][0]["name"], "Cup");
    let hook = json!({"url": "http://127.0.0.1:9/", "events": "*", "app_id": "app_0"});
    let hook = live.server.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
    assert_eq!(hook.status(), StatusCode::NOT_FOUND, "the app is unknown");
}
