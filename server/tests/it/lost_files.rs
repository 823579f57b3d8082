//! Journal files that are missing, damaged, or removed while the server runs. Also the permissions of the store's files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use reqwest::{Response, StatusCode};
use serde_json::json;

use crate::server::{SANDBOX_KEY, Server, eventually, payment_of, text_of};

/// The length at which the server starts a new journal file.
const FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Creates a payment of about 23 KB with its own idempotency key.
pub(crate) async fn create_long(url: &str, nth: usize) -> reqwest::Result<Response> {
    static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap()
    });
    let mut body = payment_of(&json!(100));
    body["metadata"] = json!({"long": format!("{nth:08}").repeat(2000)});
    body["description"] = json!("x".repeat(2000));
    let request = HTTP.post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY);
    request.header("idempotency-key", format!("long-{nth}")).json(&body).send().await
}

async fn created(server: &Server, nth: usize) {
    assert_eq!(create_long(&server.url, nth).await.unwrap().status(), StatusCode::CREATED, "payment {nth}");
}

/// Whether the server replays the stored response of this payment.
async fn is_replayed(server: &Server, nth: usize) -> bool {
    create_long(&server.url, nth).await.unwrap().headers().contains_key("idempotent-replayed")
}

/// Where the entries of a journal file end.
pub(crate) fn entries_end(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let mut end = 16;
    while let Some(length) = bytes.get(end..end + 4) {
        match u32::from_le_bytes(length.try_into().unwrap()) {
            0 => break,
            length => end += 8 + length as usize,
        }
    }
    end as u64
}

/// Creates payments, numbered from 1,000, until `left` more fill the journal file. Returns how many it created.
pub(crate) async fn fill_all_but(server: &Server, left: usize) -> usize {
    let file = files(server).remove(0);
    let mut made = 0;
    let before = entries_end(&file);
    for _ in 0..10 {
        created(server, 1_000 + made).await;
        made += 1;
    }
    let each = (entries_end(&file) - before) / 10;
    let enough = FILE_BYTES - each * left as u64;
    loop {
        let missing = usize::try_from(enough.saturating_sub(entries_end(&file)) / each).unwrap();
        if missing == 0 {
            return made;
        }
        let creates = (0..missing).map(|nth| created(server, 1_000 + made + nth));
        stream::iter(creates).buffer_unordered(16).collect::<Vec<()>>().await;
        made += missing;
    }
}

/// Creates payments until the journal has a second file.
async fn fill_a_journal_file(server: &Server) {
    let mut made = fill_all_but(server, 4).await;
    while files(server).len() < 2 {
        created(server, 1_000 + made).await;
        made += 1;
    }
}

