//! A disk that is full for a while, and failing syncs.

use std::{
    fs,
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::small_disk::SmallDisk;

use crate::{
    receiver::Receiver,
    server::{SANDBOX_KEY, Server, eventually, launch, payment_of, server_binary, text_of},
};

async fn create(server: &Server, key: &str) -> reqwest::Response {
    let request = server.request(Method::POST, "/payments").header("idempotency-key", key);
    request.json(&payment_of(&json!(100))).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_a_full_disk_changes_nothing_and_resumes_once_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(directory.path(), "192m");
    let on_it = tempfile::tempdir_in(directory.path()).unwrap();
    let server = Server::try_start_on(on_it).map_err(|(_, log)| log).unwrap();
    let receiver = Receiver::ok().await;
    receiver.subscribe(&server.client()).await;
    assert_eq!(create(&server, "before").await.status(), StatusCode::CREATED);
    eventually("the first event", async || (receiver.received().len() == 1).then_some(())).await;

    let ballast = directory.path().join("ballast");
    let mut fill = Command::new("dd");
    fill.args(["if=/dev/zero", "bs=1M", "count=300", "status=none"]).arg(format!("of={}", ballast.display()));
    assert!(!fill.status().unwrap().success(), "the disk is not full");
    // Use up the space that the journal reserved.
    let mut made = 1;
    // The server frees some space once when it compresses a journal file.
    let mut refused = 0;
    while refused < 20 {
        let answer = create(&server, &format!("last-{made}-{refused}")).await;
        if answer.status() == StatusCode::CREATED {
            (made, refused) = (made + 1, 0);
            assert!(made < 2000, "the disk is not full");
        } else {
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(answer.headers().contains_key("retry-after"));
            refused += 1;
        }
    }
    // A ping without a key is sent but cannot be recorded. A ping with a key is not sent, because its key cannot be claimed.
    let id = server.client().webhooks().list().await.unwrap().remove(0).id;
    let ping = async |key: Option<&str>| {
        let mut request = server.request(Method::POST, &format!("/webhooks/{id}/test"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let sent = || receiver.received().iter().filter(|got| got.headers["x-service-event"] == "test.ping").count();
    let mut pings = 0;
    while ping(None).await != (200, "null".into()) {
        pings += 1;
        assert!(pings < 2000, "the disk is not full");
    }
    assert_eq!(sent(), pings + 1);
    // Claims are small. The journal may have room for a few of them, but not for their responses.
    let mut keyed = 0;
    loop {
        let before = sent();
        assert_eq!(ping(Some(&format!("ping-{keyed}"))).await, (200, "null".into()));
        if sent() == before {
            break;
        }
        keyed += 1;
        assert!(keyed < 2000, "the disk is not full");
    }
    assert_eq!(sent(), pings + 1 + keyed, "the last one was not sent");
    // Reading still works.
    let list = server.get("/payments").await;
    assert_eq!(list["total"], made);

    fs::remove_file(&ballast).unwrap();
    for nth in 0..20 {
        let answer = create(&server, &format!("last-{made}-{nth}")).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert!(!answer.headers().contains_key("idempotent-replayed"), "a refused request has no stored response");
    }
    let (status, delivery) = ping(Some(&format!("ping-{keyed}"))).await;
    assert!(status == 200 && delivery.contains("test.ping"), "{delivery}");
    eventually("every event", async || {
        let received = receiver.received();
        let events = received.iter().filter(|received| received.headers["x-service-event"] != "test.ping");
        let mut events: Vec<_> = events.map(|received| received.body.clone()).collect();
        events.sort();
        events.dedup();
        (events.len() == made + 20).then_some(())
    })
    .await;
    drop(server);
    drop(disk);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_store_on_a_full_or_read_only_disk_is_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(directory.path(), "192m");
    let on_it = tempfile::tempdir_in(directory.path()).unwrap();
    let mut server = Server::try_start_on(on_it).map_err(|(_, log)| log).unwrap();
    for nth in 0..20 {
        assert_eq!(create(&server, &format!("before-{nth}")).await.status(), StatusCode::CREATED);
    }
    let refused = |server: &Server, what: &str, mend: &str| {
        for command in [&["keys", "list"][..], &["check"], &["workspaces", "create", "--name", "Shop"]] {
            let output = server.try_run(command);
            let said = text_of(&output);
            assert!(!output.status.success() && !said.contains("damaged"), "{command:?}: {said}");
            assert!(said.contains(what) && said.contains(mend), "{command:?}: {said}");
            assert!(said.contains(server.data().to_str().unwrap()), "{command:?}: {said}");
        }
    };
    for is_killed in [true, false] {
        if is_killed {
            server.kill()
        } else {
            assert!(server.terminate().success())
        }
        let ballast = directory.path().join("ballast");
        let mut fill = Command::new("dd");
        fill.args(["if=/dev/zero", "bs=4K", "status=none"]).arg(format!("of={}", ballast.display()));
        assert!(!fill.status().unwrap().success(), "the disk is not full");
        refused(&server, "No space left on device", "make room on its disk");
        fs::remove_file(&ballast).unwrap();
        let mount = |how: &str| Command::new("mount").args(["-o", how]).arg(directory.path()).status().unwrap();
        assert!(mount("remount,ro").success());
        refused(&server, "Read-only file system", "mount its disk for writing");
        assert!(mount("remount,rw").success());
        server.restart();
        for nth in 0..20 {
            assert_eq!(create(&server, &format!("before-{nth}")).await.headers()["idempotent-replayed"], "true");
        }
    }
    drop(server);
    drop(disk);
}

/// The result of creating payments while one sync fails.
struct Outcome {
    acknowledged: Vec<(String, String)>,
    unanswered: Vec<String>,
    exit: Option<ExitStatus>,
}

async fn create_until_a_sync_fails(directory: &Path, call: &str, nth: usize) -> Outcome {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={call}"), "-o", "/dev/null"]);
    command.args(["-e", &format!("inject={call}:error=EIO:when={nth}")]).arg(server_binary());
    let (mut strace, url) = launch(command, directory, "127.0.0.1:0", &[]);
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
    let mut outcome = Outcome { acknowledged: Vec::new(), unanswered: Vec::new(), exit: None };
    // strace counts the calls of each thread separately, and several threads sync.
    for count in 0..100 {
        let key = format!("{call}-{nth}-{count}");
        let request = http.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY);
        let answer = request.header("idempotency-key", &key).json(&payment_of(&json!(100))).send().await;
        match answer {
            Ok(answer) if answer.status() == StatusCode::CREATED => {
                outcome.acknowledged.push((key, answer.text().await.unwrap()));
            }
            _ => outcome.unanswered.push(key),
        }
        if outcome.unanswered.len() == 3 {
            break;
        }
    }
    if outcome.unanswered.is_empty() {
        // Either no sync failed, or no response depended on the failed one.
        let children = format!("/proc/{0}/task/{0}/children", strace.id());
        let server = fs::read_to_string(children).unwrap();
        Command::new("kill").args(["-KILL", server.trim()]).status().unwrap();
        strace.wait().unwrap();
    } else {
        outcome.exit = Some(strace.wait().unwrap());
    }
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_stops_the_server_and_loses_no_acknowledged_payment() {
    let mut stopped = 0;
    // The first two syncs belong to the server's start.
    for nth in 3..10 {
        let directory = tempfile::tempdir().unwrap();
        let Outcome { acknowledged, unanswered, exit } =
            create_until_a_sync_fails(directory.path(), "fdatasync", nth).await;
        if let Some(exit) = exit {
            assert_eq!(exit.code(), Some(74), "sync {nth}");
            stopped += 1;
        }
        let server = Server::try_start_on(directory).map_err(|(_, log)| log).unwrap();
        for (key, body) in &acknowledged {
            let again = create(&server, key).await;
            assert_eq!(again.headers()["idempotent-replayed"], "true", "sync {nth}: {key}");
            assert_eq!(&again.text().await.unwrap(), body);
        }
        // Each key makes one payment, whether or not the batch of the failed sync is on the disk.
        for key in &unanswered {
            let first = create(&server, key).await.text().await.unwrap();
            assert_eq!(create(&server, key).await.text().await.unwrap(), first);
        }
        let list = server.get("/payments").await;
        assert_eq!(list["total"], acknowledged.len() + unanswered.len(), "sync {nth}");
    }
    assert_eq!(stopped, 7, "each failed sync stops the server");
}
