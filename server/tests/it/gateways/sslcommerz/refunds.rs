//! Refunds, which end later.

use std::collections::HashSet;

use gateway_fakes::{Fault, Instead};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Shop;
use crate::{clock_back::Clock, receiver::Receiver, server::eventually};

const TWO_MINUTES: i64 = 120;

async fn refund(shop: &Shop, id: &str, amount: Option<f64>, key: &str) -> (StatusCode, Value) {
    let request = shop.live.request(Method::POST, &format!("/payments/{id}/refund")).header("idempotency-key", key);
    let body = amount.map_or(json!({}), |amount| json!({"amount": amount, "reason": "one cup\nbroke"}));
    let answer = request.json(&body).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

fn refunded(shop: &Shop, session: &str) -> (u32, u64) {
    let entry = shop.program().books().into_iter().find(|entry| entry.id == session).unwrap();
    (entry.refunded, entry.refunded_minor)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_parts_are_refunded_and_settled_when_sslcommerz_has_sent_them() {
    let (clock, mut shop) = (Clock::new(), Shop::open().await);
    clock.govern(&mut shop.live);
    let receiver = Receiver::ok().await;
    let hook = json!({"url": receiver.url(), "events": ["payment.refunded", "payment.partially_refunded"]});
    let answer = shop.live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let (id, session) = shop.paid().await;

    let (status, part) = refund(&shop, &id, Some(40.0), "one").await;
    assert_eq!((status, &part["refund"]["status"]), (StatusCode::OK, &json!("pending")), "{part}");
    assert_eq!((&part["rawStatus"], &part["refund"]["requiresManualSettlement"]), (&json!("paid"), &json!(false)));
    assert_eq!(refund(&shop, &id, Some(40.0), "one").await.1, part, "the same key replays");
    shop.program().next_refund_is("processing");
    let (status, whole) = refund(&shop, &id, None, "two").await;
    assert_eq!((status, &whole["status"]), (StatusCode::OK, &json!("refunded")));
    assert_eq!(refunded(&shop, &session), (2, 10_000));

    // SSLCommerz sends no notice of a refund, so the server asks.
    let at_gateway = shop.program().refunds();
    assert!(shop.program().finish_refund(&at_gateway[0], true));
    clock.set(TWO_MINUTES);
    let statuses = async || {
        let payment = shop.live.payment(&id).await;
        [&payment["refunds"][0]["status"], &payment["refunds"][1]["status"]].map(|it| it.as_str().unwrap().to_owned())
    };
    eventually("the first part", async || (statuses().await == ["succeeded", "pending"]).then_some(())).await;
    assert!(shop.program().finish_refund(&at_gateway[1], true));
    clock.set(2 * TWO_MINUTES);
    eventually("the rest", async || (statuses().await == ["succeeded", "succeeded"]).then_some(())).await;

    // A clock that is set makes a delivery come again, if it is not logged yet.
    let ids = || -> HashSet<String> {
        let id = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["id"].to_string();
        receiver.received().iter().map(|it| id(&it.body)).collect()
    };
    eventually("both events", async || (ids().len() == 2).then_some(())).await;
    assert_eq!(shop.fake.faults().calls_of("refund"), 2);
    assert_eq!(["merchant", "gateway_clearing", "gateway_cost"].map(|it| shop.sum(it)), [0, 250, -250]);
    assert_eq!(
        (shop.live.server.run(&["refunds", "list"]), shop.live.server.run(&["reviews", "list"])),
        Default::default()
    );
    shop.live.server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_with_a_lost_answer_is_left_to_a_person_and_never_sent_twice() {
    let shop = Shop::open().await;
    for fault in [Fault::DropAfter, Fault::Truncated, Fault::Before(Instead::Unauthorized), Fault::HangAfter] {
        let (id, session) = shop.paid().await;
        let begun = shop.fake.faults().calls_of("refund");
        shop.fake.faults().next("refund", fault);
        assert_eq!(refund(&shop, &id, Some(40.0), "a").await.0, StatusCode::SERVICE_UNAVAILABLE, "{fault:?}");
        let listed = eventually("the refund for a person", async || {
            Some(shop.live.server.run(&["refunds", "list", "--json"])).filter(|list| list.contains(&id))
        })
        .await;
        let (status, made) = refund(&shop, &id, Some(40.0), "a").await;
        assert_eq!((status, &made["refund"]["requiresManualSettlement"]), (StatusCode::OK, &json!(true)), "{made}");
        let transaction = serde_json::from_str::<Value>(&listed).unwrap()["refunds"][0]["transaction"].clone();
        assert!(transaction.is_string(), "{listed}");
        assert_eq!(shop.fake.faults().calls_of("refund"), begun + 1, "{fault:?}: it was sent once");
        assert!(refunded(&shop, &session).0 <= 1);
        let timeline = shop.live.request(Method::GET, &format!("/payments/{id}/timeline")).send().await.unwrap();
        let timeline = timeline.text().await.unwrap();
        assert!(timeline.contains("look in its panel for refund_trans_id"), "{timeline}");
        shop.live.server.run(&["refunds", "settle", &id, "--reference", "seen in the panel"]);
        assert_eq!(shop.live.payment(&id).await["refunds"][0]["status"], "succeeded");
    }
    shop.live.server.run(&["check"]);
    shop.assert_no_secret_is_logged();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_never_reached_sslcommerz_is_sent_when_it_answers_again() {
    let shop = Shop::open().await;
    let (id, session) = shop.paid().await;
    // The server holds its calls back, because SSLCommerz answers none.
    shop.program().keep_notices();
    let mut others = Vec::new();
    for _ in 0..2 {
        let (_, url, _) = shop.begun().await;
        others.push(shop.visit(&url, gateway_fakes::Does::Pays).await);
    }
    for _ in 0..100 {
        shop.fake.faults().next("query", Fault::ErrorBefore);
    }
    let held_back = || shop.live.server.log().contains("held_back=true");
    eventually("calls to be held back", async || {
        shop.come_back(&others[0]).await;
        shop.come_back(&others[1]).await;
        held_back().then_some(())
    })
    .await;
    assert_eq!(refund(&shop, &id, Some(40.0), "a").await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(shop.fake.faults().calls_of("refund"), 0);
    shop.fake.faults().none();
    let made = eventually("the refund", async || {
        let payment = shop.live.payment(&id).await;
        (payment["amountRefunded"] == json!(40)).then_some(payment)
    })
    .await;
    assert_eq!(made["refund"]["requiresManualSettlement"], false, "{made}");
    assert_eq!((shop.fake.faults().calls_of("refund"), refunded(&shop, &session)), (1, (1, 4_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_was_under_way_at_a_crash_is_left_to_a_person() {
    let (clock, mut shop) = (Clock::new(), Shop::open_with("").await);
    clock.govern(&mut shop.live);
    let (id, session) = shop.paid().await;
    shop.fake.faults().next("refund", Fault::HangAfter);
    let request = shop.live.request(Method::POST, &format!("/payments/{id}/refund"));
    let sent = tokio::spawn(request.send());
    eventually("the refund", async || (shop.fake.faults().calls_of("refund") == 1).then_some(())).await;
    clock.set(TWO_MINUTES);
    clock.govern(&mut shop.live);
    assert!(sent.await.unwrap().is_err());
    eventually("the refund for a person", async || {
        shop.live.server.run(&["refunds", "list"]).contains(&id).then_some(())
    })
    .await;
    assert_eq!((shop.fake.faults().calls_of("refund"), refunded(&shop, &session)), (1, (1, 10_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_refund_can_be_asked_for_again_and_a_cancelled_one_is_looked_at_by_a_person() {
    let (clock, mut shop) = (Clock::new(), Shop::open().await);
    clock.govern(&mut shop.live);
    let (id, session) = shop.paid().await;
    shop.program().next_refund_is("failed");
    let (status, refused) = refund(&shop, &id, Some(40.0), "a").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused["message"].to_string().contains("The bank does not refund"), "{refused}");
    assert!(shop.live.payment(&id).await.get("amountRefunded").is_none());
    assert_eq!(refund(&shop, &id, Some(40.0), "a").await.0, StatusCode::OK);
    assert_eq!(refunded(&shop, &session), (1, 4_000));

    assert!(shop.program().finish_refund(&shop.program().refunds()[0], false));
    clock.set(TWO_MINUTES);
    let listed = shop.live.reviews(&id).await;
    assert!(listed.contains("of 40 cancelled"), "{listed}");
    assert_eq!(shop.live.payment(&id).await["refund"]["status"], "pending");
    let resolve = ["reviews", "resolve", &id, "--note", "seen in the panel"];
    let open = shop.live.server.try_run(&resolve);
    assert!(!open.status.success() && String::from_utf8_lossy(&open.stderr).contains("--as not-refunded"), "{open:?}");
    shop.live.server.run(&[&resolve[..], &["--as", "not-refunded"]].concat());
    let payment = shop.live.payment(&id).await;
    assert_eq!((&payment["refund"]["status"], &payment["rawStatus"]), (&json!("failed"), &json!("paid")), "{payment}");
    assert_eq!(payment["amountRefunded"], 0, "{payment}");
    // The next one is another refund, which the bank cancels too; but its customer has the money.
    assert_eq!(refund(&shop, &id, Some(40.0), "b").await.0, StatusCode::OK);
    assert!(shop.program().finish_refund(&shop.program().refunds()[1], false));
    clock.set(4 * TWO_MINUTES);
    eventually("the next review", async || {
        Some(shop.live.server.run(&["reviews", "list"])).filter(|list| list.contains(&id))
    })
    .await;
    shop.live.server.run(&[&resolve[..], &["--as", "refunded"]].concat());
    assert_eq!(shop.live.payment(&id).await["refund"]["status"], "succeeded");
    assert_eq!(shop.live.server.run(&["reviews", "list"]), "");
    shop.live.server.run(&["check"]);
}
