//! `payments-server check` passes a sound store and names damaged records.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use journaled_tree::{Layout, Options, Read, TreeError, View};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{BINARY, Server, copy, payment_of},
};

/// A cleanly closed store with every kind of record: a workspace with a key and an app; open, paid and failed payments
/// with idempotency keys; and completed deliveries.
pub(crate) async fn filled() -> Server {
    let mut server = Server::start();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    let workspace = server.run(&["workspaces", "create", "--name", "Rahim & Sons"]);
    server.run(&["keys", "create", "--workspace", &workspace, "--environment", "test"]);
    server.run(&["apps", "create", "--workspace", &workspace, "--name", "Shop"]);
    for (number, ending) in [Some("success"), None, Some("fail"), Some("success")].into_iter().enumerate() {
        let request = server.request(Method::POST, "/payments").header("idempotency-key", format!("order-{number}"));
        let mut body = payment_of(&json!(100.5));
        if number == 0 {
            body["merchantTransactionId"] = json!("A-17");
        }
        let payment: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
        if let Some(action) = ending {
            let path = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
            let simulated = server.keyless(Method::POST, &path).json(&json!({"action": action})).send().await.unwrap();
            assert_eq!(simulated.status(), 200);
        }
    }
    let deliveries = server.ended_deliveries(6).await;
    assert!(deliveries.iter().all(|delivery| delivery["status"] == "success"), "{deliveries:?}");
    assert!(server.terminate().success());
    server
}

fn check(directory: &Path) -> Output {
    let begun = Instant::now();
    loop {
        let output = Command::new(BINARY).arg("check").arg("--data-dir").arg(directory).output().unwrap();
        // sled's threads in this process can hold the lock a moment longer.
        let is_held = String::from_utf8_lossy(&output.stderr).contains(" open; stop it");
        if !is_held || begun.elapsed() > Duration::from_secs(30) {
            return output;
        }
    }
}

/// Returns the damaged record, or `None` to remove it.
type Damage = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;

/// The part of the server's layout that damaging records needs.
struct Records;

impl Layout for Records {
    fn format(&self) -> u32 {
        9
    }

    fn compresses(&self, key: &[u8]) -> bool {
        ["payment/", "delivery/", "responses/"].iter().any(|prefix| key.starts_with(prefix.as_bytes()))
    }
}

