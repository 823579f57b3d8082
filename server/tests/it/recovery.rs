//! Recovery after crashes and damage.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, copy, eventually, payment_of, server_binary};

const REPORT: &str = "did not shut down cleanly";

#[tokio::test]
async fn an_unclean_shutdown_is_reported_and_a_clean_one_is_not() {
    let mut server = Server::start();
    server.create(&payment_of(&json!(1))).await;
    assert!(server.terminate().success());
    server.restart();
    assert!(!server.log().contains(REPORT), "{}", server.log());
    // A crash counts as unclean even if nothing was written.
    server.crash_and_restart();
    server.assert_logs(REPORT);
    assert!(server.terminate().success());
    server.restart();
    assert_eq!(server.log().matches(REPORT).count(), 1, "{}", server.log());
}

#[tokio::test]
async fn a_damaged_journal_entry_before_the_last_is_reported_and_not_repaired() {
    let mut server = Server::start();
    for amount in 1..=5 {
        server.create(&payment_of(&json!(amount))).await;
    }
    server.kill();
    let journal = fs::read_dir(server.data().join("journal")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&journal).unwrap();
    bytes[60] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let output = server.try_run(&["check"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("is damaged at byte 53"), "{stderr}");
    assert!(stderr.contains(journal.to_str().unwrap()) && stderr.contains("restore it from a backup"), "{stderr}");
    assert_eq!(fs::read(&journal).unwrap(), bytes, "check repaired the journal");
}

/// Creates payments with their own idempotency keys and returns the response bodies.
async fn create(server: &Server, payments: std::ops::Range<usize>) -> Vec<String> {
    let mut bodies = Vec::new();
    for nth in payments {
        let answer = create_one(server, nth).await;
        assert_eq!(answer.status(), 201);
        bodies.push(answer.text().await.unwrap());
    }
    bodies
}

async fn create_one(server: &Server, nth: usize) -> reqwest::Response {
    let request = server.request(Method::POST, "/payments").header("idempotency-key", format!("key-{nth}"));
    request.json(&payment_of(&json!(100))).send().await.unwrap()
}

/// Asserts that every acknowledged payment exists once and that its key replays the response.
async fn assert_has_all(server: &Server, bodies: &[String]) {
    let list = server.get("/payments?limit=1").await;
    assert_eq!(list["total"], bodies.len());
    for (nth, body) in bodies.iter().enumerate() {
        let again = create_one(server, nth).await;
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!(&again.text().await.unwrap(), body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_kills_during_recovery_lose_nothing() {
    let mut server = Server::start();
    let bodies = create(&server, 0..30).await;
    server.kill();
    for kill in 0..40_u64 {
        if kill == 20 {
            // From here on recovery rebuilds the engine.
            fs::write(server.data().join("sled").join("db"), b"noise").unwrap();
        }
        let mut starting = Command::new(server_binary());
        starting.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(server.data());
        let mut starting = starting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Kill times range from before the first file is opened to after the server is ready.
        tokio::time::sleep(Duration::from_millis(kill % 20 * 9)).await;
        starting.kill().unwrap();
        starting.wait().unwrap();
    }
    server.restart();
    assert_has_all(&server, &bodies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_engine_is_rebuilt_from_the_journal_and_the_log_says_so() {
    let mut server = Server::start();
    let bodies = create(&server, 0..30).await;
    server.kill();
    let whole = server.directory.path().join("whole");
    copy(&server.data(), &whole);
    let engine = fs::read(server.data().join("sled").join("db")).unwrap();
    // Truncate the file, overwrite a part, or empty sled's settings.
    let mut damages: Vec<(&str, Vec<u8>)> = Vec::new();
    for cut in [0, 1, 100, 4096, engine.len() / 2, engine.len() - 1] {
        damages.push(("db", engine[..cut].to_vec()));
    }
    for at in [0, 30, 5000, engine.len() / 3, engine.len() / 2] {
        let mut torn = engine.clone();
        let end = (at + 512).min(torn.len());
        torn[at..end].fill(0xa5);
        damages.push(("db", torn));
    }
    damages.push(("conf", Vec::new()));
    let mut rebuilt = 0;
    for (file, damaged) in damages {
        fs::remove_dir_all(server.data()).unwrap();
        copy(&whole, &server.data());
        fs::write(server.data().join("sled").join(file), &damaged).unwrap();
        server.restart();
        assert_has_all(&server, &bodies).await;
        if server.log().matches("was rebuilt").count() > rebuilt {
            rebuilt += 1;
            assert!(server.data().join("sled.damaged").join(file).exists(), "the damaged engine is gone");
        }
        server.kill();
    }
    assert!(rebuilt >= 4, "the engine noticed only {rebuilt} damages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_engine_with_an_incomplete_journal_is_refused_until_the_whole_journal_restores_it() {
    let mut server = Server::start();
    let bodies = create(&server, 0..10).await;
    assert!(server.terminate().success());
    let damage = |data: &Path| {
        let mut files = fs::read_dir(data.join("sled")).unwrap().map(|entry| entry.unwrap().path());
        let snapshot = files.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("snap.")).unwrap();
        fs::write(snapshot, b"noise of more than a few bytes").unwrap();
    };
    damage(&server.data());
    server.restart();
    assert_has_all(&server, &bodies).await;
    server.assert_logs("was rebuilt");
    assert!(server.terminate().success());

    damage(&server.data());
    let journal = server.data().join("journal");
    let whole = server.directory.path().join("whole");
    copy(&journal, &whole);
    let first = fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    fs::rename(&first, first.with_file_name("00000000000000000005.journal")).unwrap();
    let refused = server.try_run(&["keys", "list"]);
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && stderr.contains("is damaged") && stderr.contains("payments-server restore"),
        "{stderr}"
    );

    // Without a journal no command creates an empty store.
    fs::remove_file(first.with_file_name("00000000000000000005.journal")).unwrap();
    assert!(!server.try_run(&["keys", "list"]).status.success());
    let lost = server.directory.path().join("lost");
    fs::rename(server.data(), &lost).unwrap();
    let refused = server.try_run(&["restore", "--journal", lost.join("journal").to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is missing; put it back"), "{refused:?}");
    assert!(!server.directory.path().join("data.restoring").exists(), "a part of it is left");

    server.run(&["restore", "--journal", whole.to_str().unwrap()]);
    server.restart();
    assert_has_all(&server, &bodies).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_until_a_time_restores_the_store_as_of_that_time() {
    let mut server = Server::start();
    let early = create(&server, 0..10).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let moment = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%3NZ"]).output().unwrap().stdout;
    let moment = String::from_utf8(moment).unwrap().trim().to_owned();
    tokio::time::sleep(Duration::from_millis(5)).await;
    // The first payment is paid after that moment.
    let first: Value = serde_json::from_str(&early[0]).unwrap();
    let simulate = format!("/checkout/{}/simulate", first["id"].as_str().unwrap());
    assert_eq!(server.request(Method::POST, &simulate).send().await.unwrap().status(), 200);
    let backup = server.directory.path().join("backup");
    server.run(&["backup", backup.to_str().unwrap()]);
    create(&server, 10..20).await;
    server.kill();

    let lost = server.directory.path().join("lost");
    fs::rename(server.data(), &lost).unwrap();
    let journal = lost.join("journal");
    let journal = journal.to_str().unwrap();
    let later = server.try_run(&["restore", backup.to_str().unwrap(), "--journal", journal, "--until", &moment]);
    let stderr = String::from_utf8_lossy(&later.stderr).into_owned();
    assert!(!later.status.success() && stderr.contains("is of a later moment"), "{stderr}");
    assert!(!server.directory.path().join("data.restoring").exists(), "a part of it is left");

    server.run(&["restore", "--journal", journal, "--until", &moment]);
    server.restart();
    assert_has_all(&server, &early).await;
    let path = format!("/payments/{}", first["id"].as_str().unwrap());
    let then = server.get(&path).await;
    assert_eq!(then["rawStatus"], "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_running_store_has_all_earlier_payments_or_is_refused() {
    let mut opened = 0;
    let server = Server::start();
    let mut bodies = Vec::new();
    for round in 0..6 {
        let copied = TempDir::new().unwrap();
        let (from, to) = (server.data(), copied.path().join("data"));
        let before = bodies.len();
        let copying = tokio::task::spawn_blocking(move || {
            fs::create_dir(&to).unwrap();
            // Alternate the order, so that each half is sometimes the older one.
            let halves = if round % 2 == 0 { ["sled", "journal", "open"] } else { ["journal", "sled", "open"] };
            for half in halves {
                copy(&from.join(half), &to.join(half));
                std::thread::sleep(Duration::from_millis(30));
            }
        });
        bodies.extend(create(&server, before..before + 30).await);
        copying.await.unwrap();
        match Server::try_start_on(copied) {
            Ok(copy) => {
                opened += 1;
                let list = copy.get("/payments?limit=1").await;
                assert!(list["total"].as_u64().unwrap() >= before as u64);
                for (nth, body) in bodies[..before].iter().enumerate() {
                    assert_eq!(&create_one(&copy, nth).await.text().await.unwrap(), body);
                }
            }
            Err((_, log)) => assert!(log.contains("but the store already holds"), "{log}"),
        }
    }
    assert!(opened >= 3, "only {opened} copies opened");
    eventually("the server to answer", async || server.keyless(Method::GET, "/healthz").send().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_first_start_is_repeated() {
    let mut server = Server::start();
    server.kill();
    // Recreate what a crash leaves: a torn engine file, and no journal directory or one without a file.
    for has_directory in [false, true] {
        for name in ["journal.json", "open"] {
            let _ = fs::remove_file(server.data().join(name));
        }
        fs::remove_dir_all(server.data().join("journal")).unwrap();
        if has_directory {
            fs::create_dir(server.data().join("journal")).unwrap();
        }
        fs::write(server.data().join("sled/db"), vec![7; 100_000]).unwrap();
        server.restart();
        server.assert_logs("a store that was never open is created again");
        create(&server, 0..1).await;
        server.kill();
    }
    server.restart();
    assert!(create_one(&server, 0).await.headers().contains_key("idempotent-replayed"));
}
