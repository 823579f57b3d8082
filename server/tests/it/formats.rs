//! A store that an earlier version wrote.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::server::{Server, eventually};

/// Each made by the server of its format and killed: an endpoint, five payments of which the first was completed, the
/// second failed and the third cancelled, all under idempotency keys, and a journal that sled had not kept up with for
/// sure.
const FORMAT_1: &str = "tests/data/format-1.tar.gz";
/// With the deliveries too, one of them of a ping.
const FORMAT_3: &str = "tests/data/format-3.tar.gz";
/// The same.
const FORMAT_4: &str = "tests/data/format-4.tar.gz";
/// The same, with the ping under an idempotency key too.
const FORMAT_5: &str = "tests/data/format-5.tar.gz";

#[tokio::test]
async fn a_store_of_format_1_opens_with_all_its_data() {
    opens_with_all(FORMAT_1).await;
}

#[tokio::test]
async fn a_store_of_format_3_opens_with_all_its_data() {
    has_the_deliveries(&opens_with_all(FORMAT_3).await).await;
}

#[tokio::test]
async fn a_store_of_format_4_opens_with_all_its_data() {
    has_the_deliveries(&opens_with_all(FORMAT_4).await).await;
}

#[tokio::test]
async fn a_store_of_format_5_opens_with_all_its_data() {
    has_the_deliveries(&opens_with_all(FORMAT_5).await).await;
}

async fn has_the_deliveries(server: &Server) {
    let deliveries: Value =
        server.request(reqwest::Method::GET, "/webhooks/deliveries").send().await.unwrap().json().await.unwrap();
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

async fn opens_with_all(archive: &str) -> Server {
    let mut server = Server::start();
    server.kill();
    std::fs::remove_dir_all(server.data()).unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(archive);
    let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(server.directory.path()).status();
    assert!(unpacked.unwrap().success());
    std::fs::rename(server.directory.path().join("payments-data"), server.data()).unwrap();

    // Once from the earlier format, once from what the first start made of it, once made anew from the journal of both.
    for start in 0..3 {
        if start == 2 {
            std::fs::write(server.data().join("sled/db"), "torn").unwrap();
        }
        server.restart();
        // Its sessions have ended long ago, and the server says so within a moment.
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
        let balance = server.request(reqwest::Method::GET, "/account/balance").send().await.unwrap();
        assert_eq!(balance.text().await.unwrap(), r#"{"bdt_balance":1.42,"usd_balance":0}"#);
        let endpoints: Value =
            server.request(reqwest::Method::GET, "/webhooks").send().await.unwrap().json().await.unwrap();
        assert!(endpoints[0]["secret"].as_str().unwrap().starts_with("whsec_"));
        server.kill();
        let checked = server.administer(&["check"]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    server.restart();
    server
}

/// The amounts on the first page of a public status.
async fn amounts(server: &Server, status: &str, limit: u32) -> Vec<String> {
    let request = server.request(reqwest::Method::GET, &format!("/payments?status={status}&limit={limit}"));
    let page: Value = request.send().await.unwrap().json().await.unwrap();
    page["items"].as_array().unwrap().iter().map(|payment| payment["amount"].to_string()).collect()
}
