//! Payments through bKash and Stripe.

use gateway_fakes::{Fault, bkash, stripe};
use reqwest::Method;
use serde_json::{Value, json};

use super::{approved, live};
use crate::{
    live::Live,
    server::{Server, payment_of},
};

#[tokio::test(flavor = "multi_thread")]
async fn creating_a_payment_in_a_currency_without_a_gateway_returns_422() {
    let server = Server::start();
    let key = server.new_key("Rahim", "live");
    let request = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(key);
    let answer = request.json(&payment_of(&json!(5))).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    let body: Value = answer.json().await.unwrap();
    assert!(body["message"].as_str().unwrap().contains("BDT"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bkash_confirms_mobile_money_and_its_refund_is_settled_manually() {
    let live = live().await;
    let id = live.paid(15.5, "BDT").await;
    let payment = live.payment(&id).await;
    assert_eq!((&payment["status"], &payment["rawStatus"]), (&json!("completed"), &json!("paid")));
    assert_eq!((&payment["paymentMethod"], &payment["isSimulated"]), (&json!("mfs"), &json!(false)));
    let books = live.bkash.program().books();
    assert_eq!((books.len(), books[0].taken, books[0].amount_minor), (1, 1, 1550));
    assert!(books[0].reference.starts_with(&id));

    let refund = live.request(Method::POST, &format!("/payments/{id}/refund"));
    let refunded: Value = refund.json(&json!({"reason": "damaged"})).send().await.unwrap().json().await.unwrap();
    assert_eq!(refunded["refund"]["requiresManualSettlement"], true);
    assert_eq!(refunded["refund"]["status"], "pending_settlement");
    assert_eq!(refunded["refund"]["settledAt"], Value::Null);

    let listed = live.server.run(&["refunds", "list"]);
    assert!(listed.contains(&format!("REFUND\n{id} 15.5 BDT")), "{listed}");
    let settled = live.server.run(&["refunds", "settle", &id, "--reference", "TRX9"]);
    assert!(settled.contains("TRX9"), "{settled}");
    assert_eq!(live.server.run(&["refunds", "settle", &id, "--reference", "TRX9"]), settled, "idempotent");
    assert!(!live.server.try_run(&["refunds", "settle", &id, "--reference", "TRX10"]).status.success());
    assert_eq!(live.server.run(&["refunds", "list"]), "");
    let settled = live.payment(&id).await;
    assert_eq!(settled["refund"]["status"], "succeeded");
    assert!(settled["refund"]["settledAt"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn stripe_confirms_and_refunds_card_payments() {
    let live = live().await;
    let id = live.paid(12.5, "USD").await;
    let payment = live.payment(&id).await;
    assert_eq!((&payment["rawStatus"], &payment["paymentMethod"]), (&json!("paid"), &json!("card")));
    let refund = live.request(Method::POST, &format!("/payments/{id}/refund"));
    let refunded: Value = refund.json(&json!({"reason": "damaged"})).send().await.unwrap().json().await.unwrap();
    assert_eq!(refunded["refund"]["requiresManualSettlement"], false);
    assert_eq!(refunded["refund"]["status"], "succeeded");
    let books = live.stripe.program().books();
    assert_eq!((books[0].taken, books[0].refunded, books[0].amount_minor), (1, 1, 1250));
    assert_eq!(books[0].reference, id);
    assert_eq!(live.server.run(&["refunds", "list"]), "");
    let balance = live.request(Method::GET, "/account").send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!((&balance["balance"]["usd"], &balance["volume"]["usd"]), (&json!(0), &json!(12.5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clicks_make_one_gateway_attempt() {
    let live = live().await;
    for currency in ["BDT", "USD"] {
        let id = live.create(20.0, currency).await;
        let (first, second) = tokio::join!(live.pay(&id), live.pay(&id));
        assert_eq!(first, second);
        assert_eq!(live.pay(&id).await, first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_execute_is_queried_and_the_money_moves_once() {
    for fault in [Fault::DropAfter, Fault::ErrorAfter, Fault::Empty, Fault::Truncated, Fault::HangAfter] {
        let live = live().await;
        let (id, back) = approved(&live, bkash::WALLET).await;
        live.bkash.faults().next("execute", fault);
        live.bkash.faults().next("status", fault);
        live.come_back(&back).await;
        live.becomes(&id, "paid").await;
        // The browser requests the return URL again.
        assert!(live.come_back(&back).await.starts_with("https://shop.example/paid"));
        assert_eq!(live.bkash.program().books()[0].taken, 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execute_that_never_arrived_is_retried() {
    let live = live().await;
    let (id, back) = approved(&live, bkash::WALLET).await;
    live.bkash.faults().next("execute", Fault::DropBefore);
    let page = live.come_back(&back).await;
    assert_eq!(page, format!("/checkout/{id}"), "the browser returns to the checkout page");
    live.becomes(&id, "paid").await;
    assert_eq!(live.bkash.program().books()[0].taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_execute_fails_the_attempt_even_if_the_first_query_is_lost() {
    let live = live().await;
    let (id, back) = approved(&live, bkash::POOR_WALLET).await;
    live.bkash.faults().next("status", Fault::DropBefore);
    live.come_back(&back).await;
    assert_eq!(live.payment(&id).await["rawStatus"], "pending");
    assert_eq!(live.bkash.program().books()[0].taken, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_approved_during_a_crash_is_paid_without_the_browser() {
    let mut live = live().await;
    let bdt = live.create(7.0, "BDT").await;
    let usd = live.create(7.0, "USD").await;
    let (_, attempt) = live.pay(&bdt).await;
    let (_, session) = live.pay(&usd).await;
    // The server is down when the customers approve and when Stripe sends its events.
    live.server.kill();
    live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    live.stripe.program().pay(&session, stripe::CARD).unwrap();
    live.server.restart();
    live.becomes(&bdt, "paid").await;
    live.becomes(&usd, "paid").await;
    assert_eq!(live.bkash.program().token_calls(), 1, "the token survives a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_or_declined_payment_takes_no_money() {
    let live = live().await;
    let cancelled = live.create(7.0, "BDT").await;
    let back = live.bkash.program().cancel(&live.pay(&cancelled).await.1).unwrap();
    assert_eq!(live.come_back(&back).await, format!("/checkout/{cancelled}"));
    assert_eq!(live.payment(&cancelled).await["rawStatus"], "cancelled");

    let poor = live.create(7.0, "BDT").await;
    let back = live.bkash.program().approve(&live.pay(&poor).await.1, bkash::POOR_WALLET).unwrap();
    live.come_back(&back).await;
    assert_eq!(live.payment(&poor).await["rawStatus"], "pending", "the customer may try again");

    let usd = live.create(7.0, "USD").await;
    let (_, session) = live.pay(&usd).await;
    live.come_back(&format!("{}/gateways/stripe/return/{usd}?outcome=cancel", live.server.url)).await;
    assert_eq!(live.payment(&usd).await["rawStatus"], "cancelled");
    assert_eq!(live.stripe.program().pay(&session, stripe::CARD), None, "the server expired the session at Stripe");
    assert!(live.bkash.program().books().iter().chain(&live.stripe.program().books()).all(|entry| entry.taken == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_success_return_does_not_confirm_a_payment() {
    let live = live().await;
    for (currency, gateway, query) in [("BDT", "bkash", "status=success"), ("USD", "stripe", "outcome=success")] {
        let id = live.create(7.0, currency).await;
        let (_, attempt) = live.pay(&id).await;
        let claim = format!("{}/gateways/{gateway}/return/{id}?paymentID={attempt}&{query}", live.server.url);
        assert_eq!(live.come_back(&claim).await, format!("/checkout/{id}"));
        assert_eq!(live.payment(&id).await["rawStatus"], "processing");
        // The customer can still pay.
        let back = match currency {
            "BDT" => live.bkash.program().approve(&attempt, bkash::WALLET),
            _ => live.stripe.program().pay(&attempt, stripe::CARD),
        };
        // The server executed the payment too early and retries a few seconds later.
        live.come_back(&back.unwrap()).await;
        live.becomes(&id, "paid").await;
    }
    let unknown = format!("{}/gateways/bkash/return/pay_unknown?status=success", live.server.url);
    assert_eq!(live.come_back(&unknown).await, "/checkout/pay_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_is_cancelled_at_its_gateway() {
    let live = Live::start("gateway-timeout = 1\nsession-ttl = 8").await;
    let bdt = live.create(7.0, "BDT").await;
    let usd = live.create(7.0, "USD").await;
    let (_, attempt) = live.pay(&bdt).await;
    let (_, session) = live.pay(&usd).await;
    live.becomes(&bdt, "expired").await;
    live.becomes(&usd, "expired").await;
    assert_eq!(live.stripe.program().pay(&session, stripe::CARD), None);
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    live.come_back(&back).await;
    assert_eq!(live.bkash.program().books()[0].taken, 0, "an expired payment is not executed");
    let late = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{bdt}/pay")).send().await.unwrap();
    assert_eq!(late.status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_card_payment_waits_for_stripes_decision() {
    let live = live().await;
    for (succeeds, status) in [(true, "paid"), (false, "pending")] {
        let id = live.create(9.0, "USD").await;
        let (_, session) = live.pay(&id).await;
        let back = live.stripe.program().pay(&session, stripe::SLOW_CARD).unwrap();
        assert_eq!(live.come_back(&back).await, format!("/checkout/{id}"));
        assert_eq!(live.payment(&id).await["rawStatus"], "processing");
        live.stripe.program().finish(&session, succeeds);
        live.becomes(&id, status).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stripe_webhook_accepts_repeated_signed_events_and_refuses_forged_ones() {
    let live = live().await;
    let post = async |signature: &str, body: &str| {
        let request = live.server.keyless(Method::POST, "/gateways/stripe/webhook");
        request.header("stripe-signature", signature).body(body.to_owned()).send().await.unwrap().status().as_u16()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let sign = |secret: &str, body: &str| {
        webhook_verify::Signer::new(webhook_verify::Secret::new(secret).unwrap())
            .sign_at(body.as_bytes(), now)
            .to_string()
    };
    let body = r#"{"id":"evt_1","type":"checkout.session.completed","data":{"object":{"id":"cs_1","metadata":{"payment_id":"pay_unknown"}}}}"#;
    assert_eq!(post(&sign(stripe::WEBHOOK_SECRET, body), body).await, 200);
    assert_eq!(post(&sign(stripe::WEBHOOK_SECRET, body), body).await, 200);
    assert_eq!(post(&sign("whsec_another", body), body).await, 400);
    assert_eq!(post("", body).await, 400);
    // The server accepts every signed event, because Stripe would resend a refused one for days.
    for genuine in [
        r#"{"id":"evt_2","type":"invoice.paid","data":{"object":{"id":"in_1"}}}"#,
        r#"{"id":"evt_3","type":"refund.updated","data":{"object":{"metadata":{"payment_id":"pay_unknown"}}}}"#,
        r#"{"id":"evt_4","type":"checkout.session.expired","data":{"object":{"metadata":null}}}"#,
        r#"{"id":"evt_5","type":"balance.available","data":{"object":{"object":"balance"}}}"#,
        r#"{"type":"of.no.shape"}"#,
        "[]",
    ] {
        assert_eq!(post(&sign(stripe::WEBHOOK_SECRET, genuine), genuine).await, 200, "{genuine}");
        assert_eq!(post(&sign("whsec_another", genuine), genuine).await, 400, "{genuine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_stripe_event_may_be_a_mebibyte_long() {
    let live = live().await;
    let post = async |signature: &str, body: String| {
        let request = live.server.keyless(Method::POST, "/gateways/stripe/webhook");
        request.header("stripe-signature", signature).body(body).send().await.unwrap().status().as_u16()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let signer = webhook_verify::Signer::new(webhook_verify::Secret::new(stripe::WEBHOOK_SECRET).unwrap());
    let id = live.create(9.0, "USD").await;
    let event = |bytes: usize| {
        let object = json!({"object": {"id": "cs_1", "metadata": {"payment_id": id, "note": "x".repeat(bytes - 200)}}});
        json!({"id": format!("evt_{bytes}"), "type": "checkout.session.completed", "data": object}).to_string()
    };
    for (bytes, status) in [(65_000, 200), (70_000, 200), (1_000_000, 200), (1_100_000, 413)] {
        let body = event(bytes);
        assert_eq!(post(&signer.sign_at(body.as_bytes(), now).to_string(), body).await, status, "{bytes}");
    }
    let body = event(1_000_000);
    let forged = signer.sign_at(b"another body", now).to_string();
    let late = signer.sign_at(body.as_bytes(), now - 3600).to_string();
    for signature in [&*forged, &late, "", "t=1"] {
        assert_eq!(post(signature, body.clone()).await, 400, "{signature}");
    }
    // Send more events concurrently than there are places for long bodies.
    let signature = signer.sign_at(body.as_bytes(), now).to_string();
    let at_once = futures_util::future::join_all((0..40).map(|_| post(&signature, body.clone()))).await;
    assert!(at_once.iter().all(|status| *status == 200), "{at_once:?}");
    // Other routes keep their limit.
    let create = live.request(Method::POST, "/payments").header("content-type", "application/json");
    assert_eq!(create.body(body).send().await.unwrap().status(), 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_discrepancy_waits_for_manual_review() {
    let live = live().await;
    let bdt = live.create(100.0, "BDT").await;
    let (_, attempt) = live.pay(&bdt).await;
    live.bkash.program().falsify_amount(&attempt, "1.00");
    let back = live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
    assert_eq!(live.come_back(&back).await, format!("/checkout/{bdt}"));
    assert_eq!(live.payment(&bdt).await["rawStatus"], "processing");
    let usd = live.create(100.0, "USD").await;
    let (_, session) = live.pay(&usd).await;
    live.stripe.program().falsify_amount(&session, 1);
    let back = live.stripe.program().pay(&session, stripe::CARD).unwrap();
    live.come_back(&back).await;

    let listed = live.server.run(&["reviews", "list"]);
    assert!(listed.contains(&bdt) && listed.contains(&usd) && listed.contains("1.00"), "{listed}");
    let undecided = live.server.try_run(&["reviews", "resolve", &bdt, "--note", "looked"]);
    assert!(!undecided.status.success());
    assert!(String::from_utf8_lossy(&undecided.stderr).contains("--as paid"));
    live.server.run(&["reviews", "resolve", &bdt, "--note", "seen in the statement", "--as", "paid"]);
    live.server.run(&["reviews", "resolve", &usd, "--note", "sent back", "--as", "failed"]);
    assert_eq!(live.payment(&bdt).await["rawStatus"], "paid");
    assert_eq!(live.payment(&usd).await["rawStatus"], "failed");
    assert_eq!(live.server.run(&["reviews", "list"]), "");
}
