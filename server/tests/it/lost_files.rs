//! Files of the journal that are missing, damaged, or taken away while the server runs.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::server::{Server, eventually, payment_of};

/// Creates a payment of about 23 KB under a key of its own.
async fn create_long(server: &Server, nth: usize) -> reqwest::Response {
    let mut body = payment_of(&json!(100));
    body["metadata"] = json!({"long": format!("{nth:08}").repeat(2000)});
    body["description"] = json!("x".repeat(2000));
    let request = server.request(Method::POST, "/payments").header("idempotency-key", format!("long-{nth}"));
    request.json(&body).send().await.unwrap()
}

/// Creates payments until the journal has begun its second file; returns the bodies of the answers.
pub(crate) async fn fill_a_journal_file(server: &Server) -> Vec<String> {
    let mut bodies = Vec::new();
    while files(server).len() < 2 {
        let creates = stream::iter(bodies.len()..bodies.len() + 64).map(async |nth| {
            let answer = create_long(server, nth).await;
            assert_eq!(answer.status(), StatusCode::CREATED);
            answer.text().await.unwrap()
        });
        let made: Vec<_> = creates.buffered(16).collect().await;
        bodies.extend(made);
    }
    bodies
}

/// The journal's files, oldest first.
fn files(server: &Server) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(server.data().join("journal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.to_str().unwrap().ends_with(".unfinished"));
    files.sort();
    // Both forms of one that is being compressed.
    files.dedup_by(|later, earlier| later.to_str().unwrap().starts_with(earlier.to_str().unwrap()));
    files
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_only_journal_file_is_gone_is_refused_by_name_and_opens_when_it_is_back() {
    let mut server = Server::start();
    for nth in 0..20 {
        assert_eq!(create_long(&server, nth).await.status(), StatusCode::CREATED);
    }
    server.kill();
    let journal = files(&server).remove(0);
    let away = server.directory.path().join("away");
    fs::rename(&journal, &away).unwrap();
    let refused = said(&server.administer(&["keys", "list"]));
    assert!(refused.contains(journal.to_str().unwrap()) && refused.contains("is missing"), "{refused}");
    // Nor does it open without the directory, or as a store that earlier versions wrote, which have no list.
    fs::remove_dir(server.data().join("journal")).unwrap();
    let refused = said(&server.administer(&["keys", "list"]));
    assert!(refused.contains("journal is missing"), "{refused}");
    fs::create_dir(server.data().join("journal")).unwrap();
    let list = fs::read(server.data().join("journal.json")).unwrap();
    fs::remove_file(server.data().join("journal.json")).unwrap();
    let refused = said(&server.administer(&["keys", "list"]));
    assert!(refused.contains("there is no journal in"), "{refused}");

    fs::write(server.data().join("journal.json"), list).unwrap();
    fs::rename(&away, &journal).unwrap();
    server.restart();
    for nth in 0..20 {
        assert!(create_long(&server, nth).await.headers().contains_key("idempotent-replayed"), "{nth}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_journal_file_is_taken_away_stops_before_it_answers_for_what_no_start_would_find() {
    let mut server = Server::start();
    for nth in 0..20 {
        assert_eq!(create_long(&server, nth).await.status(), StatusCode::CREATED);
    }
    fs::remove_file(files(&server).remove(0)).unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let create = http.post(format!("{}/api/v1/payments", server.url)).bearer_auth("sk_test_demo");
    let answer = create.json(&payment_of(&json!(1))).send().await;
    assert!(answer.is_err_and(|error| error.is_request()), "no answer, for it would be lost");
    assert_eq!(server.wait().code(), Some(74));
    assert!(server.log().contains("was removed or renamed while it was in use"), "{}", server.log());

    // What was answered before is on the disk, and the file is missed.
    server.restart();
    assert!(server.log().contains("a journal file is missing"), "{}", server.log());
    for nth in 0..20 {
        assert!(create_long(&server, nth).await.headers().contains_key("idempotent-replayed"), "{nth}");
    }
    let checked = said(&server.administer(&["check"]));
    assert!(checked.contains("is missing") && checked.contains("take a backup now"), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_missing_archive_is_named_by_check_and_a_missing_one_at_start() {
    let mut server = Server::start();
    fill_a_journal_file(&server).await;
    let archive = eventually("the closed file to be compressed", async || {
        let oldest = files(&server).remove(0);
        oldest.to_str().unwrap().ends_with(".zst").then_some(oldest)
    })
    .await;
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".zst").unwrap().to_owned();
    let sound = server.administer(&["check"]);
    assert!(sound.status.success(), "{}", said(&sound));

    let whole = fs::read(&archive).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&archive, &damaged).unwrap();
    let found = server.administer(&["check"]);
    assert!(!found.status.success() && said(&found).contains(&name), "{}", said(&found));
    fs::remove_file(&archive).unwrap();
    let found = server.administer(&["check"]);
    assert!(!found.status.success() && said(&found).contains("is missing"), "{}", said(&found));
    server.crash_and_restart();
    let log = server.log();
    assert!(log.contains("a journal file is missing") && log.contains(&name), "{log}");
    fs::write(&archive, &whole).unwrap();
    let sound = server.administer(&["check"]);
    assert!(sound.status.success(), "{}", said(&sound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_interrupted_or_killed_leaves_no_copy_behind() {
    let mut server = Server::start();
    fill_a_journal_file(&server).await;
    let copies = |server: &Server| {
        let names = fs::read_dir(server.data()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("copy-")).count()
    };
    for signal in ["-INT", "-TERM", "-KILL"] {
        let mut check = Command::new(crate::server::BINARY);
        let mut check = check.arg("check").arg("--data-dir").arg(server.data()).spawn().unwrap();
        eventually("a copy", async || (copies(&server) == 1).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Command::new("kill").args([signal, &check.id().to_string()]).status().unwrap();
        check.wait().unwrap();
        if signal == "-KILL" {
            assert_eq!(copies(&server), 1, "nobody was there to remove it");
            server.crash_and_restart();
        }
        assert_eq!(copies(&server), 0, "{signal}");
    }
}

#[tokio::test]
async fn whatever_the_data_directory_lets_in_others_read_nothing_of_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let mut server = Server::start();
    server.kill();
    fs::remove_dir_all(server.data()).unwrap();
    fs::create_dir(server.data()).unwrap();
    fs::set_permissions(server.data(), fs::Permissions::from_mode(0o755)).unwrap();
    server.restart();
    create_long(&server, 0).await;
    let backup = server.data().join("a-backup");
    assert!(server.administer(&["backup", backup.to_str().unwrap()]).status.success());
    let listed = Command::new("find").arg(server.data()).args(["-mindepth", "1", "-perm", "/077"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "", "others may read or write these");
    assert!(!server.log().contains("other users"), "{}", server.log());

    // What an earlier version left readable is said.
    server.kill();
    fs::set_permissions(files(&server).remove(0), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(server.data().join("journal"), fs::Permissions::from_mode(0o755)).unwrap();
    server.restart();
    assert!(server.log().contains("other users of this machine can read files of the store"), "{}", server.log());
}
