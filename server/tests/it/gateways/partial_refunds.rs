//! Refunds of parts. Together they never exceed the payment, even at the gateway.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use gateway_fakes::Fault;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::live;
use crate::{engine::Engine, live::Live, receiver::Receiver, server::eventually};

/// Refunds a part, or the rest without an amount.
async fn refund(live: &Live, id: &str, amount: Option<f64>, key: Option<&str>) -> (StatusCode, Value) {
    let mut request = live.request(Method::POST, &format!("/payments/{id}/refund"));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let body = amount.map_or(json!({}), |amount| json!({"amount": amount, "reason": "one cup broke"}));
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn balance(live: &Live, currency: &str) -> Value {
    let account: Value = live.request(Method::GET, "/account").send().await.unwrap().json().await.unwrap();
    account["balance"][currency].clone()
}

fn refunded_at_stripe(live: &Live, id: &str) -> u64 {
    live.stripe.program().books().into_iter().find(|entry| entry.reference == id).unwrap().refunded_minor
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_a_payment_are_refunded_one_by_one_and_the_last_one_refunds_the_whole() {
    for engine in [Engine::Directory, Engine::Postgres] {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        // Nothing that the gateway keeps is booked.
        live.stripe.program().delay_fees(true);
        let receiver = Receiver::ok().await;
        let hook = json!({"url": receiver.url(), "events": ["payment.refunded", "payment.partially_refunded"]});
        let answer = live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        let id = live.paid(12.5, "USD").await;

        let (status, keyless) = refund(&live, &id, Some(2.5), None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(keyless["message"][0].as_str().unwrap().contains("Idempotency-Key"), "{keyless}");
        let (status, part) = refund(&live, &id, Some(2.5), Some("cup")).await;
        assert_eq!(status, StatusCode::OK, "{part}");
        assert_eq!((&part["status"], &part["rawStatus"]), (&json!("completed"), &json!("paid")));
        assert_eq!((&part["refund"]["amount"], &part["amountRefunded"]), (&json!(2.5), &json!(2.5)));
        assert_eq!(part["refund"]["reason"], "one cup broke");
        assert_eq!(refund(&live, &id, Some(2.5), Some("cup")).await.1, part, "the same key replays");
        // The fee is 5 percent: 0.63 of 12.50, and 0.13 of 2.50.
        assert_eq!(balance(&live, "usd").await, json!(9.5));

        let (status, over) = refund(&live, &id, Some(10.01), Some("over")).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(over["message"].as_str().unwrap().starts_with("10 of this payment is left"), "{over}");
        let (status, whole) = refund(&live, &id, None, None).await;
        assert_eq!(status, StatusCode::OK, "{whole}");
        assert_eq!((&whole["status"], &whole["amountRefunded"]), (&json!("refunded"), &json!(12.5)));
        assert_eq!((&whole["refunds"][0], &whole["refunds"][1]), (&part["refund"], &whole["refund"]));
        assert_eq!(refund(&live, &id, None, None).await.0, StatusCode::CONFLICT);
        assert_eq!(refund(&live, &id, Some(1.0), Some("more")).await.0, StatusCode::CONFLICT);
        assert_eq!((refunded_at_stripe(&live, &id), balance(&live, "usd").await), (1250, json!(0)));

        let mut received = eventually("both events", async || {
            let received = receiver.received();
            (received.len() == 2).then_some(received)
        })
        .await;
        received
            .sort_by_key(|received| serde_json::from_slice::<Value>(&received.body).unwrap()["created_at"].to_string());
        for (received, (kind, payment)) in
            received.iter().zip([("payment.partially_refunded", part), ("payment.refunded", whole)])
        {
            let event: Value = serde_json::from_slice(&received.body).unwrap();
            let mut data = payment;
            data["refund_reason"] = data["refund"]["reason"].clone();
            assert_eq!((&event["event"], &event["data"]), (&json!(kind), &data));
        }
        live.server.run(&["check"]);
        let exported = live.server.run(&["export", "refunds"]);
        assert_eq!(exported.lines().count(), 2, "{exported}");
        assert_eq!(live.server.run(&["export", "postings"]).lines().count(), 9);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mobile_money_part_is_settled_by_its_own_id() {
    let live = live().await;
    let id = live.paid(20.0, "BDT").await;
    let (_, first) = refund(&live, &id, Some(5.0), Some("first")).await;
    let (_, second) = refund(&live, &id, Some(6.0), Some("second")).await;
    let [first, second] = [first, second].map(|payment| payment["refund"]["id"].as_str().unwrap().to_owned());
    let listed = live.server.run(&["refunds", "list"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[1].starts_with(&format!("{id} 5 BDT")) && lines[1].ends_with(&first), "{listed}");
    assert!(lines[2].starts_with(&format!("{id} 6 BDT")) && lines[2].ends_with(&second), "{listed}");

    assert!(!live.server.try_run(&["refunds", "settle", &id, "--reference", "TRX1"]).status.success());
    let settled = live.server.run(&["refunds", "settle", &second, "--reference", "TRX2"]);
    assert!(settled.starts_with(&id), "{settled}");
    let payment = live.payment(&id).await;
    assert_eq!(payment["refunds"][0]["status"], "pending_settlement");
    assert_eq!((&payment["refunds"][1]["status"], &payment["rawStatus"]), (&json!("succeeded"), &json!("paid")));
    assert!(!live.server.try_run(&["refunds", "settle", &second, "--reference", "TRX3"]).status.success());
    // One refund waits, so the payment's id is enough.
    let settle = ["refunds", "settle", &id, "--reference", "TRX4"];
    let settled = live.server.run(&settle);
    assert_eq!(live.server.run(&["refunds", "list"]), "");
    // The same command again does not settle the refund that has been waiting since.
    let (_, third) = refund(&live, &id, Some(7.0), Some("third")).await;
    assert_eq!(live.server.run(&settle), settled);
    let listed = live.server.run(&["refunds", "list"]);
    assert!(listed.trim_end().ends_with(third["refund"]["id"].as_str().unwrap()), "{listed}");
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_refunds_of_parts_never_exceed_the_payment() {
    for engine in [Engine::Directory, Engine::Postgres] {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        for currency in ["USD", "BDT"] {
            let id = live.paid(10.0, currency).await;
            let keys: Vec<String> = (0..24).map(|nth| format!("{currency}-{}", nth % 12)).collect();
            let answers = join_all(keys.iter().map(|key| refund(&live, &id, Some(3.0), Some(key)))).await;
            let mut made = BTreeMap::new();
            for (key, (status, answer)) in keys.iter().zip(answers) {
                match status {
                    StatusCode::OK => {
                        let refund = answer["refund"]["id"].to_string();
                        assert_eq!(made.entry(key).or_insert_with(|| refund.clone()), &refund, "one key, one refund");
                    }
                    StatusCode::CONFLICT => {}
                    status => panic!("{status}: {answer}"),
                }
            }
            assert!((1..=3).contains(&made.len()), "{made:?}");
            let payment = live.payment(&id).await;
            assert_eq!(payment["amountRefunded"], json!(3 * made.len()), "{payment}");
            if currency == "USD" {
                assert_eq!(refunded_at_stripe(&live, &id), 300 * made.len() as u64);
            }
        }
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_with_a_lost_answer_is_found_at_stripe_even_without_its_key() {
    let mut live = live().await;
    let id = live.paid(10.0, "USD").await;
    live.stripe.faults().next("refund", Fault::DropAfter);
    assert_eq!(refund(&live, &id, Some(4.0), Some("a")).await.0, StatusCode::SERVICE_UNAVAILABLE);
    live.stripe.program().forget_keys();
    let (status, found) = refund(&live, &id, Some(4.0), Some("a")).await;
    assert_eq!((status, &found["amountRefunded"]), (StatusCode::OK, &json!(4)));
    assert_eq!(refunded_at_stripe(&live, &id), 400);

    // The same happens after a crash: the server finishes by itself.
    live.stripe.faults().next("refund", Fault::DropAfter);
    assert_eq!(refund(&live, &id, Some(1.0), Some("b")).await.0, StatusCode::SERVICE_UNAVAILABLE);
    live.stripe.program().forget_keys();
    live.server.crash_and_restart();
    eventually("the refund to be found", async || {
        (live.payment(&id).await["amountRefunded"] == json!(5)).then_some(())
    })
    .await;
    assert_eq!(refunded_at_stripe(&live, &id), 500);
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_stripe_refuses_leaves_the_payment_as_it_was() {
    let live = live().await;
    let id = live.paid(10.0, "USD").await;
    live.stripe.program().next_refund_is("failed");
    assert_eq!(refund(&live, &id, Some(4.0), Some("a")).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(live.payment(&id).await.get("amountRefunded").is_none());
    assert_eq!(refund(&live, &id, Some(4.0), Some("a")).await.0, StatusCode::OK, "the key may be used again");
    // The bank rejects it later. Then all of the payment can be refunded.
    let at_stripe = live.stripe.program().refunds();
    assert_eq!(at_stripe.len(), 2, "a refused one and a made one");
    for one in &at_stripe {
        live.stripe.program().fail_refund(one);
    }
    eventually("the refund to fail", async || (live.payment(&id).await["amountRefunded"] == 0).then_some(())).await;
    let (status, whole) = refund(&live, &id, None, None).await;
    assert_eq!((status, &whole["amountRefunded"]), (StatusCode::OK, &json!(10)));
    live.server.run(&["check"]);
}
