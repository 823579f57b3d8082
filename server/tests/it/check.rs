//! `payments-server check` proves a sound store and names what is damaged.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use journaled_tree::{Layout, Options, Read, TreeError, View};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    receiver::{Manner, Receiver},
    server::{BINARY, Server, eventually, payment_of},
};

/// A store with something of everything, closed in order: a workspace with a key and an app, payments that are open,
/// paid and failed, under idempotency keys, and deliveries that were made.
pub(crate) async fn filled() -> Server {
    let mut server = Server::start();
    let receiver = Receiver::start(Manner::Answer(StatusCode::OK, String::new())).await;
    receiver.subscribe(&server.client()).await;
    let made = server.administer(&["workspaces", "create", "--name", "Rahim & Sons"]);
    let workspace = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    server.administer(&["keys", "create", "--workspace", &workspace, "--environment", "test"]);
    server.administer(&["apps", "create", "--workspace", &workspace, "--name", "Shop"]);
    for (number, ending) in [Some("success"), None, Some("fail"), Some("success")].into_iter().enumerate() {
        let request = server.request(Method::POST, "/payments").header("idempotency-key", format!("order-{number}"));
        let payment: Value = request.json(&payment_of(&json!(100.5))).send().await.unwrap().json().await.unwrap();
        if let Some(action) = ending {
            let path = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
            let simulated = server.keyless(Method::POST, &path).json(&json!({"action": action})).send().await.unwrap();
            assert_eq!(simulated.status(), 200);
        }
    }
    eventually("every delivery to be made", async || {
        let path = "/webhooks/deliveries";
        let page: Value = server.request(Method::GET, path).send().await.unwrap().json().await.unwrap();
        let items = page["items"].as_array().unwrap();
        (items.len() == 6 && items.iter().all(|delivery| delivery["status"] == "success")).then_some(())
    })
    .await;
    assert!(server.terminate().success());
    server
}