/// Changes records of a closed store.
pub(crate) fn change(store: &Path, change: impl FnOnce(&mut View<'_>) + Send + 'static) {
    let (database, closing) = Options::new(store, Records).open().unwrap();
    let changed = database.commit_blocking(|view| {
        change(view);
        Ok::<_, TreeError>(())
    });
    changed.unwrap();
    drop(database);
    closing.wait();
}

/// Copies a store and damages one record.
///
/// `pattern` is a key prefix. It takes the first record with that prefix, and after a `*` a text in its key or value.
fn copy_damaged(server: &Server, to: &Path, pattern: &str, damage: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) {
    let _ = fs::remove_dir_all(to);
    copy(&server.data(), to);
    let (prefix, part) = pattern.split_once('*').unwrap_or((pattern, ""));
    let (prefix, part) = (prefix.to_owned(), part.to_owned());
    change(to, move |view| {
        let has_part = |bytes: &[u8]| bytes.escape_ascii().to_string().contains(&part);
        let mut records = view.prefix(prefix.as_bytes()).map(Result::unwrap);
        let found = records.find(|(key, value)| has_part(key) || has_part(value));
        let (key, value) = found.unwrap_or_else(|| panic!("no record matches {prefix}*{part}"));
        match damage(&value) {
            Some(value) => view.put(key, value),
            None => view.remove(key),
        }
    });
}

fn replaced(from: &'static str, to: &'static str) -> Damage {
    Box::new(move |value| {
        let text = std::str::from_utf8(value).unwrap();
        assert!(text.contains(from), "{text}");
        Some(text.replacen(from, to, 1).into_bytes())
    })
}

fn removed() -> Damage {
    Box::new(|_| None)
}

fn garbled() -> Damage {
    Box::new(|_| Some(b"{".to_vec()))
}

#[tokio::test]
async fn check_passes_a_sound_store_and_names_a_damaged_record_of_each_kind() {
    let server = filled().await;
    let sound = check(&server.data());
    let stdout = String::from_utf8(sound.stdout).unwrap();
    assert!(sound.status.success(), "{stdout}");
    assert!(stdout.ends_with("4 of them payments: no violations\n"), "{stdout}");

    let copy = server.directory.path().join("copy");
    let lines: [(&str, Damage, &str, &str); _] = [
        ("payment/", garbled(), "payment/", "cannot be read"),
        ("payment/", removed(), "posting/", "belongs to a payment that is not there"),
        ("payment/", removed(), "places/", "does not belong there"),
        ("payment/", removed(), "marks/", "where no payment of that status is"),
        ("payment/", removed(), "responses/", "tells of an effect that is not there"),
        ("payment/", replaced("\"netAmount\":95.47", "\"netAmount\":95.48"), "payment/", "amount is not fee + net"),
        ("payment/", replaced("/test\u{1e}", "/live\u{1e}"), "payment/", "names another scope than its payment"),
        ("payment/", replaced("\"net_amount\":95.47", "\"net_amount\":95.48"), "payment/", "written otherwise"),
        ("payment/", replaced("\"currency\":", " \"currency\":"), "payment/", "written otherwise"),
        ("payment/", replaced("\"status\":\"", "\"status\":\"x"), "payment/", "public status"),
        ("payment/", replaced("\"rawStatus\":\"", "\"rawStatus\":\"x"), "payment/", "is in an unknown state"),
        ("payment/", replaced("payment.created", "payment.refunded"), "payment/", "has 0 events payment.created"),
        ("payment/", replaced("payment.created", "payment.refunded"), "payment/", "has 1 events payment.refunded"),
        (
            "payment/",
            replaced("\"data\":{\"id\":\"pay_0", "\"data\":{\"id\":\"pay_9"),
            "payment/",
            "about another payment",
        ),
        ("posting/", removed(), "payment/", "its postings are not those of that"),
        ("posting/", replaced("95", "96"), "posting/", "sum to"),
        ("posting/", replaced("95", "96"), "balance/", "is stored as"),
        ("balance/", replaced("-", ""), "balance/", "is stored as"),
        ("balance/", removed(), "balance/", "is missing"),
        ("volume/", removed(), "volume/", "is missing"),
        ("posting/", removed(), "day/", "is stored as"),
        ("day/", Box::new(|_| Some(b"[9,9,9]".to_vec())), "day/", "is stored as"),
        ("day/", removed(), "day/", "is missing"),
        ("day/", garbled(), "day/", "cannot be read"),
        ("places/*/payments/", removed(), "count/", "is stored as"),
        ("places/*/payments/", removed(), "payment/", "is not at its position 0 in the list"),
        ("count/", Box::new(|_| Some(b"9".to_vec())), "count/", "is stored as"),
        ("marks/", removed(), "count/", "is stored as"),
        ("marks/", removed(), "payment/", "for its status"),
        ("found/", removed(), "payment/", "is not found by its reference"),
        ("found/", Box::new(|_| Some(vec![2])), "found/", "at position 1, which does not have its value"),
        ("places/*/events", replaced("payment.created", "payment.failed"), "places/", "does not belong there"),
        ("places/*/events", removed(), "event-at/", "and that event is not there"),
        ("places/*/transactions", replaced(" BDT ", " USD "), "places/", "does not belong there"),
        ("places/*/transactions", removed(), "event-at/", "and that event is not there"),
        ("event-at/", removed(), "places/", "does not belong there"),
        ("event-at/", replaced("/test 0", "/test 9"), "event-at/", "and that event is not there"),
        ("delivery-of/", replaced("del_0", "del_9"), "delivery-of/", "which is no delivery of this payment"),
        ("delivery/", garbled(), "delivery/", "cannot be read"),
        ("delivery/", removed(), "places/", "does not belong there"),
        ("delivery/", replaced("\"status\":\"success\"", "\"status\":\"pending\""), "delivery/", "never be sent"),
        ("ends/", removed(), "payment/", "will never expire"),
        ("used/", garbled(), "used/", "cannot be read"),
        ("used/", removed(), "responses/", "has a response whose key does not know of it"),
        ("responses/", garbled(), "responses/", "cannot be read"),
        ("responses/", removed(), "used/", "was used and has no response"),
        (
            "responses/*evt_0",
            replaced("\"event\":\"evt_0", "\"event\":\"evt_9"),
            "responses/",
            "an effect that is not there",
        ),
        ("workspace/", removed(), "workspace-of/", "do not agree"),
        ("workspace-of/", removed(), "workspace/", "do not agree"),
        ("key/", removed(), "key-of/", "do not agree"),
        ("key-of/", removed(), "key/", "do not agree"),
        ("app/", garbled(), "app/", "cannot be read"),
        ("endpoint/", removed(), "endpoint-of/", "do not agree"),
        ("endpoint-of/", removed(), "endpoint/", "do not agree"),
    ];
    for (pattern, damage, named, finding) in lines {
        copy_damaged(&server, &copy, pattern, damage);
        let output = check(&copy);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{pattern} {finding}: {stdout}");
        let is_named = stdout.lines().any(|line| line.starts_with(named) && line.contains(finding));
        assert!(is_named, "damaged {pattern}, expected {named} \"{finding}\": {stdout}");
    }

    // Records that must not exist.
    for (key, value, finding) in [
        ("surprise/1", "", "is of no kind"),
        ("outbox/wh_1/del_1", "", "names a delivery that has ended or does not exist"),
        ("retry/01234567del_1", "", "does not wait for its next attempt then"),
        ("untold/evt_1", r#"{"payment":"pay_1"}"#, "names an event that does not exist"),
        ("unsettled/pay_1", "", "does not wait for anybody"),
        ("review/pay_1", "", "does not wait for anybody"),
        ("check/01234567pay_1", "", "does not wait for it"),
    ] {
        copy_damaged(&server, &copy, "payment/", |value| Some(value.to_vec()));
        change(&copy, move |view| view.put(key, value));
        let output = check(&copy);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.lines().any(|line| line.starts_with(key) && line.contains(finding)), "{key}: {stdout}");
    }
}

#[tokio::test]
async fn check_prints_json_and_creates_no_missing_store() {
    let server = filled().await;
    let report: Value = serde_json::from_str(&server.run(&["check", "--json"])).unwrap();
    assert_eq!((report["payments"].as_u64(), &report["findings"]), (Some(4), &json!([])));

    let nowhere = server.directory.path().join("nowhere");
    let output = check(&nowhere);
    assert!(!output.status.success() && !nowhere.exists());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--data-dir"));
}
