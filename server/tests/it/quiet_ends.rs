//! Commands whose output nobody reads any more, new keys that could not be printed, and a shutdown during half a
//! request.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{SANDBOX_KEY, Server, payment_of, server_binary};

/// Runs a shell command in which `$P` is the program. Returns whether it succeeded, its output and its errors.
fn shell(server: &Server, line: &str) -> (bool, String, String) {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -o pipefail; {line}")]).env("P", server_binary());
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
        "reviews list".to_owned(),
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
        // The reader is gone before the command begins.
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
    // A person who finds a key can revoke it without knowing its id.
    let revoked = server.run_for_line(&["keys", "revoke", key.trim()]);
    assert!(revoked.starts_with("key_") && !revoked.contains("sk_test_"), "{revoked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_head_does_not_delay_a_shutdown_but_a_request_does() {
    let mut server = Server::start();
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: ").unwrap();
    let mut used = TcpStream::connect(server.address()).unwrap();
    used.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHo").unwrap();
    let _ = used.read(&mut [0; 1024]).unwrap();
    let body = payment_of(&json!(5)).to_string();
    let (address, length) = (server.address().to_owned(), body.len());
    let mut begun = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /api/v1/payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Authorization: Bearer {SANDBOX_KEY}\r\n\r\n"
    );
    begun.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let sent = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        begun.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        begun.read_to_string(&mut answer).unwrap();
        answer
    });
    let stopping = Instant::now();
    assert!(server.terminate().success());
    let took = stopping.elapsed();
    assert!(sent.join().unwrap().starts_with("HTTP/1.1 201"), "a request in flight ends");
    assert!((Duration::from_secs(2)..Duration::from_secs(7)).contains(&took), "{took:?}");
    drop((half, used));
    server.restart();
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: ").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let stopping = Instant::now();
    assert!(server.terminate().success());
    assert!(stopping.elapsed() < Duration::from_secs(5), "{:?}", stopping.elapsed());
}
