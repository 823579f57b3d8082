//! Manual reviews that a person resolves, on the command line.

use std::time::Duration;

use gateway_fakes::{Fault, Instead, bkash, stripe};
use reqwest::Method;
use serde_json::Value;
use tokio::time::sleep;

use super::live;
use crate::{live::Live, server::eventually};

/// A payment that its gateway reports as paid with another amount.
async fn with_another_amount(live: &Live, currency: &str) -> String {
    let id = live.create(100.0, currency).await;
    let (_, attempt) = live.pay(&id).await;
    let back = match currency {
        "BDT" => {
            live.bkash.program().falsify_amount(&attempt, "99.00");
            live.bkash.program().approve(&attempt, bkash::WALLET)
        }
        _ => {
            live.stripe.program().falsify_amount(&attempt, 9_900);
            live.stripe.program().pay(&attempt, stripe::CARD)
        }
    };
    live.come_back(&back.unwrap()).await;
    live.reviews(&id).await;
    id
}

async fn refund(live: &Live, id: &str) -> Value {
    let answer = live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_resolved_as_paid_stores_the_transaction_that_a_refund_needs() {
    let live = live().await;
    let (card, wallet) = (with_another_amount(&live, "USD").await, with_another_amount(&live, "BDT").await);
    for id in [&card, &wallet] {
        live.server.run(&["reviews", "resolve", id, "--note", "seen in the statement", "--as", "paid"]);
        assert_eq!(refund(&live, id).await["status"], "refunded");
    }
    let books = live.stripe.program().books();
    assert_eq!(books.iter().find(|entry| entry.reference == card).unwrap().refunded_minor, 9_900);
    let listed: Value = serde_json::from_str(&live.server.run(&["refunds", "list", "--json"])).unwrap();
    let transaction = live.bkash.program().transactions();
    assert_eq!(listed["refunds"][0]["transaction"], transaction[0].as_str(), "{listed}");
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_not_resolved_as_paid_without_a_transaction() {
    let mut live = live().await;
    let (asked, given) = (with_another_amount(&live, "USD").await, with_another_amount(&live, "BDT").await);
    let resolve = |id: &str| vec!["reviews".to_owned(), "resolve".into(), id.into(), "--note".into(), "seen".into()];
    let run = |live: &Live, id: &str, more: &[&str]| {
        let arguments: Vec<String> = resolve(id).into_iter().chain(more.iter().map(ToString::to_string)).collect();
        live.server.try_run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // The key was replaced, so Stripe says nothing about the payment.
    live.stripe.faults().next("retrieve", Fault::Before(Instead::Unauthorized));
    for (paid, more) in [(&asked, &["--as", "paid"][..]), (&given, &["--as", "failed", "--transaction", "T1"])] {
        let refused = run(&live, paid, more);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains("transaction"), "{error}");
    }
    // Without a running server, the command cannot query the gateway.
    live.server.kill();
    let refused = run(&live, &asked, &["--as", "paid"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--transaction"), "{refused:?}");
    assert!(run(&live, &given, &["--as", "paid", "--transaction", "TRX77"]).status.success());
    live.server.restart();
    refund(&live, &given).await;
    let listed = live.server.run(&["refunds", "list", "--json"]);
    assert!(listed.contains("TRX77"), "{listed}");
    assert!(live.server.run(&["reviews", "list"]).contains(&asked));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_the_payment_cannot_have_is_reviewed_and_not_asked_about_without_end() {
    let live = live().await;
    let stripe = live.stripe.program();
    stripe.keep_events();
    let id = live.create(10.0, "USD").await;
    let (_, attempt) = live.pay(&id).await;
    stripe.falsify_amount(&attempt, 9_900);
    live.come_back(&stripe.pay(&attempt, stripe::CARD).unwrap()).await;
    live.reviews(&id).await;
    live.server.run(&["reviews", "resolve", &id, "--note", "seen in the statement", "--as", "paid"]);
    // All of it goes back in the dashboard, so the refusal of ours makes the server ask.
    let whole = stripe.refund_part_by_hand(&id, 9_900).unwrap();
    let answer = live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    let found = format!("the gateway has a refund {whole} of 99 USD, which this payment cannot have: 10 of");
    eventually("the review", async || live.server.run(&["reviews", "list"]).contains(&found).then_some(())).await;
    // The server asks nothing during the review.
    let asked = || live.stripe.faults().calls_of("retrieve");
    let begun = asked();
    live.server.run(&["reviews", "resolve", &id, "--note", "the whole went back"]);
    eventually("the question after the review", async || (asked() > begun).then_some(())).await;
    sleep(Duration::from_secs(2)).await;
    assert!(!live.server.log().contains("a payment stays due"), "{}", live.server.log());
    live.server.run(&["check"]);
}
