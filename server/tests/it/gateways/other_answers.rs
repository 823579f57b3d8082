//! Answers that are not about the request: the key was revoked, a proxy answered, or the outcome is unknown.

use gateway_fakes::{Fault, Instead, bkash};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{approved, live};
use crate::{live::Live, server::eventually};

const OF_NOTHING: [Instead; 5] = [
    Instead::Unauthorized,
    Instead::Forbidden,
    Instead::NotFound,
    Instead::Page,
    // Stripe's error about an idempotency key.
    Instead::Code(""),
];

/// Refunds a part, or the whole payment without an amount.
async fn refund(live: &Live, id: &str, amount: Option<u64>) -> (StatusCode, Value) {
    let body = amount.map_or(json!({}), |amount| json!({"amount": amount}));
    let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", id);
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

fn sent_back(live: &Live, id: &str) -> u64 {
    live.stripe.program().books().into_iter().find(|entry| entry.reference == id).unwrap().refunded_minor
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_with_a_lost_answer_is_sent_once_whatever_its_retries_return() {
    let live = live().await;
    // The server would query each event, and those queries would use up the faults.
    live.stripe.program().keep_events();
    for (instead, amount) in OF_NOTHING.into_iter().flat_map(|it| [(it, Some(10)), (it, None)]) {
        let id = live.paid(20.0, "USD").await;
        live.stripe.faults().next("refund", Fault::DropAfter);
        assert_eq!(refund(&live, &id, amount).await.0, StatusCode::SERVICE_UNAVAILABLE);
        for operation in ["retrieve", "refund"] {
            live.stripe.faults().next(operation, Fault::Before(instead));
            let (status, answer) = refund(&live, &id, amount).await;
            let is_found = operation == "refund" && status == StatusCode::OK;
            assert!(is_found || status == StatusCode::SERVICE_UNAVAILABLE, "{instead:?}: {answer}");
            live.stripe.faults().none();
        }
        let (status, found) = refund(&live, &id, amount).await;
        assert_eq!(status, StatusCode::OK, "{instead:?}: {found}");
        let refunded = amount.unwrap_or(20);
        assert_eq!(
            (&found["amountRefunded"], sent_back(&live, &id)),
            (&json!(refunded), refunded * 100),
            "{instead:?}"
        );
    }
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_stripe_made_is_recorded_even_after_misleading_answers() {
    let live = live().await;
    let mut refunds = Vec::new();
    for (instead, amount) in OF_NOTHING.into_iter().zip([None, Some(10), None, None, Some(10)]) {
        let id = live.paid(20.0, "USD").await;
        live.stripe.faults().next("refund", Fault::After(instead));
        let (status, answer) = refund(&live, &id, amount).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{instead:?}: {answer}");
        let another = live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
        assert_eq!(another.status(), StatusCode::CONFLICT, "{instead:?}: a refund is pending");
        refunds.push((id, amount.unwrap_or(20)));
    }
    let faults: Vec<Fault> = OF_NOTHING.into_iter().map(Fault::Before).collect();
    live.stripe.faults().at_random(3, 1.0, &faults, &[]);
    let asked = live.stripe.faults().calls().1;
    eventually("each to be asked for in vain", async || {
        (live.stripe.faults().calls().1 >= asked + refunds.len() as u64).then_some(())
    })
    .await;
    live.stripe.faults().none();
    for (id, amount) in &refunds {
        eventually("the refund to be recorded", async || {
            (live.payment(id).await["amountRefunded"] == json!(amount)).then_some(())
        })
        .await;
        assert_eq!(sent_back(&live, id), amount * 100);
    }
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_in_the_dashboard_does_not_count_as_the_merchants() {
    let live = live().await;
    let id = live.paid(20.0, "USD").await;
    live.stripe.program().keep_events();
    live.stripe.program().refund_by_hand(&id);
    let (status, answer) = refund(&live, &id, None).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("already been refunded"), "{answer}");
    // After the refusal the server asks, and finds the other refund.
    live.becomes(&id, "refunded").await;
    assert_eq!((&live.payment(&id).await["refund"]["source"], sent_back(&live, &id)), (&json!("gateway"), 2_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_execute_with_an_unknown_outcome_no_other_attempt_begins() {
    let live = live().await;
    let codes = ["2003", "2020", "2024", "9999", "2029", "2067", "7777"].map(Instead::Code);
    for instead in codes.into_iter().chain(OF_NOTHING.into_iter().take(4)) {
        let (id, back) = approved(&live, bkash::WALLET).await;
        let (_, first) = live.pay(&id).await;
        live.bkash.faults().next("execute", Fault::Before(instead));
        live.come_back(&back).await;
        assert_eq!(live.payment(&id).await["rawStatus"], "processing", "{instead:?}");
        let (_, again) = live.pay(&id).await;
        assert_eq!(again, first, "{instead:?}: no second attempt begins while the first may be paid");
        // The money is taken after all.
        live.bkash.program().take(&first);
        live.becomes(&id, "paid").await;
        let taken: Vec<u32> =
            live.bkash.program().books().iter().filter(|it| it.reference.contains(&id)).map(|it| it.taken).collect();
        assert_eq!(taken, [1], "{instead:?}");
        if instead == Instead::Unauthorized {
            // This answer may come from a proxy, so the server requests no new token: bKash grants two an hour.
            assert_eq!(live.bkash.program().token_calls(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_payment_is_executed_again_until_bkash_knows_the_outcome() {
    let live = live().await;
    let (id, back) = approved(&live, bkash::WALLET).await;
    for code in ["2003", "9999"] {
        live.bkash.faults().next("execute", Fault::Before(Instead::Code(code)));
    }
    live.come_back(&back).await;
    live.becomes(&id, "paid").await;
    assert_eq!((live.bkash.faults().calls_of("execute"), live.bkash.program().books()[0].taken), (3, 1));
}
