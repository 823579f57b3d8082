//! Stripe's events that come before the answer they belong to, in another order, or never.

use std::time::Duration;

use gateway_fakes::{Fault, stripe};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Live, live};
use crate::server::eventually;

async fn refund(live: &Live, id: &str) -> (u16, Value) {
    let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", id);
    let answer = request.json(&json!({"amount": 10})).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Expires a session, as Stripe does by itself.
async fn expire(live: &Live, session: &str) {
    let request = reqwest::Client::new().post(format!("{}/v1/checkout/sessions/{session}/expire", live.stripe.url()));
    let request = request.bearer_auth(stripe::SECRET_KEY).header("stripe-version", stripe::VERSION);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_paid_before_its_creation_is_answered_pays_the_payment() {
    let live = live().await;
    let id = live.create(9.0, "USD").await;
    live.stripe.faults().next("create", Fault::HangAfter);
    let customer = async {
        let session = eventually("the session", async || live.stripe.program().books().pop()).await.id;
        live.stripe.program().pay(&session, stripe::CARD).unwrap();
        session
    };
    let ((_, attempt), session) = tokio::join!(live.pay(&id), customer);
    assert_eq!(attempt, session, "the second call has the answer to the first");
    live.becomes(&id, "paid").await;
    assert_eq!(live.stripe.program().books().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_whose_events_come_before_its_answer_in_either_order_is_booked_once() {
    let live = live().await;
    let fake = live.stripe.program();
    for are_reversed in [false, true] {
        fake.reverse_events(are_reversed);
        let id = live.paid(30.0, "USD").await;
        live.stripe.faults().next("refund", Fault::HangAfter);
        // The server has asked a second time if another change of the payment came between.
        let (status, refunded) = match refund(&live, &id).await {
            (503, _) => refund(&live, &id).await,
            answered => answered,
        };
        assert_eq!((status, &refunded["amountRefunded"]), (200, &json!(10)));
        // One in the dashboard too.
        fake.refund_part_by_hand(&id, 500).unwrap();
        let both = eventually("the part", async || {
            Some(live.payment(&id).await).filter(|payment| payment["amountRefunded"] == 15)
        });
        assert_eq!(both.await["refunds"].as_array().unwrap().len(), 2);
    }
    live.server.run(&["check"]);
    assert_eq!(fake.versions(), [stripe::VERSION], "each call names it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_stripe_expired_is_found_by_its_event_or_without_one() {
    let live = live().await;
    for has_event in [true, false] {
        let id = live.create(9.0, "USD").await;
        let (_, session) = live.pay(&id).await;
        if !has_event {
            live.stripe.program().keep_events();
        }
        expire(&live, &session).await;
        live.becomes(&id, "expired").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_method_that_takes_days_outlives_the_session_and_ends_by_its_event_or_without_one() {
    let live = Live::start("gateway-timeout = 1\nsession-ttl = 3").await;
    let fake = live.stripe.program();
    let mut slow = Vec::new();
    for succeeds in [true, false, true, false] {
        let id = live.create(9.0, "USD").await;
        let (_, session) = live.pay(&id).await;
        let back = fake.pay(&session, stripe::SLOW_CARD).unwrap();
        assert_eq!(live.come_back(&back).await, format!("/checkout/{id}"));
        slow.push((id, session, succeeds));
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for (nth, (id, session, succeeds)) in slow.iter().enumerate() {
        assert_eq!(live.payment(id).await["rawStatus"], "processing", "Stripe may still take its money");
        if nth == 2 {
            fake.keep_events();
        }
        fake.finish(session, *succeeds);
    }
    for (id, _, succeeds) in slow {
        live.becomes(&id, if succeeds { "paid" } else { "failed" }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_in_the_dashboard_whose_events_are_lost_is_found_by_what_its_payment_intent_names() {
    let mut live = live().await;
    let id = live.paid(30.0, "USD").await;
    live.stripe.program().keep_events();
    // It has no metadata of its own.
    live.stripe.program().refund_part_by_hand(&id, 500).unwrap();
    // The server reads Stripe's lists when it starts.
    live.server.crash_and_restart();
    eventually("the part", async || (live.payment(&id).await["amountRefunded"] == 5).then_some(())).await;
    live.server.run(&["check"]);
}