fn check(directory: &Path) -> Output {
    let begun = Instant::now();
    loop {
        let output = Command::new(BINARY).arg("check").arg("--data-dir").arg(directory).output().unwrap();
        // sled's own threads can hold the lock of this very process for a moment longer.
        let is_held = String::from_utf8_lossy(&output.stderr).contains(" open; stop it");
        if !is_held || begun.elapsed() > Duration::from_secs(30) {
            return output;
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match path.is_dir() {
            true => copy(&path, &target),
            false if path.extension().is_some_and(|suffix| suffix == "sock") => {}
            false => drop(fs::copy(path, target).unwrap()),
        }
    }
}

/// What becomes of a record.
type Damage = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;

/// The server's layout, as far as its records can be damaged with it.
struct Records;

impl Layout for Records {
    fn format(&self) -> u32 {
        6
    }

    fn compresses(&self, key: &[u8]) -> bool {
        ["payment/", "delivery/", "responses/"].iter().any(|prefix| key.starts_with(prefix.as_bytes()))
    }
}

/// Changes the records of a store that nobody has open.
fn change(store: &Path, change: impl FnOnce(&mut View<'_>) + Send + 'static) {
    let (database, closing) = Options::new(store, Records).open().unwrap();
    let changed = database.commit_blocking(|view| {
        change(view);
        Ok::<_, TreeError>(())
    });
    changed.unwrap();
    drop(database);
    closing.wait();
}

/// A copy of a store in which the first record whose key begins so, and which has what is behind a `*` in key or value, is
/// what `damage` makes of it; `None` removes it.
fn damaged(server: &Server, to: &Path, prefix: &str, damage: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) {
    let _ = fs::remove_dir_all(to);
    copy(&server.data(), to);
    let (begin, part) = prefix.split_once('*').unwrap_or((prefix, ""));
    let (begin, part) = (begin.to_owned(), part.to_owned());
    change(to, move |view| {
        let has_part = |bytes: &[u8]| bytes.escape_ascii().to_string().contains(&part);
        let mut records = view.prefix(begin.as_bytes()).map(Result::unwrap);
        let found = records.find(|(key, value)| has_part(key) || has_part(value));
        let (key, value) = found.unwrap_or_else(|| panic!("no record {begin}"));
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

fn gone() -> Damage {
    Box::new(|_| None)
}

fn garbled() -> Damage {
    Box::new(|_| Some(b"{".to_vec()))
}

#[tokio::test]
async fn check_passes_a_sound_store_and_names_a_damaged_record_of_each_kind() {
    let server = filled().await;
    let sound = check(&server.data());
    let said = String::from_utf8(sound.stdout).unwrap();
    assert!(sound.status.success(), "{said}");
    assert!(said.ends_with("4 of them payments: no violations\n"), "{said}");

    let copy = server.directory.path().join("copy");
    let lines: [(&str, Damage, &str, &str); _] = [
        ("payment/", garbled(), "payment/", "cannot be read"),
        ("payment/", gone(), "posting/", "belongs to a payment that is not there"),
        ("payment/", gone(), "places/", "does not belong there"),
        ("payment/", gone(), "marks/", "where no payment of that status is"),
        ("payment/", gone(), "responses/", "tells of an effect that is not there"),
        ("payment/", replaced("\"netAmount\":95.47", "\"netAmount\":95.48"), "payment/", "amount is not fee + net"),
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
        ("posting/", gone(), "payment/", "its postings are not those of that"),
        ("posting/", replaced("95", "96"), "posting/", "sum to"),
        ("posting/", replaced("95", "96"), "balance/", "is kept as"),
        ("balance/", replaced("-", ""), "balance/", "is kept as"),
        ("balance/", gone(), "balance/", "is missing"),
        ("volume/", gone(), "volume/", "is missing"),
        ("places/*/payments/", gone(), "count/", "is kept as"),
        ("places/*/payments/", gone(), "payment/", "is not at its place 0 in the list"),
        ("count/", Box::new(|_| Some(b"9".to_vec())), "count/", "is kept as"),
        ("marks/", gone(), "count/", "is kept as"),
        ("marks/", gone(), "payment/", "among those of its status"),
        ("delivery/", garbled(), "delivery/", "cannot be read"),
        ("delivery/", gone(), "places/", "does not belong there"),
        ("delivery/", replaced("\"status\":\"success\"", "\"status\":\"pending\""), "delivery/", "never be sent"),
        ("ends/", gone(), "payment/", "will never expire"),
        ("used/", garbled(), "used/", "cannot be read"),
        ("used/", gone(), "responses/", "has a response whose key does not know of it"),
        ("responses/", garbled(), "responses/", "cannot be read"),
        ("responses/", gone(), "used/", "was used and has no response"),
        (
            "responses/*evt_0",
            replaced("\"event\":\"evt_0", "\"event\":\"evt_9"),
            "responses/",
            "an effect that is not there",
        ),
        ("workspace/", gone(), "workspace-of/", "do not agree"),
        ("workspace-of/", gone(), "workspace/", "do not agree"),
        ("key/", gone(), "key-of/", "do not agree"),
        ("key-of/", gone(), "key/", "do not agree"),
        ("app/", garbled(), "app/", "cannot be read"),
        ("endpoint/", gone(), "endpoint-of/", "do not agree"),
        ("endpoint-of/", gone(), "endpoint/", "do not agree"),
    ];
    for (prefix, damage, named, what) in lines {
        damaged(&server, &copy, prefix, damage);
        let output = check(&copy);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{prefix} {what}: {said}");
        let is_named = said.lines().any(|line| line.starts_with(named) && line.contains(what));
        assert!(is_named, "{prefix} was damaged, {named} \"{what}\" was expected: {said}");
    }

    // What should not be there at all.
    for (key, value, what) in [
        ("surprise/1", "", "is of no kind"),
        ("outbox/wh_1/del_1", "", "owes a delivery that is over or not there"),
        ("untold/evt_1", r#"{"payment":"pay_1"}"#, "is to be told and is not there"),
        ("unsettled/pay_1", "", "does not wait for anybody"),
        ("review/pay_1", "", "does not wait for anybody"),
        ("check/01234567pay_1", "", "does not wait for it"),
    ] {
        damaged(&server, &copy, "payment/", |value| Some(value.to_vec()));
        change(&copy, move |view| view.put(key, value));
        let output = check(&copy);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.lines().any(|line| line.starts_with(key) && line.contains(what)), "{key}: {said}");
    }
}

#[tokio::test]
async fn check_prints_json_and_creates_no_missing_store() {
    let server = filled().await;
    let output = server.administer(&["check", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["payments"].as_u64(), &report["findings"]), (Some(4), &json!([])));

    let nowhere = server.directory.path().join("nowhere");
    let output = check(&nowhere);
    assert!(!output.status.success() && !nowhere.exists());
    assert!(String::from_utf8(output.stderr).unwrap().contains("--data-dir"));
}
