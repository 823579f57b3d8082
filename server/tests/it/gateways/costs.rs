//! What the card processor keeps for itself.

use reqwest::Method;
use serde_json::{Value, json};

use super::ENGINES;
use crate::{engine::Engine, live::Live, server::eventually};

/// The sum of the postings to an account, in minor units.
fn sum(live: &Live, account: &str) -> i64 {
    let exported = live.server.run(&["export", "postings"]);
    let postings = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    postings.filter(|it| it["account"] == account).map(|it| it["minor"].as_i64().unwrap()).sum()
}

async fn get(live: &Live, path: &str) -> Value {
    live.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_keeps_is_booked_once_for_the_platform_and_no_merchant_sees_it() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        live.paid(30.0, "USD").await;
        // This one's fee becomes known later.
        live.stripe.program().delay_fees(true);
        let late = live.paid(100.0, "USD").await;
        let before = get(&live, "/account/transactions").await;
        // The server reads the gateway's books when it starts. It finds 2.9 % of 30.00 and 0.30.
        live.server.crash_and_restart();
        eventually("the cost", async || (sum(&live, "gateway_cost") == -117).then_some(())).await;
        assert!(live.stripe.program().make_fee_known(&late));
        live.server.crash_and_restart();
        eventually("the late cost", async || (sum(&live, "gateway_cost") == -117 - 320).then_some(())).await;
        live.server.crash_and_restart();
        let refund = live.request(Method::POST, &format!("/payments/{late}/refund")).send().await.unwrap();
        assert_eq!(refund.status(), 200);
        let calls = || live.stripe.faults().calls_of("list");
        let begun = calls();
        eventually("another reading", async || (calls() >= begun + 2).then_some(())).await;
        assert_eq!((sum(&live, "gateway_cost"), sum(&live, "gateway_clearing")), (-437, -13_000 + 10_000 + 437));
        live.server.run(&["check"]);
        let after = get(&live, "/account/transactions").await;
        let after: Vec<_> = after["items"].as_array().unwrap().iter().skip(2).cloned().collect();
        assert_eq!(json!(after), before["items"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_that_bears_the_costs_finds_them_among_its_transactions() {
    let arguments = ["--merchants-bear-gateway-costs"];
    let mut live = Live::start_on(Engine::Directory, "gateway-timeout = 1", &arguments).await;
    let id = live.paid(30.0, "USD").await;
    live.server.crash_and_restart();
    eventually("the cost", async || {
        let balance = get(&live, "/account/balance").await;
        (balance["usd_balance"] == json!(27.33)).then_some(())
    })
    .await;
    let newest = get(&live, "/account/transactions").await["items"][0].clone();
    assert_eq!(
        (&newest["kind"], &newest["amount"], &newest["balance"]),
        (&json!("gateway_cost"), &json!(-1.17), &json!(27.33))
    );
    assert_eq!(newest["paymentId"], json!(id));
    // The list goes on after it.
    let path = format!("/account/transactions?limit=1&after={}", newest["id"].as_str().unwrap());
    assert_eq!(get(&live, &path).await["items"][0]["kind"], "fee");
    assert_eq!((sum(&live, "gateway_cost"), sum(&live, "gateway_clearing")), (0, -3_000 + 117));
    live.server.run(&["check"]);
}
