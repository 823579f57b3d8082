//! Payouts, and a refund after one.

use reqwest::Method;
use serde_json::{Value, json};

use super::Table;
use crate::{
    live::Live,
    server::{eventually, payment_of},
};

pub(super) async fn rows(table: &mut Table, keyless: &Live) {
    let wallet = json!({"holder": "Karim", "provider": "bkash", "number": "01712345678"});
    let wallet = json!({"currency": "BDT", "wallet": wallet});
    let set = keyless.request(Method::POST, "/payouts/destinations").json(&wallet);
    table.row(set, 404, "payouts_not_configured", &[]).await;
    let settings = format!("gateway-timeout = 1\npayout-key = '{}'\nrefund-overdraft = ['BDT=0']", "k".repeat(32));
    let live = Live::start(&settings).await;
    let post = |path: &str, body: &Value| live.request(Method::POST, path).json(body);
    let taka = json!({"currency": "BDT"});
    table.row(live.request(Method::GET, "/payouts/po_0"), 404, "payout_not_found", &[]).await;
    table.row(post("/payouts", &taka), 409, "payout_destination_missing", &[]).await;
    assert_eq!(post("/payouts/destinations", &wallet).send().await.unwrap().status(), 200);
    table.row(post("/payouts", &taka), 409, "payout_not_available", &[]).await;
    let paid = live.paid(15.0, "BDT").await;
    let part = json!({"currency": "BDT", "amount": 5});
    assert_eq!(post("/payouts", &part).send().await.unwrap().status(), 201);
    table.row(post("/payouts", &taka), 409, "payout_in_progress", &[]).await;
    table.row(post(&format!("/payments/{paid}/refund"), &json!({})), 409, "refund_overdraws_balance", &[]).await;

    // The simulator pays a test payout.
    let server = &live.server;
    let test = server.create(&payment_of(&json!(5))).await;
    let simulate = format!("/api/v1/checkout/{}/simulate", test["id"].as_str().unwrap());
    assert_eq!(server.keyless(Method::POST, &simulate).send().await.unwrap().status(), 200);
    let post = |path: &str, body: &Value| server.request(Method::POST, path).json(body);
    assert_eq!(post("/payouts/destinations", &wallet).send().await.unwrap().status(), 200);
    let payout: Value = post("/payouts", &taka).send().await.unwrap().json().await.unwrap();
    let payout = format!("/payouts/{}", payout["id"].as_str().unwrap());
    eventually("the payout", async || (server.get(&payout).await["status"] == "paid").then_some(())).await;
    table.row(post(&format!("{payout}/cancel"), &json!({})), 409, "payout_not_allowed", &[]).await;
}
