//! `payments-server check` passes a sound store and names damaged records.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use journaled_tree::{Layout, Options, TreeError, View};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    receiver::Receiver,
    server::{Server, copy, payment_of, server_binary},
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
        let output = Command::new(server_binary()).arg("check").arg("--data-dir").arg(directory).output().unwrap();
        // sled's threads in this process can hold the lock for a moment.
        let is_held = String::from_utf8_lossy(&output.stderr).contains(" open; stop it");
        if !is_held || begun.elapsed() > Duration::from_secs(30) {
            return output;
        }
    }
}

/// Receives a record's bytes. Returns the damaged record, or `None` to remove it.
type Damage = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send>;

/// The length of a key's home, its slot, which comes before its kind.
const HOME: usize = 3;

/// The part of the server's layout that damaging records needs.
struct Records;

impl Layout for Records {
    fn format(&self) -> u32 {
        9
    }

    fn compresses(&self, key: &[u8]) -> bool {
        key.get(HOME) == Some(&b'/')
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
/// `kind` is the beginning of a key after its home. Damages the first such key whose key or value contains the text.
fn copy_damaged(
    server: &Server,
    to: &Path,
    (kind, part): (&'static str, &'static str),
    damage: impl Fn(&[u8]) -> Option<Vec<u8>>,
) {
    let _ = fs::remove_dir_all(to);
    copy(&server.data(), to);
    let (database, closing) = Options::new(to, Records).open().unwrap();
    let has_part = |bytes: &[u8]| bytes.escape_ascii().to_string().replace('\\', "").contains(part);
    let is_of_kind = |key: &[u8]| key.get(HOME..).is_some_and(|rest| rest.starts_with(kind.as_bytes()));
    let mut records = database.range(..).map(Result::unwrap);
    let found = records.find(|(key, value)| is_of_kind(key) && (has_part(key) || has_part(value)));
    let (key, value) = found.unwrap_or_else(|| panic!("no record matches {kind} and {part}"));
    drop((records, database));
    closing.wait();
    let damaged = damage(&value);
    change(to, move |view| match damaged {
        Some(value) => view.put(key, value),
        None => view.remove(key),
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
    let none = "follows from no record";
    let lines: [((&str, &str), Damage, &str, &str); _] = [
        (("/payment/", ""), garbled(), "/payment/", "cannot be read"),
        (("/payment/", ""), removed(), "/event/", "is no event of its payment"),
        (("/payment/", ""), removed(), "*scope/", none),
        (("/payment/", ""), replaced("\"netAmount\":95.47", "\"netAmount\":95.48"), "/payment/", "not fee + net"),
        (("/payment/", ""), replaced("/test\",\"", "/live\",\""), "/payment/", "another scope than its payment"),
        (("/payment/", ""), replaced("\"net_amount\":95.47", "\"net_amount\":95.48"), "/payment/", "written otherwise"),
        (("/payment/", ""), replaced("\"currency\":", " \"currency\":"), "/payment/", "written otherwise"),
        (("/payment/", ""), replaced("\"status\":\"", "\"status\":\"x"), "/payment/", "public status"),
        (("/payment/", ""), replaced("\"rawStatus\":\"", "\"rawStatus\":\"x"), "/payment/", "is in an unknown state"),
        (("/event/", "payment.created"), replaced("created", "refunded"), "/payment/", "has 0 events payment.created"),
        (("/event/", "payment.created"), replaced("created", "refunded"), "/payment/", "1 events payment.refunded"),
        (
            ("/event/", "\"data\""),
            replaced("\"data\":{\"id\":\"pay_0", "\"data\":{\"id\":\"pay_9"),
            "/payment/",
            "about another",
        ),
        (("/event/", ""), removed(), "/response/", "tells of an effect that is not there"),
        (("/event/", "booking"), replaced(":10050", ":10051"), "/payment/", "its bookings are not those of that"),
        (("/event/", "booking"), replaced(":10050", ":10051"), "*scope/", "says"),
        (("/event/", "booking"), replaced(":10050", ":10051"), "*scope/", "with another balance after it"),
        (("/event/", "booking"), replaced(":10050", ":10051"), "*gauges", "gateway_clearing"),
        (("*scope/", ""), removed(), "/payment/", "has no place 0 in payments"),
        (("*scope/", ""), removed(), "/payment/", "for its status"),
        (("*scope/", ""), removed(), "*scope/", "says 0 for balance.BDT.merchant"),
        (("*scope/", ""), garbled(), "*scope/", "is no head of lists and sums"),
        (("*gauges", ""), removed(), "*gauges", "says 0 for payments.test.pending"),
        ((":found/", ""), removed(), "/payment/", "a value by which it is found"),
        ((":deliveries-of/", ""), removed(), "/delivery/", "has no place"),
        (("/delivery/", ""), garbled(), "/delivery/", "cannot be read"),
        (("/delivery/", ""), removed(), "*endpoint/", none),
        (
            ("/delivery/", ""),
            replaced("\"status\":\"success\"", "\"status\":\"pending\""),
            "/delivery/",
            "never be sent",
        ),
        ((":expiry/", ""), removed(), "/payment/", "has no entry in expiry"),
        (("/response/", ""), garbled(), "/response/", "cannot be read"),
        (("/response/", ""), removed(), ":response-age/", "does not wait for this time"),
        (("/response/", "evt_0"), replaced("\"evt_0", "\"evt_9"), "/response/", "an effect that is not there"),
        (("/workspace/", ""), removed(), ":workspace-of/", none),
        ((":workspace-of/", ""), removed(), "/workspace/", "has no entry"),
        (("/api-key/", ""), removed(), ":api-key-of/", none),
        ((":api-key-of/", ""), removed(), "/api-key/", "has no entry"),
        (("/app/", ""), garbled(), "/app/", "cannot be read"),
        (("/endpoint/", ""), removed(), ":endpoint-of/", none),
        ((":endpoint-of/", ""), removed(), "/endpoint/", "has no entry"),
    ];
    for (damaged, damage, named, finding) in lines {
        copy_damaged(&server, &copy, damaged, damage);
        let output = check(&copy);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{damaged:?} {finding}: {stdout}");
        let is_named =
            |line: &str| line.get(HOME..).is_some_and(|rest| rest.starts_with(named)) && line.contains(finding);
        assert!(stdout.lines().any(is_named), "damaged {damaged:?}, expected {named} \"{finding}\": {stdout}");
    }

    // Records that must not exist.
    for (key, finding) in [
        ("surprise/1", "is of no kind"),
        ("all:outbox/wh_1/del_1", none),
        ("all:retry/01234567del_1", none),
        ("all:pending-event/evt_1", none),
        ("all:settlement/pay_1", none),
        ("all:review/pay_1", none),
        ("all:gateway-check/01234567pay_1", none),
    ] {
        copy_damaged(&server, &copy, ("/payment/", ""), |value| Some(value.to_vec()));
        change(&copy, move |view| view.put(key, ""));
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
