//! Root's commands on the store of a service that has its own user.

use std::{
    fs,
    os::unix::{fs::MetadataExt, fs::PermissionsExt, fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::json;

use crate::server::{SANDBOX_KEY, eventually, files_under, launch, payment_of, server_binary, text_of, try_launch};

/// The id of the service's user, which has no name.
const SERVICE: u32 = 65_532;

/// A directory in which the service's user may do everything. It contains the program.
fn place() -> (tempfile::TempDir, PathBuf) {
    assert_eq!(fs::metadata("/proc/self").unwrap().uid(), 0, "run this test as root");
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("payments-server");
    // Another process copies it: a program that this process has open for writing cannot be run, and a thread that starts a
    // child would pass the open file on.
    assert!(Command::new("cp").args([server_binary().as_ref(), &*program]).status().unwrap().success());
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    chown(&data, Some(SERVICE), Some(SERVICE)).unwrap();
    (directory, program)
}

fn as_service(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.uid(SERVICE).gid(SERVICE);
    command
}

fn as_root(program: &Path, arguments: &[&str], data: &Path) -> Output {
    Command::new(program).args(arguments).arg("--data-dir").arg(data).output().unwrap()
}

fn assert_all_are_the_services(directory: &Path) {
    for file in files_under(directory) {
        assert_eq!(fs::metadata(&file).unwrap().uid(), SERVICE, "{}", file.display());
    }
    let found = Command::new("find").arg(directory).args(["!", "-uid", &SERVICE.to_string()]).output().unwrap();
    assert_eq!(text_of(&found), "");
}

#[tokio::test]
async fn no_command_by_root_leaves_a_file_of_root_in_a_stopped_services_store() {
    let (directory, program) = place();
    let data = directory.path().join("data");
    let begun = as_root(&program, &["workspaces", "create", "--name", "First"], &data);
    assert!(begun.status.success(), "{}", text_of(&begun));
    assert_all_are_the_services(&data);
    let create = async |url: &str| {
        let request = reqwest::Client::new().post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY);
        assert_eq!(request.json(&payment_of(&json!(5))).send().await.unwrap().status(), 201);
    };
    let backup = data.join("a-backup");
    for command in [
        &["keys", "list"][..],
        &["workspaces", "create", "--name", "Second"],
        &["check"],
        &["export", "payments"],
        &["backup", backup.to_str().unwrap()],
        &["keys", "revoke", "key_unknown"],
    ] {
        let (mut service, url) = launch(as_service(&program), directory.path(), "127.0.0.1:0", &[]);
        create(&url).await;
        // Also on a running server, by its socket.
        let asked = as_root(&program, &["keys", "list"], &data);
        assert!(asked.status.success(), "{}", text_of(&asked));
        service.kill().unwrap();
        service.wait().unwrap();
        let done = as_root(&program, command, &data);
        assert_eq!(done.status.success(), command[1..] != ["revoke", "key_unknown"], "{}", text_of(&done));
        assert_all_are_the_services(&data);
    }
    // Also the server itself, started by root to investigate a problem.
    let (mut by_hand, url) = launch(Command::new(&program), directory.path(), "127.0.0.1:0", &[]);
    create(&url).await;
    by_hand.kill().unwrap();
    by_hand.wait().unwrap();
    assert_all_are_the_services(&data);

    let restored = directory.path().join("restored");
    fs::create_dir(&restored).unwrap();
    chown(&restored, Some(SERVICE), Some(SERVICE)).unwrap();
    let done = as_root(&program, &["restore", backup.to_str().unwrap()], &restored);
    assert!(done.status.success(), "{}", text_of(&done));
    assert_all_are_the_services(&restored);
}

#[tokio::test]
async fn a_store_with_another_users_file_is_refused_with_its_name_and_advice() {
    let (directory, program) = place();
    let data = directory.path().join("data");
    let (mut service, _) = launch(as_service(&program), directory.path(), "127.0.0.1:0", &[]);
    eventually("the list of files", async || data.join("journal.json").exists().then_some(())).await;
    service.kill().unwrap();
    service.wait().unwrap();
    for name in ["journal.json", "journal/00000000000000000001.journal", "sled/db", "lock", "open", "journal"] {
        let path = data.join(name);
        chown(&path, Some(0), Some(0)).unwrap();
        let said = try_launch(as_service(&program), directory.path(), "127.0.0.1:0", &[]).map(|_| ()).unwrap_err();
        let said = said.lines().last().unwrap();
        // sled's own files are in its directory.
        let named = if name == "sled/db" { data.join("sled") } else { path.clone() };
        assert!(said.contains(named.to_str().unwrap()), "{name}: {said}");
        assert!(said.contains("Permission denied") && said.contains("chown -R"), "{name}: {said}");
        chown(&path, Some(SERVICE), Some(SERVICE)).unwrap();
    }
    let (mut service, _) = launch(as_service(&program), directory.path(), "127.0.0.1:0", &[]);
    service.kill().unwrap();
    service.wait().unwrap();
}
