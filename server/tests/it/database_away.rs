//! The database is down when a server starts. The server waits if time alone can repair that, and exits if a person must.

use std::{
    fs,
    net::TcpListener,
    os::unix::net::UnixListener,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use reqwest::{Method, StatusCode};
use serde_json::json;
use tempfile::TempDir;
use test_support::cluster::Cluster;

use crate::{
    engine::{inconsistencies, run_sql},
    nodes::Nodes,
    server::{Server, eventually, payment_of, server_binary, text_of},
};

/// The answer to each probe and to a request.
async fn statuses(server: &Server) -> [StatusCode; 3] {
    let probe = async |path| server.keyless(Method::GET, path).send().await.unwrap().status();
    let create = server.request(Method::POST, "/payments").json(&payment_of(&json!(100))).send().await.unwrap();
    if create.status() == StatusCode::SERVICE_UNAVAILABLE {
        assert_eq!(create.headers()["retry-after"], "1");
    }
    [probe("/healthz").await, probe("/readyz").await, create.status()]
}

const AWAY: [StatusCode; 3] = [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE];
const THERE: [StatusCode; 3] = [StatusCode::OK, StatusCode::OK, StatusCode::CREATED];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_waits_for_its_database_and_says_so_then_serves() {
    let mut nodes = Nodes::new("");
    nodes.run("initdb -D one -A trust -U postgres --no-sync");
    let url = nodes.url_at(5432, "postgres");
    let server = Server::start_with(&["--database-url", &url]);
    assert_eq!(statuses(&server).await, AWAY);
    let said = || server.log().matches("waiting for the database").count();
    eventually("the server to say again that it waits", async || (said() > 1).then_some(())).await;
    assert_eq!(statuses(&server).await, AWAY);
    assert!(said() <= 4, "{}", server.log());
    let directory = nodes.directory.display().to_string();
    nodes.run(&format!("pg_ctl -D one -w -l one.log -o \"-k {directory} -c listen_addresses=''\" start"));
    eventually("the server to be ready", async || (statuses(&server).await == THERE).then_some(())).await;
    server.assert_logs("the database is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_public_sandbox_also_waits_for_the_database_but_never_writes_a_payment_to_it() {
    let mut nodes = Nodes::new("");
    nodes.run("initdb -D one -A trust -U postgres --no-sync");
    let start =
        format!("pg_ctl -D one -w -l one.log -o \"-k {} -c listen_addresses=''\" start", nodes.directory.display());
    nodes.run(&start);
    let url = nodes.url_at(5432, "postgres");
    let directory = tempfile::tempdir().unwrap();
    let public = ["--base-url", "https://pay.example", "--sandbox", "--sandbox-dir"];
    let of_sandbox = [&public[..], &[directory.path().to_str().unwrap(), "--database-url", &url]].concat();
    // The database has the sandbox's key when the second server starts.
    let mut first = Server::start_with(&of_sandbox);
    assert_eq!(statuses(&first).await, THERE);
    assert!(first.terminate().success());
    nodes.run("pg_ctl -D one -m fast -w stop");
    let server = Server::start_with(&of_sandbox);
    assert_eq!(statuses(&server).await, AWAY);
    nodes.run(&start);
    eventually("the server to be ready", async || (statuses(&server).await == THERE).then_some(())).await;
    assert_eq!(run_sql(&url, "SELECT count(*) FROM payments.payment"), "0");
    assert!(server.get("/payments").await["total"].as_u64() >= Some(2), "the first server's payment too");
    drop((first, server));
}

/// A host that accepts connections but never answers.
fn silent() -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
    thread::spawn(move || {
        let mut held = Vec::new();
        loop {
            held.push(listener.accept());
        }
    });
    let url = format!("postgres://postgres@/shop?host={}", directory.path().display());
    (directory, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_server_stops_at_once_and_a_command_waits_only_for_seconds() {
    let nowhere = tempfile::tempdir().unwrap();
    let (_directory, silent) = silent();
    for (url, says) in [
        (format!("postgres://postgres@/shop?host={}", nowhere.path().display()), "No such file or directory"),
        (silent, "it accepts connections and does not answer"),
    ] {
        let mut server = Server::start_with(&["--database-url", &url]);
        assert_eq!(statuses(&server).await, AWAY);
        eventually("the cause in the log", async || server.log().contains(says).then_some(())).await;
        for command in [&["keys", "list"][..], &["check"], &["doctor"]] {
            let begun = Instant::now();
            let output = server.try_run(command);
            let said = text_of(&output);
            assert!(!output.status.success() && said.contains(says), "{command:?}: {said}");
            assert!(begun.elapsed() < Duration::from_secs(12), "{command:?} took {:?}", begun.elapsed());
        }
        let begun = Instant::now();
        assert!(server.terminate().success(), "{}", server.log());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        server.has_no_database_to_check();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_before_the_primary_in_the_url_delays_nothing() {
    let (directory, _) = silent();
    let database = Cluster::shared().new_database();
    let (name, there) = database.split_once("@/").unwrap().1.split_once("?host=").unwrap();
    let hosts = [directory.path().to_str().unwrap(), there].map(|path| path.replace('/', "%2F")).join(",");
    let url = format!("postgres://postgres@{hosts}/{name}");
    // First run a command with a time limit, because a server that waits for the silent host never says that it listens.
    let create = ["20", server_binary(), "workspaces", "create", "--name", "Shop", "--database-url", &url];
    let created = Command::new("timeout").args(create).output().unwrap();
    assert!(created.status.success(), "{}", text_of(&created));
    let begun = Instant::now();
    let mut server = Server::start_with(&["--database-url", &url]);
    assert_eq!(statuses(&server).await, THERE);
    assert!(server.run(&["keys", "list"]).contains(" test "));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.has_no_database_to_check();
    assert_eq!(inconsistencies(&database), "");
}

fn serve(url: &str) -> (Output, Duration) {
    let begun = Instant::now();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", url];
    (Command::new(server_binary()).args(serve).output().unwrap(), begun.elapsed())
}

#[test]
fn a_server_exits_at_once_for_faults_that_only_a_person_can_repair() {
    let directory = tempfile::tempdir().unwrap();
    Command::new("chmod").arg("755").arg(directory.path()).status().unwrap();
    let rules = directory.path().join("pg_hba.conf");
    fs::write(&rules, "local all postgres trust\nlocal all all scram-sha-256\n").unwrap();
    let cluster = Cluster::start(&[&format!("hba_file={}", rules.display())]);
    let sql = |sql: &str| run_sql(&cluster.url("postgres"), sql);
    sql("CREATE ROLE clerk LOGIN PASSWORD 'right'");
    let database = cluster.new_database();
    assert!(
        Command::new(server_binary())
            .args(["workspaces", "create", "--name", "Shop", "--database-url", &database])
            .status()
            .unwrap()
            .success()
    );
    let file = directory.path().join("password");
    fs::write(&file, "wrong").unwrap();
    let as_clerk = database.replace("postgres@", "clerk@");
    let wrong = Command::new(server_binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--database-url", &as_clerk, "--database-password-file"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(!wrong.status.success() && text_of(&wrong).contains("(28P01)"), "{}", text_of(&wrong));

    run_sql(&database, "UPDATE payments.schema_version SET version = version + 1");
    for (url, says) in [
        (cluster.url("nowhere"), "database \"nowhere\" does not exist (3D000)"),
        (format!("{database}&sslmode=require"), "server does not support TLS"),
        (database.clone(), "use the version that made it"),
    ] {
        let (output, took) = serve(&url);
        let said = text_of(&output);
        assert!(output.status.code() == Some(1) && said.contains(says), "{url}: {said}");
        assert!(took < Duration::from_secs(3), "{url}: {took:?}");
    }
}

#[test]
fn a_server_exits_at_once_if_it_does_not_trust_the_databases_certificate() {
    let mut nodes = Nodes::new("");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = nodes.directory.display().to_string();
    nodes.run("initdb -D one -A trust -U postgres --no-sync");
    nodes.run("openssl req -x509 -nodes -days 1 -subj /CN=localhost -keyout one/server.key -out one/server.crt");
    nodes.run(&format!(
        "pg_ctl -D one -w -l one.log -o \"-k {directory} -p {port} -c listen_addresses=localhost -c ssl=on\" start"
    ));
    let (output, took) = serve(&format!("postgres://postgres@localhost:{port}/postgres"));
    let said = text_of(&output);
    assert!(output.status.code() == Some(1) && said.contains("invalid peer certificate"), "{said}");
    assert!(took < Duration::from_secs(3), "{took:?}");
}
