//! Commands whose reader goes, and keys that nobody saw.

use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{BINARY, SANDBOX_KEY, Server};

/// Runs a command of a shell with `$P` for the program. Returns its output and its errors.
fn shell(server: &Server, line: &str) -> (bool, String, String) {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -o pipefail; {line}")]).env("P", BINARY);
    command.env("PAYMENTS_DATA_DIR", server.data()).env("PAYMENTS_API_URL", &server.url);
    let output = command.env("PAYMENTS_API_KEY", SANDBOX_KEY).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_quietly_when_its_reader_does() {
    let server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Shop"]);
    let file = server.directory.path().join("other");
    for command in [
        "workspaces list".to_owned(),
        "workspaces list --json".to_owned(),
        "workspaces create --name Other".to_owned(),
        "apps list".to_owned(),
        format!("apps create --workspace {workspace} --name App"),
        "keys list".to_owned(),
        "refunds list".to_owned(),
        "reconcile list".to_owned(),
        "check".to_owned(),
        "check --json".to_owned(),
        "doctor --listen 127.0.0.1:0".to_owned(),
        "export payments --format csv".to_owned(),
        "completions bash".to_owned(),
        "man".to_owned(),
        "trigger payment.completed".to_owned(),
        "reset --yes".to_owned(),
        format!("health --listen {}", server.address()),
        format!("backup {}", file.display()),
    ] {
        // The reader has gone before the command begins.
        let (is_success, _, said) = shell(&server, &format!("(sleep 0.1; exec $P {command}) | true"));
        assert!(is_success && !said.to_lowercase().contains("pipe"), "{command}: {said}");
    }
    let listening = "(sleep 0.1; timeout 20 $P listen) | true; echo ended";
    let (_, ended, said) = shell(&server, listening);
    assert!(ended == "ended\n" && said.is_empty(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_nobody_saw_is_revoked() {
    let mut server = Server::start();
    let workspace = server.run_for_line(&["workspaces", "create", "--name", "Shop"]);
    let create = format!("$P keys create --workspace {workspace} --environment test");
    let keys = |server: &Server| -> Vec<Value> {
        let listed: Value = serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap();
        let all = listed["keys"].as_array().unwrap().iter();
        all.filter(|key| key["workspace"] == json!(workspace)).cloned().collect()
    };
    let mut made = 0;
    for is_running in [true, false] {
        if !is_running {
            assert!(server.terminate().success());
        }
        for lost in [
            format!("{create} >/dev/full"),
            format!("{create} --json >/dev/full"),
            format!("(sleep 0.1; exec {create}) | true"),
        ] {
            let (is_success, _, said) = shell(&server, &lost);
            assert!(!is_success && said.contains("it is revoked; create another"), "{lost}: {said}");
            made += 1;
        }
        for nowhere in [format!("{create} >&-"), format!("{create} >/dev/null")] {
            let (is_success, _, said) = shell(&server, &nowhere);
            assert!(!is_success && said.contains("none was created"), "{nowhere}: {said}");
        }
        let listed = keys(&server);
        assert_eq!(listed.len(), made);
        assert!(listed.iter().all(|key| key["revokedAt"].is_string()), "{listed:?}");
    }
    let (is_success, key, said) = shell(&server, &create);
    assert!(is_success && key.starts_with("sk_test_"), "{said}");
    server.restart();
    let account = server.keyless(Method::GET, "/api/v1/account").bearer_auth(key.trim()).send().await.unwrap();
    assert_eq!(account.status(), 200);
    // Whoever finds a key somewhere revokes it without its id.
    let revoked = server.run_for_line(&["keys", "revoke", key.trim()]);
    assert!(revoked.starts_with("key_") && !revoked.contains("sk_test_"), "{revoked}");
}
