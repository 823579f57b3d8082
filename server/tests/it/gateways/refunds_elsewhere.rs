//! Refunds that the gateway makes later, that fail later, or that a person made in its dashboard.

use gateway_fakes::Fault;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ENGINES, live};
use crate::{live::Live, receiver::Receiver, server::eventually};

async fn get(live: &Live, path: &str) -> Value {
    live.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
}

async fn refund(live: &Live, id: &str, body: Value) -> (StatusCode, Value) {
    let request =
        live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", body.to_string());
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// The payment, once `is_so`.
async fn once(live: &Live, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || Some(live.payment(id).await).filter(&is_so)).await
}

/// The kinds and amounts of the transactions, newest first.
async fn transactions(live: &Live) -> Vec<(String, f64)> {
    let page = get(live, "/account/transactions").await;
    let items = page["items"].as_array().unwrap().iter();
    items.map(|it| (it["kind"].as_str().unwrap().to_owned(), it["amount"].as_f64().unwrap())).collect()
}

fn of(rows: &[(&str, f64)]) -> Vec<(String, f64)> {
    rows.iter().map(|(kind, amount)| ((*kind).to_owned(), *amount)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_fails_later_is_reversed_and_can_be_made_again() {
    for engine in ENGINES {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let receiver = Receiver::ok().await;
        let hook = json!({"url": receiver.url(), "events": ["payment.refund_failed"]});
        assert_eq!(
            live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().status(),
            StatusCode::CREATED
        );
        let id = live.paid(30.0, "USD").await;
        let (status, refunded) = refund(&live, &id, json!({"reason": "damaged"})).await;
        assert_eq!((status, &refunded["status"]), (StatusCode::OK, &json!("refunded")));
        assert_eq!(refunded["refund"]["feeReturned"], 1.5);

        let stripe = live.stripe.program();
        stripe.fail_refund(&stripe.refunds()[0]);
        let failed = once(&live, &id, "the failure", |it| it["refund"]["status"] == "failed").await;
        assert_eq!((&failed["status"], &failed["amountRefunded"]), (&json!("completed"), &json!(0)));
        assert!(failed["refund"]["failureReason"].is_string() && failed["refund"]["failedAt"].is_string(), "{failed}");
        let rows = [("fee", -1.5), ("refund_failed", 30.0), ("fee_returned", 1.5), ("refund", -30.0)];
        let paid = [("fee", -1.5), ("payment", 30.0)];
        assert_eq!(transactions(&live).await, of(&[&rows[..], &paid].concat()));
        assert_eq!(get(&live, "/account/balance").await["usd_balance"], 28.5);
        let received = eventually("the event", async || receiver.received().pop()).await;
        let event: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(
            (&event["event"], &event["data"]["refund_reason"]),
            (&json!("payment.refund_failed"), &json!("damaged"))
        );
        assert_eq!(event["data"]["refund"], failed["refund"]);
        let timeline = get(&live, &format!("/payments/{id}/timeline")).await["items"].to_string();
        assert!(timeline.contains("The refund of 30 USD failed: "), "{timeline}");
        assert_eq!(timeline.matches(r#""kind":"completed""#).count(), 1, "{timeline}");

        let (status, again) = refund(&live, &id, json!({"reason": "again"})).await;
        assert_eq!(
            (status, &again["status"], &again["amountRefunded"]),
            (StatusCode::OK, &json!("refunded"), &json!(30))
        );
        assert_eq!(get(&live, "/account/balance").await["usd_balance"], 0);
        live.server.run(&["check"]);
        assert_eq!(live.server.run(&["reviews", "list"]), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_the_gateway_makes_later_is_booked_at_once_and_settled_later() {
    let live = live().await;
    let id = live.paid(30.0, "USD").await;
    live.stripe.program().next_refund_is("pending");
    let (status, refunded) = refund(&live, &id, json!({})).await;
    assert_eq!(
        (status, &refunded["status"], &refunded["refund"]["status"]),
        (StatusCode::OK, &json!("refunded"), &json!("pending"))
    );
    assert_eq!(
        (&refunded["refund"]["settledAt"], get(&live, "/account/balance").await["usd_balance"].as_f64()),
        (&Value::Null, Some(0.0))
    );
    live.server.run(&["check"]);
    assert!(live.stripe.program().succeed_refund(&live.stripe.program().refunds()[0]));
    let settled = once(&live, &id, "the settlement", |it| it["refund"]["status"] == "succeeded").await;
    assert!(settled["refund"]["settledAt"].is_string(), "{settled}");
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_in_the_dashboard_are_recorded_once_however_often_and_in_whatever_order_events_come() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let (first, second) = (live.paid(30.0, "USD").await, live.paid(12.5, "USD").await);
        let stripe = live.stripe.program();
        stripe.send_events_to(&format!("{}/gateways/stripe/webhook", live.server.url), 3);
        stripe.reverse_events(true);
        let part = stripe.refund_part_by_hand(&first, 1_000).unwrap();
        let recorded = once(&live, &first, "the part", |it| it["amountRefunded"] == 10).await;
        assert_eq!((&recorded["status"], &recorded["refund"]["source"]), (&json!("completed"), &json!("gateway")));
        let (status, own) = refund(&live, &first, json!({"amount": 5})).await;
        assert_eq!((status, &own["amountRefunded"], own["refund"].get("source")), (StatusCode::OK, &json!(15), None));
        stripe.refund_by_hand(&second);
        let whole = once(&live, &second, "the whole", |it| it["rawStatus"] == "refunded").await;
        assert_eq!((&whole["refund"]["amount"], &whole["refund"]["feeReturned"]), (&json!(12.5), &json!(0.63)));
        // A part that fails later returns to the merchant.
        stripe.fail_refund(&part);
        once(&live, &first, "the failed part", |it| it["amountRefunded"] == 5).await;
        live.server.crash_and_restart();
        assert_eq!(live.payment(&first).await["refunds"].as_array().unwrap().len(), 2);
        assert_eq!(get(&live, "/account/balance").await["usd_balance"], 23.75);
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_the_rest_counts_what_the_gateway_gave_back_if_a_part_went_back_in_its_dashboard_unseen() {
    let live = live().await;
    let stripe = live.stripe.program();
    stripe.keep_events();
    let id = live.paid(30.0, "USD").await;
    stripe.refund_part_by_hand(&id, 1_000).unwrap();
    let (status, refunded) = refund(&live, &id, json!({})).await;
    assert_eq!((status, &refunded["refund"]["amount"]), (StatusCode::OK, &json!(20)), "{refunded}");
    // The difference made the server ask.
    let whole = once(&live, &id, "the part", |it| it["rawStatus"] == "refunded").await;
    assert_eq!((&whole["amountRefunded"], &whole["refund"]["source"]), (&json!(30), &json!("gateway")));
    live.server.run(&["check"]);

    // Stripe refuses a part that it no longer has.
    let id = live.paid(30.0, "USD").await;
    stripe.refund_part_by_hand(&id, 2_500).unwrap();
    let (status, refusal) = refund(&live, &id, json!({"amount": 10})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal}");
    once(&live, &id, "the part", |it| it["amountRefunded"] == 25).await;
    let (status, refusal) = refund(&live, &id, json!({"amount": 10.5})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(refusal["message"].as_str().unwrap().starts_with("5 of this payment is left"), "{refusal}");
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_a_refund_comes_again_until_the_gateway_answers() {
    let live = live().await;
    let stripe = live.stripe.program();
    let id = live.paid(30.0, "USD").await;
    stripe.keep_events();
    stripe.refund_part_by_hand(&id, 1_000).unwrap();
    let events = stripe.take_events();
    let send = async |nth: usize| {
        let request = reqwest::Client::new().post(format!("{}/gateways/stripe/webhook", live.server.url));
        let request = request.header("stripe-signature", &events[nth].signature).body(events[nth].body.clone());
        request.send().await.unwrap().status().as_u16()
    };
    live.stripe.faults().next("retrieve", Fault::DropAfter);
    assert_eq!(send(0).await, 503);
    assert_eq!(live.payment(&id).await["amountRefunded"], Value::Null);
    assert_eq!((send(0).await, send(0).await, send(1).await), (200, 200, 200));
    let refunds = live.payment(&id).await["refunds"].clone();
    assert_eq!((refunds.as_array().unwrap().len(), &refunds[0]["amount"]), (1, &json!(10)));
}
