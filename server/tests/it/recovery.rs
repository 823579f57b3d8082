//! What the next start says of an end that was not in order, and of damage.

use std::fs;

use serde_json::json;

use crate::server::{Server, payment_of};

const REPORT: &str = "did not shut down cleanly";

#[tokio::test]
async fn an_unclean_shutdown_is_reported_and_a_clean_one_is_not() {
    let mut server = Server::start();
    server.create(&payment_of(&json!(1))).await;
    assert!(server.terminate().success());
    server.restart();
    assert!(!server.log().contains(REPORT), "{}", server.log());
    // Nothing need have been written for it.
    server.crash_and_restart();
    assert_eq!(server.log().matches(REPORT).count(), 1, "{}", server.log());
    assert!(server.terminate().success());
    server.restart();
    assert_eq!(server.log().matches(REPORT).count(), 1, "{}", server.log());
}

#[tokio::test]
async fn a_damaged_entry_that_is_not_the_last_is_refused_by_name() {
    let mut server = Server::start();
    for amount in 1..=5 {
        server.create(&payment_of(&json!(amount))).await;
    }
    server.kill();
    let journal = fs::read_dir(server.data().join("journal")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&journal).unwrap();
    bytes[60] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let output = server.administer(&["check"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("is damaged at byte 8"), "{said}");
    assert!(said.contains(journal.to_str().unwrap()) && said.contains("restore it from a backup"), "{said}");
    assert_eq!(fs::read(&journal).unwrap(), bytes, "nothing is repaired silently");
}
