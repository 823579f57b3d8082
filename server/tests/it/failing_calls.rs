//! Makes each file call of a run fail once: every create, write, sync, rename and removal. The run starts a server, fills a
//! journal file, starts the next one, compresses the old one and makes a backup. No failure loses an acknowledged payment,
//! and the next start opens a sound store.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use reqwest::StatusCode;

use crate::{
    lost_files::{create_long, fill_all_but},
    server::{Server, copy, server_binary, try_launch},
};

/// Payments per run. The second half goes to the second journal file.
const PAYMENTS: usize = 24;

/// Compiles the library that makes a call fail.
pub(crate) fn shim(directory: &Path) -> PathBuf {
    let library = directory.join("fail_call.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/fail_call.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compile.status().unwrap().success());
    library
}

/// The result of a run on a copy of a store.
struct Run {
    directory: tempfile::TempDir,
    /// The response bodies of acknowledged payments by their number.
    acknowledged: BTreeMap<usize, String>,
    /// The calls in order: number, name, file.
    calls: Vec<String>,
}

/// Runs a server on a copy of a store and makes the call with this number fail.
async fn run(template: &Path, shim: &Path, fail_at: usize) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    copy(template, &data);
    let log = directory.path().join("calls");
    let mut command = Command::new(server_binary());
    command.env("LD_PRELOAD", shim).env("FAIL_UNDER", &data).env("FAIL_AT", fail_at.to_string()).env("FAIL_LOG", &log);
    let mut acknowledged = BTreeMap::new();
    if let Ok((mut process, url)) = try_launch(command, directory.path(), "127.0.0.1:0", &[]) {
        let mut refusals = 0;
        for nth in 0..PAYMENTS {
            match create_long(&url, nth).await {
                Ok(answer) if answer.status() == StatusCode::CREATED => {
                    acknowledged.insert(nth, answer.text().await.unwrap());
                }
                // The server refused the payment or has stopped.
                _ => refusals += 1,
            }
            if refusals == 3 {
                break;
            }
        }
        let mut backup = Command::new(server_binary());
        backup.args(["backup", data.join("a-backup").to_str().unwrap(), "--data-dir"]).arg(&data);
        let _ = backup.stdout(Stdio::null()).stderr(Stdio::null()).status();
        wait_for_idle(&log).await;
        let _ = process.kill();
        process.wait().unwrap();
    }
    let calls = fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    Run { directory, acknowledged, calls }
}

/// Waits until the log stops growing: the archiver works in the background.
async fn wait_for_idle(log: &Path) {
    let length = || fs::metadata(log).map_or(0, |metadata| metadata.len());
    let (mut known, begun) = (length(), Instant::now());
    loop {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let now = length();
        if now == known || begun.elapsed() > Duration::from_secs(20) {
            return;
        }
        known = now;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_call_at_an_opening_names_its_file_and_no_sound_store_is_called_damaged() {
    let held = tempfile::tempdir().unwrap();
    let shim = shim(held.path());
    let mut server = Server::start();
    for nth in 0..10 {
        assert_eq!(create_long(&server.url, nth).await.unwrap().status(), StatusCode::CREATED);
    }
    server.kill();
    let template = server.data();
    let opened = |fail_at: usize| {
        let directory = tempfile::tempdir().unwrap();
        let (data, log) = (directory.path().join("data"), directory.path().join("calls"));
        copy(&template, &data);
        let mut command = Command::new(server_binary());
        command.env("LD_PRELOAD", &shim).env("FAIL_UNDER", &data).env("FAIL_AT", fail_at.to_string());
        let output = command.env("FAIL_LOG", &log).args(["keys", "list", "--data-dir"]).arg(&data).output().unwrap();
        let calls: Vec<_> = fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
        (data, output, calls, directory)
    };
    let (.., calls, _) = opened(0);
    assert!(calls.len() > 20, "{calls:#?}");
    let mut refused = 0;
    for fail_at in 1..=calls.len() {
        let (data, output, calls, _directory) = opened(fail_at);
        let what = calls.get(fail_at - 1).map_or("a call that was not made", String::as_str);
        if !output.status.success() {
            refused += 1;
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("is damaged"), "{what}: {said}");
            assert!(said.contains(data.to_str().unwrap()), "{what}: {said}");
        }
        let mut again = Command::new(server_binary());
        let again = again.arg("check").arg("--data-dir").arg(&data).output().unwrap();
        assert!(again.status.success(), "{what}: {}", String::from_utf8_lossy(&again.stderr));
    }
    assert!(refused > 10, "{refused} of {} calls", calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_file_call_loses_no_acknowledged_payment_and_leaves_a_sound_store() {
    let held = tempfile::tempdir().unwrap();
    let shim = shim(held.path());
    let mut server = Server::start();
    // Leave so little room that a run starts the second file.
    let before = fill_all_but(&server, PAYMENTS / 2).await;
    server.kill();
    let template = server.data();

    let sound = run(&template, &shim, 0).await;
    assert_eq!(sound.acknowledged.len(), PAYMENTS);
    let kinds = |what: &str| sound.calls.iter().filter(|call| call.contains(what)).count();
    for what in ["open", "write", "sync", "rename", "unlink", "journal.json", ".zst", "backup.json", "sled/"] {
        assert!(kinds(what) > 0, "no call has {what}: {:#?}", sound.calls);
    }
    // The simulated disk fails every call in thousands of runs. This test shows that a real disk behaves the same. It takes
    // every hundredth call, with another offset in each run. FAILING_CALLS=1 takes all calls.
    let step: usize = std::env::var("FAILING_CALLS").map_or(100, |text| text.parse().unwrap());
    let offset = usize::try_from(std::process::id()).unwrap() % step;
    let calls: Vec<usize> = (1..=sound.calls.len()).filter(|call| call % step == offset).collect();
    println!("{} of {} calls: those with number % {step} == {offset}", calls.len(), sound.calls.len());
    for fail_at in calls {
        let Run { directory, acknowledged, calls } = run(&template, &shim, fail_at).await;
        println!("{} {}", calls.get(fail_at - 1).map_or("-", String::as_str), acknowledged.len());
        let what = calls.get(fail_at - 1).map_or("a call that the run did not reach", String::as_str).to_owned();
        let mut server = Server::try_start_on(directory).unwrap_or_else(|(_, log)| panic!("{what}: {log}"));
        for (nth, body) in &acknowledged {
            let again = create_long(&server.url, *nth).await.unwrap();
            assert_eq!(&again.text().await.unwrap(), body, "{what}: payment {nth}");
        }
        // The list has the acknowledged payments, and possibly some without a response.
        let total = server.get("/payments?limit=1").await["total"].as_u64().unwrap();
        let least = u64::try_from(before + acknowledged.len()).unwrap();
        assert!((least..=u64::try_from(before + PAYMENTS).unwrap()).contains(&total), "{what}: {total}, {least}");
        let backup = server.data().join("a-backup");
        if backup.join("backup.json").exists() {
            let target = server.directory.path().join("from-backup");
            let mut restore = Command::new(server_binary());
            restore.arg("restore").arg(&backup).arg("--data-dir").arg(&target);
            let restored = restore.output().unwrap();
            assert!(restored.status.success(), "{what}: {}", String::from_utf8_lossy(&restored.stderr));
        }
        server.kill();
        let checked = server.try_run(&["check"]);
        assert!(checked.status.success(), "{what}: {}", String::from_utf8_lossy(&checked.stdout));
    }
}
