//! A viewer sees no customer's data in any response.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{People, as_person};
use crate::{
    document,
    receiver::{Receiver, Reply},
    routes::routes,
    server::eventually,
};

const PHONE: &str = "01712345678";
const SECRETS: [&str; 6] =
    ["Ayesha-of-Sylhet", "ayesha@secret.example", PHONE, "gift-for-Karim", "deep-in-metadata", "told-by-the-shop"];

#[tokio::test(flavor = "multi_thread")]
async fn no_response_to_a_viewer_has_a_customers_data() {
    let people = People::start().await;
    let (workspace, key) = people.workspace("Rahim");
    let as_key = async |method: Method, path: &str, body: Value| -> Value {
        let request = people.server.keyless(method, &format!("/api/v1{path}")).bearer_auth(&key);
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    // The shop's server answers with what it got.
    let shop = Receiver::start(Reply::Status(StatusCode::OK, format!("thanks, {}", SECRETS[5]))).await;
    let endpoint = json!({"url": shop.url(), "events": "*"});
    let endpoint = as_key(Method::POST, "/webhooks", endpoint).await["id"].as_str().unwrap().to_owned();
    let create = json!({"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
        "customer": {"name": SECRETS[0], "email": SECRETS[1], "phone": PHONE},
        "metadata": {"note": SECRETS[3], "deep": {"list": [{"x": SECRETS[4]}]}, "n": 7}});
    let payment = as_key(Method::POST, "/payments", create).await["id"].as_str().unwrap().to_owned();
    as_key(Method::POST, &format!("/checkout/{payment}/simulate"), json!({"action": "success"})).await;
    as_key(Method::POST, &format!("/payments/{payment}/simulate"), json!({"event": "disputed"})).await;
    let wallet = json!({"holder": "Rahim", "provider": "bkash", "number": "01812345678"});
    as_key(Method::POST, "/payouts/destinations", json!({"currency": "BDT", "wallet": wallet})).await;
    let delivery = eventually("the deliveries", async || {
        let list = as_key(Method::GET, "/webhooks/deliveries", Value::Null).await;
        let items = list["items"].as_array().unwrap().clone();
        let is_done = items.len() >= 3 && items.iter().all(|it| it["status"] == "success");
        is_done.then(|| items[0]["id"].as_str().unwrap().to_owned())
    })
    .await;
    let events = as_key(Method::GET, "/events", Value::Null).await;
    let event = events["items"][0]["id"].as_str().unwrap().to_owned();

    let session = people.sign_in("viewers").await;
    let document = document::open();
    let (mut shown, mut read) = (Vec::new(), 0);
    for route in routes(&document).filter(|route| route.is_keyed() && route.method == Method::GET) {
        let id = match route.kind_of_id() {
            None => "",
            Some("pay") => &payment,
            Some("evt") => &event,
            Some("wh") => &endpoint,
            Some("del") => &delivery,
            // A payout is the merchant's own. Its transactions have those of the account.
            Some(_) => continue,
        };
        for query in ["", "?limit=100"] {
            let has_limit = route.described["parameters"].to_string().contains("limit");
            if !query.is_empty() && !has_limit && !route.path.ends_with("payments") {
                continue;
            }
            let path = route.path.replace("{id}", id) + query;
            let request = || people.server.keyless(Method::GET, &path);
            let unmasked = request().bearer_auth(&key).send().await.unwrap().text().await.unwrap();
            let masked = as_person(request(), &session, &workspace, "test").send().await.unwrap();
            let (status, masked) = (masked.status(), masked.text().await.unwrap());
            if SECRETS.iter().any(|secret| unmasked.contains(secret)) {
                shown.push(route.id);
            }
            for secret in SECRETS {
                assert!(!masked.contains(secret), "{secret} in {path}: {masked}");
            }
            read += usize::from(status == StatusCode::OK);
        }
    }
    shown.dedup();
    for operation in ["listPayments", "retrievePayment", "listEvents", "retrieveEvent", "listDeliveries"] {
        assert!(shown.contains(&operation), "{operation} is no test: {shown:?}");
    }
    assert!(read > 15, "{read}");
    // What is masked is there, and what is not stays.
    let request = people.server.keyless(Method::GET, &format!("/api/v1/payments/{payment}"));
    let masked: Value = as_person(request, &session, &workspace, "test").send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&masked["customerName"], &masked["metadata"]["deep"], &masked["amount"]),
        (&json!("•••"), &json!("•••"), &json!(750))
    );
    // Support sees it.
    let support = people.sign_in("helpdesk").await;
    let request = people.server.keyless(Method::GET, &format!("/api/v1/payments/{payment}"));
    let seen = as_person(request, &support, &workspace, "test").send().await.unwrap().text().await.unwrap();
    assert!(SECRETS[..5].iter().all(|secret| seen.contains(secret)), "{seen}");
}
