//! Backups of a running server's store, and restores from them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    check::filled,
    server::{SANDBOX_KEY, Server, eventually, payment_of, server_binary, text_of},
};

/// Creates and pays payments until `stop` is set or the server stops. Returns the ids of acknowledged paid payments.
fn shops(server: &Server, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<Vec<String>>> {
    let shop = |stop: Arc<AtomicBool>, url: String| async move {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut paid = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let create = http.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY);
            let Ok(answer) = create.json(&payment_of(&json!(100))).send().await else { break };
            let Ok(payment) = answer.json::<Value>().await else { break };
            let id = payment["id"].as_str().unwrap().to_owned();
            let simulate = http.post(format!("{url}/api/v1/checkout/{id}/simulate")).send().await;
            if simulate.is_ok_and(|answer| answer.status() == 200) {
                paid.push(id);
            }
        }
        paid
    };
    (0..4).map(|_| tokio::spawn(shop(Arc::clone(stop), server.url.clone()))).collect()
}

async fn paid_by(shops: Vec<JoinHandle<Vec<String>>>) -> Vec<String> {
    let mut paid = Vec::new();
    for shop in shops {
        paid.extend(shop.await.unwrap());
    }
    paid
}

async fn total(server: &Server) -> u64 {
    server.get("/payments?limit=1&status=completed").await["total"].as_u64().unwrap()
}

fn run(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(server_binary());
    command.args(arguments);
    for (flag, path) in paths {
        if !flag.is_empty() {
            command.arg(flag);
        }
        command.arg(path);
    }
    command.output().unwrap()
}

/// Replaces the store by a restored one and restarts the server.
fn serve(server: &mut Server, restored: &Path) {
    fs::rename(server.data(), server.directory.path().join("lost")).unwrap();
    fs::rename(restored, server.data()).unwrap();
    server.restart();
}

