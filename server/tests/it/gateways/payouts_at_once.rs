//! Payouts, refunds and disputes of one merchant's money, all at once.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::ENGINES;
use crate::live::Live;

const PAYMENTS: usize = 12;
const REQUESTS: usize = 200;
static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// The balance in taka, in minor units.
async fn balance(live: &Live) -> i64 {
    let balance: Value = live.request(Method::GET, "/account/balance").send().await.unwrap().json().await.unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "the test's amounts are small")]
    let minor = (balance["bdt_balance"].as_f64().unwrap() * 100.0).round() as i64;
    minor
}

/// Posts with a key of its own.
async fn post(live: &Live, path: &str, body: Value) -> (StatusCode, Value) {
    let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed).to_string();
    let answer = live.request(Method::POST, path).header("idempotency-key", key).json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_at_once_no_more_leaves_than_there_is() {
    for engine in ENGINES {
        let settings = format!(
            "gateway-timeout = 5\nrate-limit = 0\npayout-key = '{}'\nrefund-overdraft = ['BDT=0']",
            "k".repeat(32)
        );
        let live = Arc::new(Live::start_on(engine, &settings, &[]).await);
        let wallet = json!({"holder": "Karim", "provider": "bkash", "number": "01770618575"});
        let set = post(&live, "/payouts/destinations", json!({"currency": "BDT", "wallet": wallet})).await;
        assert_eq!(set.0, StatusCode::OK);
        let mut payments = Vec::new();
        for _ in 0..PAYMENTS {
            payments.push(live.paid(100.0, "BDT").await);
        }
        let earned = balance(&live).await;
        // An open payout with nearly all of it leaves too little for all refunds.
        let (status, first) = post(&live, "/payouts", json!({"currency": "BDT", "amount": 600})).await;
        assert_eq!(status, StatusCode::CREATED);
        let disputed = payments.pop().unwrap();
        let reference = ["--amount", "40", "--reference", "D1"];
        live.server.run(&[&["disputes", "open", &disputed][..], &reference].concat());
        let asked = (0..REQUESTS).map(|nth| {
            let (live, id) = (Arc::clone(&live), payments[nth % payments.len()].clone());
            tokio::spawn(async move {
                match nth % 4 {
                    0 => post(&live, "/payouts", json!({"currency": "BDT"})).await,
                    1 => post(&live, "/payouts", json!({"currency": "BDT", "amount": 30})).await,
                    _ => post(&live, &format!("/payments/{id}/refund"), json!({"amount": 10})).await,
                }
            })
        });
        let (server, payment) = (Arc::clone(&live), disputed.clone());
        let withdrawing = tokio::task::spawn_blocking(move || {
            server.server.run(&["disputes", "withdraw", &payment, "--amount", "40", "--reference", "W1"])
        });
        let cancelling = tokio::spawn({
            let (live, id) = (Arc::clone(&live), first["id"].as_str().unwrap().to_owned());
            async move { post(&live, &format!("/payouts/{id}/cancel"), json!({})).await }
        });
        let answers: Vec<_> = join_all(asked).await.into_iter().map(Result::unwrap).collect();
        withdrawing.await.unwrap();
        assert_eq!(cancelling.await.unwrap().0, StatusCode::OK);
        let (mut paid_out, mut refunds) = (0, 0);
        for (nth, (status, answer)) in answers.iter().enumerate() {
            let is_payout = nth % 4 < 2;
            match (status.as_u16(), answer["code"].as_str()) {
                (201, _) if is_payout => paid_out += 1,
                (200, _) if !is_payout => refunds += 1,
                (409, Some("payout_in_progress" | "payout_not_available")) if is_payout => {}
                (409, Some("refund_overdraws_balance" | "refund_in_progress" | "payment_already_refunded"))
                    if !is_payout => {}
                (409, Some("refund_amount_too_large")) if !is_payout => {}
                _ => panic!("{nth}: {status} {answer}"),
            }
        }
        // A payout of all that was available may have come before every refund.
        assert!(refunds + paid_out > 0, "nothing was refunded or paid out");
        let left = balance(&live).await;
        // A dispute is a fact and may overdraw.
        assert!((-4_000..=earned).contains(&left), "{paid_out} payouts and {refunds} refunds left {left} of {earned}");
        live.server.run(&["check"]);
    }
}
