//! Stores written by earlier versions open with all their data.

use std::{path::Path, process::Command};

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, eventually};

/// An endpoint and five payments with idempotency keys: one completed, one failed, one cancelled, two open. The server was
/// killed, so the journal may be ahead of sled.
const FORMAT_1: &str = "tests/data/format-1.tar.gz";
/// The same with deliveries, one of them of a ping.
const FORMAT_3: &str = "tests/data/format-3.tar.gz";
/// The same.
const FORMAT_4: &str = "tests/data/format-4.tar.gz";
/// The same with an idempotency key for the ping.
const FORMAT_5: &str = "tests/data/format-5.tar.gz";
/// The same.
const FORMAT_6: &str = "tests/data/format-6.tar.gz";
/// The same with two refunded payments of another developer: one settled, one not. Their key is `REFUNDED_KEY`.
const FORMAT_7: &str = "tests/data/format-7.tar.gz";
/// The store of format 7 after version 8 has converted it.
const FORMAT_8: &str = "tests/data/format-8.tar.gz";
const REFUNDED_KEY: &str = "sk_live_4a2c69e004986d846654fc61d4821de4a3dadb486cab6156";

#[tokio::test]
async fn a_store_of_format_1_opens_with_all_its_data() {
    open_archive(FORMAT_1).await;
}

#[tokio::test]
async fn a_store_of_format_3_opens_with_all_its_data() {
    assert_deliveries(&open_archive(FORMAT_3).await).await;
}

#[tokio::test]
async fn a_store_of_format_4_opens_with_all_its_data() {
    assert_deliveries(&open_archive(FORMAT_4).await).await;
}

#[tokio::test]
async fn a_store_of_format_5_opens_with_all_its_data() {
    assert_deliveries(&open_archive(FORMAT_5).await).await;
}

#[tokio::test]
async fn a_store_of_format_6_opens_with_all_its_data() {
    assert_deliveries(&open_archive(FORMAT_6).await).await;
}

#[tokio::test]
async fn a_store_of_format_7_opens_with_all_its_data_and_the_list_of_each_payments_refunds() {
    let server = open_archive(FORMAT_7).await;
    assert_deliveries(&server).await;
    let keyed = |path: &str| server.keyless(Method::GET, &format!("/api/v1{path}")).bearer_auth(REFUNDED_KEY);
    let page: Value = keyed("/payments").send().await.unwrap().json().await.unwrap();
    let mut statuses = Vec::new();
    for payment in page["items"].as_array().unwrap() {
        assert_eq!((&payment["refunds"], &payment["amountRefunded"]), (&json!([payment["refund"]]), &json!(20)));
        statuses.push(payment["refund"]["status"].as_str().unwrap());
        let path = format!("/payments/{}", payment["id"].as_str().unwrap());
        assert_eq!(keyed(&path).send().await.unwrap().json::<Value>().await.unwrap(), *payment);
        // The answer was stored for a day, which is over. The refund is not made again.
        let again = server.keyless(Method::POST, &format!("/api/v1{path}/refund")).bearer_auth(REFUNDED_KEY);
        let again = again.header("idempotency-key", "r-1").json(&json!({"reason": "damaged"})).send().await.unwrap();
        assert_eq!(again.json::<Value>().await.unwrap()["code"], "payment_already_refunded");
    }
    assert_eq!(statuses, ["pending_settlement", "succeeded"]);
    let transactions: Value = keyed("/account/transactions").send().await.unwrap().json().await.unwrap();
    let transactions = transactions["items"].as_array().unwrap();
    let kinds: Vec<_> = transactions.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "refund").count(), 2, "{kinds:?}");
    assert_eq!((kinds.len(), &transactions[0]["balance"]), (8, &json!(0)), "all is given back");
    assert!(transactions.is_sorted_by(|later, earlier| later["createdAt"].as_str() >= earlier["createdAt"].as_str()));
    let [unsettled, settled] = [0, 1].map(|nth| page["items"][nth]["id"].as_str().unwrap());
    server.run(&["refunds", "settle", settled, "--reference", "TRX1"]);
    server.run(&["refunds", "settle", unsettled, "--reference", "TRX2"]);
    assert_eq!(server.run(&["refunds", "list"]), "");
}

#[tokio::test]
async fn a_store_of_format_8_opens_with_all_its_data_and_lists_nothing_twice() {
    let server = open_archive(FORMAT_8).await;
    assert_deliveries(&server).await;
    let events = server.get("/events?limit=100").await;
    let ids: Vec<_> = events["items"].as_array().unwrap().iter().map(|event| event["id"].to_string()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
}

async fn assert_deliveries(server: &Server) {
    let deliveries = server.get("/webhooks/deliveries").await;
    let kinds: Vec<_> =
        deliveries["items"].as_array().unwrap().iter().map(|delivery| delivery["event"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "test.ping",
            "payment.created",
            "payment.created",
            "payment.created",
            "payment.created",
            "payment.completed",
            "payment.created"
        ]
    );
}

async fn open_archive(archive: &str) -> Server {
    let mut server = Server::start();
    server.kill();
    std::fs::remove_dir_all(server.data()).unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(archive);
    let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(server.directory.path()).status();
    assert!(unpacked.unwrap().success());
    std::fs::rename(server.directory.path().join("payments-data"), server.data()).unwrap();

    // The first start reads the earlier format, the second the migrated store. The third rebuilds from both journals.
    for start in 0..3 {
        if start == 2 {
            std::fs::write(server.data().join("sled/db"), "torn").unwrap();
        }
        server.restart();
        // The open sessions expired long ago.
        eventually("the open sessions to expire", async || {
            (amounts(&server, "expired", 20).await.len() == 2).then_some(())
        })
        .await;
        for (status, expected) in [
            ("pending", &[][..]),
            ("completed", &["1.5"]),
            ("failed", &["2.5"]),
            ("cancelled", &["3.5"]),
            ("expired", &["5.5", "4.5"]),
        ] {
            assert_eq!(amounts(&server, status, 20).await, expected, "{status}");
            assert_eq!(amounts(&server, status, 1).await, expected.get(..1).unwrap_or_default(), "{status}");
        }
        let balance = server.request(Method::GET, "/account/balance").send().await.unwrap();
        assert_eq!(balance.text().await.unwrap(), r#"{"bdt_balance":1.42,"usd_balance":0}"#);
        let transactions = server.get("/account/transactions").await;
        let amounts = [0, 1].map(|nth| transactions["items"][nth]["amount"].to_string());
        assert_eq!(
            (amounts, &transactions["items"][0]["balance"]),
            (["-0.08", "1.5"].map(str::to_owned), &json!(1.42))
        );
        let endpoints = server.get("/webhooks").await;
        assert!(endpoints[0]["secret"].as_str().unwrap().starts_with("whsec_"));
        server.kill();
        server.run(&["check"]);
    }
    server.restart();
    server
}

/// The amounts on the first page of payments with this status.
async fn amounts(server: &Server, status: &str, limit: u32) -> Vec<String> {
    let page = server.get(&format!("/payments?status={status}&limit={limit}")).await;
    page["items"].as_array().unwrap().iter().map(|payment| payment["amount"].to_string()).collect()
}
