//! A customer whose attempt failed tries again in the same session.

use std::time::Duration;

use gateway_fakes::{Fault, bkash, stripe};
use reqwest::Method;
use serde_json::{Value, json};

use super::{ENGINES, Live, live};
use crate::{engine::Engine, server::eventually};

/// Begins an attempt at bKash that fails because the wallet is empty. Returns the gateway's id of the attempt.
async fn fail(live: &Live, id: &str) -> String {
    let (_, attempt) = live.pay(id).await;
    let back = live.bkash.program().approve(&attempt, bkash::POOR_WALLET).unwrap();
    assert_eq!(live.come_back(&back).await, format!("/checkout/{id}"));
    attempt
}

async fn approve(live: &Live, attempt: &str) -> String {
    live.come_back(&live.bkash.program().approve(attempt, bkash::WALLET).unwrap()).await
}

async fn page(live: &Live, id: &str) -> String {
    let request = live.server.keyless(Method::GET, &format!("/checkout/{id}?lang=en"));
    request.send().await.unwrap().text().await.unwrap()
}

async fn taken(live: &Live, attempt: &str) -> u32 {
    let books = [live.bkash.program().books(), live.stripe.program().books()].concat();
    books.iter().find(|entry| entry.id == attempt).unwrap().taken
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_with_an_empty_wallet_pays_at_the_second_try() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let id = live.create(7.0, "BDT").await;
        let first = fail(&live, &id).await;
        let payment = live.payment(&id).await;
        assert_eq!((&payment["status"], &payment["rawStatus"]), (&json!("pending"), &json!("pending")));
        let shown = page(&live, &id).await;
        assert!(shown.contains("did not go through") && shown.contains("value=\"leave\""), "{shown}");

        live.server.crash_and_restart();
        let (one, other) = tokio::join!(live.pay(&id), live.pay(&id));
        assert_eq!(one, other, "two tabs lead to the same attempt");
        assert_ne!(one.1, first);
        assert!(approve(&live, &one.1).await.starts_with("https://shop.example/paid"));
        assert_eq!(live.payment(&id).await["rawStatus"], "paid");
        assert_eq!((taken(&live, &first).await, taken(&live, &one.1).await), (0, 1));

        let timeline = live.request(Method::GET, &format!("/payments/{id}/timeline"));
        let timeline: Value = timeline.send().await.unwrap().json().await.unwrap();
        let items = timeline["items"].as_array().unwrap();
        let kinds: Vec<&str> = items.iter().map(|item| item["kind"].as_str().unwrap()).collect();
        let moves: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "event").collect();
        let capture = ["sent_to_gateway", "capture_requested"];
        assert_eq!(moves, [&["created"], &capture[..], &["attempt_failed"], &capture[..], &["completed"]].concat());
        let failed = items.iter().find(|item| item["kind"] == "attempt_failed").unwrap();
        let words = "Insufficient Balance (2023). There was not enough money in the account.";
        assert_eq!(failed["description"], format!("bKash says that this attempt failed: {words}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_card_pays_and_a_refund_goes_back_to_it() {
    let live = live().await;
    let id = live.create(9.0, "USD").await;
    let (_, first) = live.pay(&id).await;
    let back = live.stripe.program().pay(&first, stripe::SLOW_CARD).unwrap();
    live.come_back(&back).await;
    live.stripe.program().finish(&first, false);
    live.becomes(&id, "pending").await;
    let (_, second) = live.pay(&id).await;
    live.come_back(&live.stripe.program().pay(&second, stripe::CARD).unwrap()).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "paid");
    assert_eq!(live.request(Method::POST, &format!("/payments/{id}/refund")).send().await.unwrap().status(), 200);
    let refunded = |attempt: &str| {
        live.stripe.program().books().into_iter().find(|entry| entry.id == attempt).unwrap().refunded_minor
    };
    assert_eq!((refunded(&first), refunded(&second)), (0, 900));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_wallet_is_a_failed_attempt_and_a_cancel_ends_the_payment() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    let (_, first) = live.pay(&id).await;
    live.come_back(&live.bkash.program().approve(&first, bkash::BLOCKED_WALLET).unwrap()).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "pending");
    let (_, second) = live.pay(&id).await;
    live.come_back(&live.bkash.program().cancel(&second).unwrap()).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_is_failed_if_its_last_attempt_failed_and_else_expired() {
    for engine in ENGINES {
        let live = Live::start_on(engine, "gateway-timeout = 1\nsession-ttl = 6", &[]).await;
        let (failed, left) = (live.create(7.0, "BDT").await, live.create(7.0, "BDT").await);
        fail(&live, &failed).await;
        fail(&live, &left).await;
        let (_, second) = live.pay(&left).await;
        live.becomes(&failed, "failed").await;
        live.becomes(&left, "expired").await;
        approve(&live, &second).await;
        assert_eq!(taken(&live, &second).await, 0, "an expired payment is not executed");
        let pay = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{failed}/pay"));
        assert_eq!(pay.send().await.unwrap().status(), 409);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_to_the_shop_cancels_at_once_unless_an_attempt_can_be_paid() {
    let live = live().await;
    let leave = async |id: &str| {
        let request = live.server.keyless(Method::POST, &format!("/checkout/{id}")).body("action=leave");
        request.send().await.unwrap().status().as_u16()
    };
    let id = live.create(7.0, "BDT").await;
    fail(&live, &id).await;
    let (_, second) = live.pay(&id).await;
    assert_eq!(leave(&id).await, 200, "the page shows the attempt");
    assert_eq!(live.payment(&id).await["rawStatus"], "processing");
    live.come_back(&live.bkash.program().approve(&second, bkash::POOR_WALLET).unwrap()).await;
    assert_eq!(leave(&id).await, 303);
    assert_eq!(live.payment(&id).await["rawStatus"], "cancelled");
    let go = live.server.keyless(Method::GET, &format!("/checkout/{id}?lang=en&go")).send().await.unwrap();
    assert!(go.text().await.unwrap().contains("url=https://shop.example/cart?payment_id="));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_tab_of_an_ended_attempt_changes_nothing() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    let first = fail(&live, &id).await;
    let (_, second) = live.pay(&id).await;
    // The first attempt's tab is cancelled, then approved. Neither concerns the second attempt.
    let cancelled = format!("{}/gateways/bkash/return/{id}?paymentID={first}&status=cancel", live.server.url);
    live.come_back(&cancelled).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "processing");
    assert_eq!(approve(&live, &first).await, format!("/checkout/{id}"));
    assert_eq!(taken(&live, &first).await, 0, "the server executes only the second attempt");
    approve(&live, &second).await;
    live.becomes(&id, "paid").await;
    assert_eq!((taken(&live, &first).await, taken(&live, &second).await), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_of_a_failed_attempt_pays_the_payment_and_ends_the_second_attempt() {
    for engine in ENGINES {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let alone = live.create(7.0, "BDT").await;
        let first = fail(&live, &alone).await;
        live.bkash.program().take_late(&first);
        live.becomes(&alone, "paid").await;

        let card = live.create(9.0, "USD").await;
        let (_, first) = live.pay(&card).await;
        live.come_back(&live.stripe.program().pay(&first, stripe::SLOW_CARD).unwrap()).await;
        live.stripe.program().finish(&first, false);
        live.becomes(&card, "pending").await;
        let (_, second) = live.pay(&card).await;
        live.stripe.program().take_late(&first);
        live.becomes(&card, "paid").await;
        let (http, closed) = (reqwest::Client::new(), format!("{}/pay/{second}", live.stripe.url()));
        eventually("the second session to be closed", async || {
            let page = http.get(&closed).send().await.unwrap().text().await.unwrap();
            page.contains("not open any more").then_some(())
        })
        .await;
        assert_eq!(live.request(Method::POST, &format!("/payments/{card}/refund")).send().await.unwrap().status(), 200);
        assert_eq!(live.server.run(&["reviews", "list"]), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_of_an_attempt_that_failed_after_its_session_pays_the_payment() {
    let live = Live::start_on(Engine::Directory, "gateway-timeout = 1", &["--session-ttl", "3"]).await;
    let id = live.create(9.0, "USD").await;
    let (_, attempt) = live.pay(&id).await;
    live.come_back(&live.stripe.program().pay(&attempt, stripe::SLOW_CARD).unwrap()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    live.stripe.program().finish(&attempt, false);
    live.becomes(&id, "failed").await;
    live.stripe.program().take_late(&attempt);
    live.becomes(&id, "paid").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_of_two_attempts_waits_for_manual_review() {
    for engine in ENGINES {
        let live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let id = live.create(7.0, "BDT").await;
        let first = fail(&live, &id).await;
        let (_, second) = live.pay(&id).await;
        approve(&live, &second).await;
        live.becomes(&id, "paid").await;
        live.bkash.program().take_late(&first);
        let listed = live.reviews(&id).await;
        assert!(listed.contains(&id) && listed.contains("send it back"), "{listed}");
        live.server.run(&["reviews", "resolve", &id, "--note", "sent back by hand"]);
        let refund = live.request(Method::POST, &format!("/payments/{id}/refund"));
        assert_eq!(refund.send().await.unwrap().status(), 200);
        let of_second = live.bkash.program().books().into_iter().find(|entry| entry.id == second).unwrap();
        assert_eq!((of_second.taken, live.server.run(&["reviews", "list"]).as_str()), (1, ""));
        assert!(live.server.run(&["refunds", "list"]).contains(&id));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenth_failed_attempt_fails_the_payment() {
    let live = live().await;
    let id = live.create(7.0, "BDT").await;
    for attempt in 1..=10 {
        fail(&live, &id).await;
        let expected = if attempt < 10 { "pending" } else { "failed" };
        assert_eq!(live.payment(&id).await["rawStatus"], expected, "after attempt {attempt}");
    }
    assert_eq!(live.bkash.program().books().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_begins_while_the_server_asks_about_the_one_before_is_asked_about_in_time() {
    let live = Live::start_on(Engine::Directory, "gateway-timeout = 3", &[]).await;
    let asked = async |times: u64| {
        let question = format!("question {times}");
        eventually(&question, async || (live.bkash.faults().calls_of("status") >= times).then_some(())).await;
    };
    let id = live.create(7.0, "BDT").await;
    fail(&live, &id).await;
    let before = live.bkash.faults().calls_of("status");
    live.bkash.faults().next("status", Fault::HangBefore);
    asked(before + 1).await;
    let (_, second) = live.pay(&id).await;
    // About the first attempt again, since the payment has changed, and about the second.
    asked(before + 3).await;
    assert!(approve(&live, &second).await.starts_with("https://shop.example/paid"));
    let log = live.server.log();
    assert!(!log.contains("a payment stays due"), "{log}");
}
