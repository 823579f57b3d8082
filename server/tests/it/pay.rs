//! The options of pay: the redirect URL and the payment method.

use gateway_fakes::bkash;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    live::Live,
    server::{Server, payment_of},
};

const ORIGIN: &str = "redirectUrl must have the scheme, host and port of the payment's success_url or cancel_url";
/// URLs with another origin than https://shop.example.
const FOREIGN: [&str; 6] = [
    "https://evil.example/paid",
    "http://shop.example/paid",
    "https://shop.example:8443/paid",
    "https://shop.example.evil.example/paid",
    "https://shop.example@evil.example/paid",
    "https://www.shop.example/paid",
];

async fn pay(server: &Server, id: &str, body: &Value) -> (StatusCode, Value) {
    let request = server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay")).json(body);
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_customer_returns_to_the_shops_redirect_url_and_a_foreign_one_returns_400() {
    let server = Server::start();
    let payment = server.create(&payment_of(&json!(5))).await;
    let id = payment["id"].as_str().unwrap();
    for foreign in FOREIGN {
        let (status, body) = pay(&server, id, &json!({"redirectUrl": foreign})).await;
        assert_eq!((status, &body["message"]), (StatusCode::BAD_REQUEST, &json!([ORIGIN])), "{foreign}");
    }
    for (invalid, fault) in [
        ("/paid", "must be an absolute URL"),
        ("javascript:alert(1)", "must begin with http:// or https://"),
        ("", "must be an absolute URL"),
    ] {
        let (status, body) = pay(&server, id, &json!({"redirectUrl": invalid})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(body["message"], json!([format!("redirectUrl {fault}")]), "{invalid}");
    }
    let (status, paid) = pay(&server, id, &json!({"redirectUrl": "https://shop.example/orders?order=7#end"})).await;
    assert_eq!((status, &paid["status"]), (StatusCode::OK, &json!("paid")));
    let target = format!("https://shop.example/orders?order=7&payment_id={id}&status=completed#end");
    assert_eq!(paid["redirectUrl"], target);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_live_customer_returns_to_the_last_redirect_url_and_a_cancelled_one_to_the_cart() {
    let mut live = Live::start("gateway-timeout = 1").await;
    let id = live.create(20.0, "BDT").await;
    let (status, body) = pay(&live.server, &id, &json!({"redirectUrl": FOREIGN[0]})).await;
    assert_eq!((status, &body["message"]), (StatusCode::BAD_REQUEST, &json!([ORIGIN])));
    let (_, first) = pay(&live.server, &id, &json!({"redirectUrl": "https://shop.example/first"})).await;
    // All three share one gateway attempt. The last redirectUrl wins, and a call without one keeps it.
    let (_, second) = pay(&live.server, &id, &json!({"redirectUrl": "https://shop.example/orders?order=7"})).await;
    let (_, third) = pay(&live.server, &id, &json!({})).await;
    assert_eq!((&first, &first), (&second, &third));
    let (status, _) = pay(&live.server, &id, &json!({"redirectUrl": FOREIGN[0]})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    live.server.crash_and_restart();

    let page = async || {
        let request = live.server.keyless(Method::GET, &format!("/checkout/{id}"));
        request.send().await.unwrap().text().await.unwrap()
    };
    let attempt = first["redirectUrl"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    let target = format!("https://shop.example/orders?order=7&payment_id={id}&status=completed");
    assert_eq!(live.come_back(&back).await, target);
    assert!(page().await.contains(&target.replace('&', "&#38;")), "{}", page().await);

    let id = live.create(20.0, "BDT").await;
    let (_, begun) = pay(&live.server, &id, &json!({"redirectUrl": "https://shop.example/orders"})).await;
    let attempt = begun["redirectUrl"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    live.come_back(&live.bkash.program().cancel(&attempt).unwrap()).await;
    let page = live.server.keyless(Method::GET, &format!("/checkout/{id}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains(&format!("https://shop.example/cart?payment_id={id}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_payment_method_for_a_live_payment_returns_400_and_names_the_right_one() {
    let live = Live::start("gateway-timeout = 1").await;
    let (bdt, usd) = (live.create(20.0, "BDT").await, live.create(20.0, "USD").await);
    for (id, method, sentence) in [
        (&bdt, "test", "paymentMethod must be mfs or bkash for a live payment in BDT"),
        (&bdt, "card", "paymentMethod must be mfs or bkash for a live payment in BDT"),
        (&usd, "test", "paymentMethod must be card or stripe for a live payment in USD"),
    ] {
        let (status, body) = pay(&live.server, id, &json!({"paymentMethod": method})).await;
        assert_eq!((status, &body["message"]), (StatusCode::BAD_REQUEST, &json!([sentence])), "{method}");
    }
    assert!(live.bkash.program().books().is_empty(), "no gateway was called");
    // USD accepts `mfs`, the default method, but the customer pays by card.
    for (id, method) in [(&bdt, "mfs"), (&usd, "mfs"), (&usd, "card")] {
        assert_eq!(pay(&live.server, id, &json!({"paymentMethod": method})).await.0, StatusCode::OK);
    }
}
