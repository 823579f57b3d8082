//! Disputes that the card processor reports.

use std::collections::HashSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ENGINES, live};
use crate::{
    engine::Engine,
    live::Live,
    receiver::Receiver,
    server::{eventually, metric, payment_of, text_of},
};

async fn get(live: &Live, path: &str) -> Value {
    live.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
}

async fn balance(live: &Live) -> Value {
    get(live, "/account/balance").await["usd_balance"].clone()
}

async fn refund(live: &Live, id: &str, body: Value) -> (StatusCode, Value) {
    let request = live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", id);
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// The payment's last dispute, once it has this status and has moved these amounts.
async fn once(live: &Live, id: &str, status: &str, withdrawn: u64, reinstated: u64) -> Value {
    let expected = [json!(status), json!(withdrawn), json!(reinstated)];
    eventually(&format!("a dispute that is {status}, {withdrawn} {reinstated}"), async || {
        let dispute = live.payment(id).await["dispute"].clone();
        let found = ["status", "amountWithdrawn", "amountReinstated"].map(|name| dispute[name].clone());
        (found == expected).then_some(dispute)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn disputes_are_followed_from_their_events_to_their_ends() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let receiver = Receiver::ok().await;
        let hook = json!({"url": receiver.url(), "events": ["payment.disputed", "payment.dispute_closed"]});
        live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
        let (won, lost) = (live.paid(20.0, "USD").await, live.paid(30.0, "USD").await);
        let stripe = live.stripe.program();
        // Each event comes three times, the last one first.
        stripe.send_events_to(&format!("{}/gateways/stripe/webhook", live.server.url), 3);
        stripe.reverse_events(true);

        // An inquiry takes no money and forbids no refund, until it becomes a chargeback.
        let first = stripe.open_dispute(&won, 0, "product_not_received", true).unwrap();
        let opened = once(&live, &won, "warning", 0, 0).await;
        assert_eq!((&opened["amount"], &opened["currency"]), (&json!(20), &json!("USD")));
        assert_eq!(opened["reason"], "product_not_received");
        assert!(opened["evidenceDueBy"].is_string() && opened["closedAt"].is_null(), "{opened}");
        assert_eq!(balance(&live).await, json!(47.5));
        assert!(stripe.escalate(&first));
        once(&live, &won, "needs_response", 20, 0).await;
        assert_eq!((balance(&live).await, &live.payment(&won).await["status"]), (json!(27.5), &json!("completed")));
        let (status, refusal) = refund(&live, &won, json!({})).await;
        assert_eq!((status, &refusal["code"]), (StatusCode::CONFLICT, &json!("payment_disputed")));
        assert!(stripe.answer_dispute(&first));
        once(&live, &won, "under_review", 20, 0).await;
        assert!(stripe.close_dispute(&first, true));
        let closed = once(&live, &won, "won", 20, 20).await;
        assert!(closed["closedAt"].is_string(), "{closed}");
        let (status, refunded) = refund(&live, &won, json!({})).await;
        assert_eq!((status, &refunded["status"]), (StatusCode::OK, &json!("refunded")));
        assert_eq!(balance(&live).await, json!(28.5));

        // A part is lost, and the rest can be refunded.
        let second = stripe.open_dispute(&lost, 1_000, "fraudulent", false).unwrap();
        once(&live, &lost, "needs_response", 10, 0).await;
        assert!(stripe.close_dispute(&second, false));
        once(&live, &lost, "lost", 10, 0).await;
        assert_eq!(balance(&live).await, json!(18.5));
        live.server.crash_and_restart();
        let payment = live.payment(&lost).await;
        assert_eq!(payment["disputes"].as_array().unwrap().len(), 1, "{payment}");

        let told = eventually("five events", async || {
            let mut events: Vec<Value> =
                receiver.received().iter().map(|it| serde_json::from_slice(&it.body).unwrap()).collect();
            // A delivery that was not logged before the crash is made again.
            let mut seen = HashSet::new();
            events.retain(|it| seen.insert(it["id"].to_string()));
            (events.len() == 5).then_some(events)
        })
        .await;
        let told: Vec<_> = told.iter().map(|it| it["event"].as_str().unwrap()).collect();
        let [disputed, closed] = ["payment.disputed", "payment.dispute_closed"];
        assert_eq!(told, [disputed, disputed, closed, disputed, closed]);
        live.server.run(&["check"]);
        assert_eq!(live.server.run(&["reviews", "list"]), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disputes_without_any_event_are_found_in_the_list_and_booked_once() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &["--disputes-return-fee"]).await;
        let (open, lost) = (live.paid(20.0, "USD").await, live.paid(30.0, "USD").await);
        let stripe = live.stripe.program();
        stripe.keep_events();
        let second = stripe.open_dispute(&lost, 1_500, "fraudulent", false).unwrap();
        stripe.open_dispute(&open, 0, "general", false).unwrap();
        assert!(stripe.close_dispute(&second, false));
        for _ in 0..3 {
            live.server.crash_and_restart();
            once(&live, &open, "needs_response", 20, 0).await;
            let found = once(&live, &lost, "lost", 15, 0).await;
            assert_eq!(found["feeReturned"], json!(0.75));
        }
        // 19.00 and 28.50 were earned; 20.00 and 15.00 went with their fees of 1.00 and 0.75.
        assert_eq!(balance(&live).await, json!(47.5 - 19.0 - 14.25));
        let listed = live.server.run(&["disputes", "list"]);
        assert_eq!(
            (listed.lines().count(), listed.contains(&format!(" {open} needs_response 20 USD 20 0 "))),
            (2, true)
        );
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_of_more_than_its_payment_waits_for_a_person() {
    let live = Live::start_on(Engine::Directory, "gateway-timeout = 1", &[]).await;
    let id = live.paid(20.0, "USD").await;
    live.stripe.program().open_dispute(&id, 2_001, "fraudulent", false).unwrap();
    let reviews =
        eventually("the review", async || Some(live.server.run(&["reviews", "list"])).filter(|it| it.contains(&id)))
            .await;
    assert!(reviews.contains("has a dispute du_") && reviews.contains("at most the payment's amount"), "{reviews}");
    assert!(live.payment(&id).await.get("dispute").is_none());
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_an_operator_recorded_is_not_the_processors() {
    let live = live().await;
    let id = live.paid(20.0, "USD").await;
    live.server.run(&["disputes", "open", &id, "--amount", "5", "--reference", "letter"]);
    let stripe = live.stripe.program();
    let dispute = stripe.open_dispute(&id, 1_000, "fraudulent", false).unwrap();
    let followed = once(&live, &id, "needs_response", 10, 0).await;
    let named = followed["id"].as_str().unwrap();
    let output = live.server.try_run(&["disputes", "open", &id, "--amount", "10", "--reference", &dispute]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(named), "{output:?}");
    for command in [&["withdraw", named, "--amount", "1", "--reference", "W-1"][..], &["close", named, "--as", "lost"]]
    {
        let output = live.server.try_run(&[&["disputes"], command].concat());
        assert!(text_of(&output).contains("the gateway reports this dispute"), "{output:?}");
    }
    assert_eq!(live.payment(&id).await["disputes"].as_array().unwrap().len(), 2);
    live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_dispute_is_none_of_the_operators() {
    let live = live().await;
    let id = live.server.create(&payment_of(&json!(20))).await["id"].as_str().unwrap().to_owned();
    live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/simulate")).send().await.unwrap();
    let simulate = live.server.request(Method::POST, &format!("/payments/{id}/simulate"));
    let disputed = simulate.json(&json!({"event": "disputed"})).send().await.unwrap();
    assert_eq!(disputed.status(), StatusCode::OK);
    assert_eq!(live.server.run(&["disputes", "list"]), "");
    assert_eq!(metric::<u64>(&live.server.metrics().await, "payments_disputes_open"), 0);
    live.server.run(&["check"]);
}