/// The journal's files, oldest first.
pub(crate) fn files(server: &Server) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(server.data().join("journal")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.to_str().unwrap().ends_with(".unfinished"));
    files.sort();
    // During compression a file exists in both forms.
    files.dedup_by(|later, earlier| later.to_str().unwrap().starts_with(earlier.to_str().unwrap()));
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_its_only_journal_file_names_the_file_and_opens_once_it_is_back() {
    let mut server = Server::start();
    for nth in 0..20 {
        created(&server, nth).await;
    }
    server.kill();
    let journal = files(&server).remove(0);
    let away = server.directory.path().join("away");
    fs::rename(&journal, &away).unwrap();
    let refused = text_of(&server.try_run(&["keys", "list"]));
    assert!(refused.contains(journal.to_str().unwrap()) && refused.contains("is missing"), "{refused}");
    // The store opens neither without the journal directory nor without the list of files, as in earlier formats.
    fs::remove_dir(server.data().join("journal")).unwrap();
    let refused = text_of(&server.try_run(&["keys", "list"]));
    assert!(refused.contains("journal is missing"), "{refused}");
    fs::create_dir(server.data().join("journal")).unwrap();
    let list = fs::read(server.data().join("journal.json")).unwrap();
    fs::remove_file(server.data().join("journal.json")).unwrap();
    let refused = text_of(&server.try_run(&["keys", "list"]));
    assert!(refused.contains("there is no journal in"), "{refused}");

    fs::write(server.data().join("journal.json"), list).unwrap();
    fs::rename(&away, &journal).unwrap();
    server.restart();
    for nth in 0..20 {
        assert!(is_replayed(&server, nth).await, "{nth}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_without_answering_when_its_journal_file_is_removed() {
    let mut server = Server::start();
    for nth in 0..20 {
        created(&server, nth).await;
    }
    fs::remove_file(files(&server).remove(0)).unwrap();
    let answer = create_long(&server.url, 20).await;
    assert!(answer.is_err_and(|error| error.is_request()), "the server must not answer");
    assert_eq!(server.wait().code(), Some(74));
    server.assert_logs("was removed or renamed while it was in use");

    // The payments are in the engine. The log names the missing file.
    server.restart();
    server.assert_logs("is missing: the journal alone");
    for nth in 0..20 {
        assert!(is_replayed(&server, nth).await, "{nth}");
    }
    let checked = text_of(&server.try_run(&["check"]));
    assert!(checked.contains("is missing") && checked.contains("take a new backup"), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_a_damaged_or_missing_archive_and_a_start_names_a_missing_one() {
    let mut server = Server::start();
    fill_a_journal_file(&server).await;
    let archive = eventually("the closed file to be compressed", async || {
        let oldest = files(&server).remove(0);
        oldest.to_str().unwrap().ends_with(".zst").then_some(oldest)
    })
    .await;
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".zst").unwrap().to_owned();
    server.run(&["check"]);
    // After a clean shutdown, no start needs the archive.
    assert!(server.terminate().success());
    server.restart();

    let whole = fs::read(&archive).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&archive, &damaged).unwrap();
    let found = server.try_run(&["check"]);
    assert!(!found.status.success() && text_of(&found).contains(&name), "{}", text_of(&found));
    fs::remove_file(&archive).unwrap();
    let found = server.try_run(&["check"]);
    assert!(!found.status.success() && text_of(&found).contains("is missing"), "{}", text_of(&found));
    server.crash_and_restart();
    server.assert_logs("is missing: the journal alone");
    server.assert_logs(&name);
    fs::write(&archive, &whole).unwrap();
    server.run(&["check"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_or_killed_check_leaves_no_copy() {
    let mut server = Server::start();
    fill_a_journal_file(&server).await;
    let copies = |server: &Server| {
        let names = fs::read_dir(server.data()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("copy-")).count()
    };
    for signal in ["-INT", "-TERM", "-KILL"] {
        let mut check = Command::new(crate::server::server_binary());
        let mut check = check.arg("check").arg("--data-dir").arg(server.data()).spawn().unwrap();
        eventually("a copy", async || (copies(&server) == 1).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Command::new("kill").args([signal, &check.id().to_string()]).status().unwrap();
        check.wait().unwrap();
        if signal == "-KILL" {
            assert_eq!(copies(&server), 1, "a killed check leaves its copy until the next start");
            server.crash_and_restart();
        }
        assert_eq!(copies(&server), 0, "{signal}");
    }
}

#[tokio::test]
async fn other_users_can_read_no_file_of_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let mut server = Server::start();
    server.kill();
    fs::remove_dir_all(server.data()).unwrap();
    fs::create_dir(server.data()).unwrap();
    fs::set_permissions(server.data(), fs::Permissions::from_mode(0o755)).unwrap();
    server.restart();
    created(&server, 0).await;
    let backup = server.data().join("a-backup");
    server.run(&["backup", backup.to_str().unwrap()]);
    let listed = Command::new("find").arg(server.data()).args(["-mindepth", "1", "-perm", "/077"]).output().unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "", "other users can read or write these");
    assert!(!server.log().contains("other users"), "{}", server.log());

    // The log warns about files that others can read, such as copies.
    server.kill();
    fs::set_permissions(files(&server).remove(0), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(server.data().join("journal"), fs::Permissions::from_mode(0o755)).unwrap();
    server.restart();
    server.assert_logs("other users of this machine can read files of the store");
}
