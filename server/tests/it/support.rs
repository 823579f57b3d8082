//! What a support colleague finds: a payment by whatever a customer reads out, told in a shopkeeper's words.

use payments_client::{Client, PaymentId, SummaryTopic, Timeline};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    live::Live,
    receiver::{Receiver, Reply},
    server::{Server, eventually, payment_of},
};

fn client(live: &Live, key: &str) -> Client {
    Client::builder(key).base_url(&live.server.url).build().unwrap()
}

/// The sentence that says what to do.
fn next(timeline: &Timeline) -> String {
    let lines = timeline.summary.as_ref().unwrap();
    lines.iter().find(|line| line.topic == SummaryTopic::Next).unwrap().en.clone()
}

async fn a_payment_is_found_by_what_its_customer_reads_out_and_only_in_its_workspace(engine: Engine) {
    let mut live = Live::start_on(engine, "gateway-timeout = 5", &[]).await;
    let id = live.paid(750.0, "BDT").await;
    live.server.crash_and_restart();
    let payment = live.payment(&id).await;
    let transaction = payment["gatewayTransactionId"].as_str().unwrap().to_owned();
    let body = json!({"amount": 5, "currency": "BDT", "success_url": "https://shop.example/", "cancel_url":
        "https://shop.example/", "merchantTransactionId": "A+17", "customer": {"email": "asha+tea@shop.example",
        "phone": "+880 1712-345678"}});
    let other: Value = live.request(Method::POST, "/payments").json(&body).send().await.unwrap().json().await.unwrap();
    let (own, stranger) = (client(&live, &live.key), client(&live, &live.server.new_key("Other shop", "live")));
    for (text, expected) in [
        (transaction.as_str(), &id),
        (&*format!(" {transaction} "), &id),
        (&id, &id),
        ("A+17", &other["id"].as_str().unwrap().to_owned()),
        ("Asha+Tea@shop.example", &other["id"].as_str().unwrap().to_owned()),
        ("01712345678", &other["id"].as_str().unwrap().to_owned()),
    ] {
        let found = own.payments().list().search(text).await.unwrap();
        let ids: Vec<_> = found.items.iter().map(|it| it.id.as_str()).collect();
        assert_eq!((ids, found.has_more), (vec![expected.as_str()], Some(false)), "{text}");
        let strangers = stranger.payments().list().search(text).await.unwrap();
        assert!(strangers.items.is_empty() && strangers.has_more == Some(false), "{text}");
    }
    // Other filters still count, and only the whole text.
    let dollars = own.payments().list().search(&transaction).currency(payments_client::Currency::Usd);
    assert!(dollars.await.unwrap().items.is_empty());
    assert!(own.payments().list().search(&transaction[1..]).await.unwrap().items.is_empty());
    let table = live.server.run(&["export", "payments", "--format", "csv"]);
    assert!(table.lines().next().unwrap().ends_with("gatewayTransactionId") && table.contains(&transaction), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_found_by_what_its_customer_reads_out() {
    a_payment_is_found_by_what_its_customer_reads_out_and_only_in_its_workspace(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_found_by_what_its_customer_reads_out_on_postgresql() {
    a_payment_is_found_by_what_its_customer_reads_out_and_only_in_its_workspace(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_says_what_to_do_while_an_endpoint_fails_and_while_a_refund_is_under_way() {
    let live = Live::start("gateway-timeout = 5").await;
    let own = client(&live, &live.key);
    let receiver = Receiver::start(Reply::Status(StatusCode::INTERNAL_SERVER_ERROR, String::new())).await;
    receiver.subscribe(&own).await;
    let id: PaymentId = live.paid(750.0, "BDT").await.parse().unwrap();
    let told = eventually("the endpoint to fail", async || {
        let timeline = own.payments().timeline(&id).await.unwrap();
        next(&timeline).contains("which answered 500").then_some(timeline)
    })
    .await;
    let said =
        |topic: SummaryTopic| told.summary.as_ref().unwrap().iter().find(|it| it.topic == topic).unwrap().clone();
    let customer = said(SummaryTopic::Customer);
    assert!(customer.en.starts_with("The customer chose bKash") && customer.bn.contains("bKash"), "{customer:?}");
    let gateway = said(SummaryTopic::Gateway);
    let transaction = live.payment(id.as_str()).await["gatewayTransactionId"].as_str().unwrap().to_owned();
    assert!(gateway.en.contains("confirmed ৳750.00") && gateway.bn.contains(&transaction), "{gateway:?}");
    let refund = live.request(Method::POST, &format!("/payments/{id}/refund")).json(&json!({"amount": 100}));
    let refund = refund.header("idempotency-key", "r-1");
    assert_eq!(refund.send().await.unwrap().status(), StatusCode::OK);
    let timeline = own.payments().timeline(&id).await.unwrap();
    assert!(next(&timeline).contains("on its way back to the customer"), "{}", next(&timeline));
    let money: Vec<_> = timeline.summary.unwrap().into_iter().filter(|it| it.topic == SummaryTopic::Money).collect();
    assert!(money[0].en.contains("৳650.00 can still be refunded"), "{money:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consoles_reads_are_not_logged_and_what_it_writes_is() {
    let server = Server::start();
    let console = |method, path: &str| server.request(method, path).header("x-console", "1");
    console(Method::GET, "/account").send().await.unwrap();
    let payment = console(Method::POST, "/payments").json(&payment_of(&json!(5))).send().await.unwrap();
    assert_eq!(payment.status(), StatusCode::CREATED);
    server.get("/account/balance").await;
    let log = eventually("the requests to be logged", async || {
        let page = server.client().request_log().list().limit(100).await.unwrap();
        (page.items.len() >= 2).then_some(page)
    })
    .await;
    let paths: Vec<_> = log.items.iter().map(|it| format!("{} {}", it.method, it.path)).collect();
    assert_eq!(paths, ["GET /api/v1/account/balance", "POST /api/v1/payments"]);
}