fn in_directory(server: &Server, name: &str) -> PathBuf {
    server.directory.path().join(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_taken_under_load_restores_to_a_consistent_store() {
    let mut server = Server::start();
    let stop = Arc::new(AtomicBool::new(false));
    let shops = shops(&server, &stop);
    eventually("some payments", async || (total(&server).await > 20).then_some(())).await;
    let before = total(&server).await;
    let backup = in_directory(&server, "backup");
    server.run(&["backup", backup.to_str().unwrap()]);
    let after = total(&server).await;
    // `check` also passes while the store is written to.
    server.run(&["check"]);
    stop.store(true, Ordering::Relaxed);
    paid_by(shops).await;
    server.kill();

    let restored = in_directory(&server, "restored");
    let output = run(&["restore"], &[("", &backup), ("--data-dir", &restored)]);
    assert!(output.status.success(), "{}", text_of(&output));
    serve(&mut server, &restored);
    let held = total(&server).await;
    assert!((before..=after).contains(&held), "{held} is not between {before} and {after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_and_the_journal_restore_every_acknowledged_payment() {
    let mut server = Server::start();
    let stop = Arc::new(AtomicBool::new(false));
    let shops = shops(&server, &stop);
    let backup = in_directory(&server, "backup");
    server.run(&["backup", backup.to_str().unwrap()]);
    let at_backup = total(&server).await;
    eventually("more payments", async || (total(&server).await > at_backup + 20).then_some(())).await;
    server.kill();
    let paid = paid_by(shops).await;
    // Damage the engine's file but not the journal.
    fs::write(server.data().join("sled").join("db"), b"noise").unwrap();
    let journal = server.data().join("journal");

    let restored = in_directory(&server, "restored");
    let output = run(&["restore"], &[("", &backup), ("--journal", &journal), ("--data-dir", &restored)]);
    assert!(output.status.success(), "{}", text_of(&output));
    serve(&mut server, &restored);
    for id in &paid {
        let payment = server.get(&format!("/payments/{id}")).await;
        assert_eq!(payment["rawStatus"], "paid", "{id}");
    }
    assert!(paid.len() as u64 > at_backup);
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_check_and_restore_count_the_same_records() {
    let mut server = filled().await;
    // Reads the counts from a sentence such as "/backup holds 57 records, 4 of them payments, up to change 40".
    let counted = |text: &str| {
        let (records, payments) = text.split_once(" records, ").unwrap();
        let (payments, _) = payments.split_once(" of them payments").unwrap();
        [records.split_whitespace().last().unwrap(), payments].map(|number| number.parse::<u64>().unwrap())
    };
    let in_json = |value: &Value| ["records", "payments"].map(|name| value[name].as_u64().unwrap());
    let compare = |server: &Server, name: &str| {
        let [backup, restored] = ["backup", "restored"].map(|kind| in_directory(server, &format!("{kind}-{name}")));
        let made = server.run(&["backup", backup.to_str().unwrap()]);
        let restored = text_of(&run(&["restore"], &[("", &backup), ("--data-dir", &restored)]));
        assert_eq!(counted(&made), counted(&restored), "{name}: {made} {restored}");
        assert_eq!(counted(&made), counted(&server.run(&["check"])), "{name}: {made}");
        counted(&made)
    };
    let [records, payments] = compare(&server, "stopped");
    assert!(records > 50 && payments == 4, "{records} records, {payments} payments");
    server.restart();
    // Now some records are only in the journal.
    for amount in 1..=5 {
        server.create(&payment_of(&json!(amount))).await;
    }
    let backup = in_directory(&server, "backup");
    let made: Value = serde_json::from_str(&server.run(&["backup", "--json", backup.to_str().unwrap()])).unwrap();
    let restored = run(&["restore", "--json"], &[("", &backup), ("--data-dir", &in_directory(&server, "restored"))]);
    let restored: Value = serde_json::from_slice(&restored.stdout).unwrap();
    assert_eq!(in_json(&made), in_json(&restored["check"]), "{made} {restored}");
    assert_eq!(made["payments"], 9);
    assert!(server.terminate().success());
    assert_eq!(compare(&server, "again")[1], 9);
}

#[tokio::test]
async fn restore_refuses_a_damaged_backup_and_overwrites_nothing() {
    let server = Server::start();
    server.create(&payment_of(&json!(1))).await;
    let backup = in_directory(&server, "backup");
    server.run(&["backup", backup.to_str().unwrap()]);
    let again = server.try_run(&["backup", backup.to_str().unwrap()]);
    assert!(!again.status.success() && text_of(&again).contains("is not empty"), "{}", text_of(&again));

    let restored = in_directory(&server, "restored");
    let restore = |backup: &Path, to: &Path| run(&["restore"], &[("", backup), ("--data-dir", to)]);
    let over = restore(&backup, &server.data());
    assert!(!over.status.success() && text_of(&over).contains("is not empty"), "{}", text_of(&over));

    let records = fs::read(backup.join("records")).unwrap();
    for at in [0, 17, 21, 28, records.len() / 2, records.len() - 1] {
        let mut damaged = records.clone();
        damaged[at] ^= 1;
        fs::write(backup.join("records"), damaged).unwrap();
        let output = restore(&backup, &restored);
        assert!(!output.status.success() && !restored.exists(), "byte {at}: {}", text_of(&output));
    }
    fs::write(backup.join("records"), &records[..16]).unwrap();
    assert!(text_of(&restore(&backup, &restored)).contains("holds less than it says"));
    fs::write(backup.join("records"), &records).unwrap();
    assert!(restore(&backup, &restored).status.success());

    fs::remove_file(backup.join("backup.json")).unwrap();
    let output = restore(&backup, &in_directory(&server, "other"));
    assert!(text_of(&output).contains("is not a whole backup"), "{}", text_of(&output));
}

#[tokio::test]
async fn scheduled_backups_keep_only_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let backups = directory.path().join("backups");
    let flags = ["--backup-dir", backups.to_str().unwrap(), "--backup-every", "1", "--backup-keep", "2"];
    let mut server = Server::start_with(&flags);
    server.create(&payment_of(&json!(1))).await;
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&backups).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        names.retain(|path| path.join("backup.json").exists());
        names.sort();
        names
    };
    let first = eventually("a backup", async || names().first().cloned()).await;
    eventually("the first to be removed", async || (names().len() == 2 && !first.exists()).then_some(())).await;
    server.kill();
    let restored = directory.path().join("restored");
    let output = run(&["restore"], &[("", names().last().unwrap()), ("--data-dir", &restored)]);
    assert!(output.status.success(), "{}", text_of(&output));
    assert!(text_of(&output).contains("1 of them payments"), "{}", text_of(&output));
}
