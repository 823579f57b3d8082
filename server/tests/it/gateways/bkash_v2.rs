//! bKash's version 2, and its refunds by the API in both versions.

use gateway_fakes::{
    Fault, Instead,
    bkash::{self, Bkash},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{engine::Engine, live::Live, server::eventually};

async fn live() -> Live {
    live_with(Bkash::v2(), "").await
}

async fn live_with(fake: Bkash, more: &str) -> Live {
    let live = Live::start_by(fake, Engine::Directory, "gateway-timeout = 1", more, &[]).await;
    // One wallet pays equal amounts.
    live.bkash.program().refuse_equal_payments(false);
    live
}

/// Refunds so many taka under a key of their own.
async fn refund(live: &Live, id: &str, taka: u64) -> (StatusCode, Value) {
    let request = live.request(Method::POST, &format!("/payments/{id}/refund"));
    let request = request.header("idempotency-key", format!("{id}-{taka}"));
    let answer = request.json(&json!({"amount": taka, "reason": "damaged"})).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// Repeats a refund's request until it is made.
async fn refunded(live: &Live, id: &str, taka: u64) -> Value {
    eventually("the refund", async || {
        let (status, answer) = refund(live, id, taka).await;
        assert!([StatusCode::OK, StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE].contains(&status), "{answer}");
        (status == StatusCode::OK).then_some(answer)
    })
    .await
}

/// What went back, in taka, in how many refunds.
fn sent_back(live: &Live) -> (u64, u32) {
    let entry = live.bkash.program().books().remove(0);
    (entry.refunded_minor / 100, entry.refunded)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_paid_and_refunded_in_two_parts() {
    let live = live().await;
    let id = live.paid(20.0, "BDT").await;
    assert_eq!((live.bkash.program().books()[0].taken, live.bkash.program().token_calls()), (1, 1));
    let (status, part) = refund(&live, &id, 5).await;
    assert_eq!((status, &part["amountRefunded"], &part["rawStatus"]), (StatusCode::OK, &json!(5), &json!("paid")));
    assert_eq!(part["refunds"][0]["requiresManualSettlement"], false);
    let (status, rest) = refund(&live, &id, 15).await;
    assert_eq!((status, &rest["rawStatus"]), (StatusCode::OK, &json!("refunded")));
    assert!(rest["refunds"].as_array().unwrap().iter().all(|refund| refund["status"] == "succeeded"), "{rest}");
    assert_eq!((sent_back(&live), live.server.run(&["refunds", "list"]).as_str()), ((20, 2), ""));
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_success_return_does_not_use_a_payment_up() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    let (_, attempt) = live.pay(&id).await;
    let claim = format!("{}/gateways/bkash/return/{id}?paymentID={attempt}&status=success", live.server.url);
    for _ in 0..3 {
        assert_eq!(live.come_back(&claim).await, format!("/checkout/{id}"));
    }
    assert_eq!(
        (live.bkash.faults().calls_of("execute"), &live.payment(&id).await["rawStatus"]),
        (0, &json!("processing"))
    );
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).expect("the payment is open");
    live.come_back(&back).await;
    live.becomes(&id, "paid").await;
    assert_eq!(live.bkash.program().books()[0].taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_without_money_pays_in_a_second_try() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    let (_, poor) = live.pay(&id).await;
    let back = live.bkash.program().approve(&poor, bkash::POOR_WALLET).unwrap();
    assert_eq!(live.come_back(&back).await, format!("/checkout/{id}"));
    assert_eq!(live.payment(&id).await["rawStatus"], "pending");
    let (_, second) = live.pay(&id).await;
    assert_ne!(poor, second);
    let back = live.bkash.program().approve(&second, bkash::WALLET).unwrap();
    live.come_back(&back).await;
    live.becomes(&id, "paid").await;
    let taken: Vec<_> = live.bkash.program().books().iter().map(|entry| entry.taken).collect();
    assert_eq!(taken.iter().sum::<u32>(), 1, "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_execute_is_queried_and_the_money_moves_once() {
    let live = live().await;
    let faults =
        [Fault::DropAfter, Fault::Empty, Fault::HangAfter, Fault::After(Instead::Code("2003")), Fault::DropBefore];
    for fault in faults {
        let id = live.create(7.0, "BDT").await;
        let (_, attempt) = live.pay(&id).await;
        let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
        live.bkash.faults().next("execute", fault);
        live.come_back(&back).await;
        if fault == Fault::DropBefore {
            // The server cannot know that the request was lost, so it leaves bKash the time for it.
            tokio::time::sleep(std::time::Duration::from_secs(31)).await;
        }
        live.becomes(&id, "paid").await;
    }
    assert!(live.bkash.program().books().iter().all(|entry| entry.taken == 1));
    assert_eq!(live.server.run(&["reviews", "list"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_whose_reply_is_lost_is_sent_once_in_both_versions() {
    let faults = [Fault::DropAfter, Fault::Truncated, Fault::After(Instead::Code("2003")), Fault::DropBefore];
    for (name, fake, more) in [("v2", Bkash::v2(), ""), ("v1", Bkash::new(), "refunds = \"by_api\"")] {
        let live = live_with(fake, more).await;
        let id = live.paid(50.0, "BDT").await;
        let mut sum = 0;
        for (count, (fault, taka)) in (1..).zip(faults.into_iter().zip([5, 6, 7, 8])) {
            live.bkash.faults().next("refund", fault);
            let (status, answer) = refund(&live, &id, taka).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
            // The merchant's retries do not race the server's own.
            let retries = futures_util::future::join_all((0..5).map(|_| refund(&live, &id, taka))).await;
            assert!(retries.iter().all(|(status, _)| *status != StatusCode::UNPROCESSABLE_ENTITY), "{retries:?}");
            refunded(&live, &id, taka).await;
            sum += taka;
            assert_eq!(sent_back(&live), (sum, count), "{name} {fault:?}");
        }
        assert_eq!(
            live.bkash.faults().calls_of("refund"),
            5,
            "{name}: only the request that never arrived was sent twice"
        );
        assert_eq!(live.payment(&id).await["amountRefunded"], sum, "{name}");
        assert_eq!(live.server.run(&["reviews", "list"]), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_waits_for_the_merchants_balance_and_one_that_bkash_refuses_ends() {
    let live = live().await;
    let id = live.paid(20.0, "BDT").await;
    live.bkash.program().empty_balance(true);
    let (status, answer) = refund(&live, &id, 5).await;
    assert!(status == StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    assert_eq!(sent_back(&live), (0, 0));
    live.bkash.program().empty_balance(false);
    refunded(&live, &id, 5).await;
    assert_eq!(sent_back(&live), (5, 1));

    live.bkash.faults().next("refund", Fault::Before(Instead::Code("2071")));
    let (status, answer) = refund(&live, &id, 6).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert_eq!(live.payment(&id).await["amountRefunded"], 5);
    refunded(&live, &id, 7).await;
    assert_eq!(sent_back(&live), (12, 2));
}
