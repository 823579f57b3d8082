//! `check` and `export` of a database.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Output, Stdio},
};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::cluster::{Cluster, client_of};

use crate::{
    engine::{DAMAGE, run_sql},
    server::{SANDBOX_KEY, Server, eventually, payment_of, server_binary, text_of},
};

/// A server on its own database, which only the test's process uses.
struct OnDatabase {
    process: Child,
    url: String,
    database: String,
    client: tokio_postgres::Client,
}

impl OnDatabase {
    async fn start(name: &str) -> Self {
        let cluster = Cluster::shared();
        client_of(&cluster.url("postgres")).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let database = cluster.url(name);
        let mut process = Command::new(server_binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--database-url", &database])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ").unwrap().to_owned();
        let client = client_of(&database).await;
        Self { process, url, database, client }
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> String {
        let request = reqwest::Client::new().request(method, format!("{}/api/v1{path}", self.url));
        let answer = request.bearer_auth(SANDBOX_KEY).json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.text().await.unwrap()
    }

    /// Creates a payment and pays it. Returns its id.
    async fn paid(&self) -> String {
        let payment = self.call(Method::POST, "/payments", &payment_of(&json!(100.5))).await;
        let id = serde_json::from_str::<Value>(&payment).unwrap()["id"].as_str().unwrap().to_owned();
        self.call(Method::POST, &format!("/checkout/{id}/simulate"), &json!({"action": "success"})).await;
        id
    }
}

impl Drop for OnDatabase {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn try_run(database: &str, arguments: &[&str]) -> Output {
    Command::new(server_binary()).args(arguments).args(["--database-url", database]).output().unwrap()
}

fn run(database: &str, arguments: &[&str]) -> String {
    let output = try_run(database, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn check_and_export_read_a_database_while_its_server_runs() {
    let server = OnDatabase::start("read_while_running").await;
    let ids = [server.paid().await, server.paid().await];
    let checked = run(&server.database, &["check"]);
    assert!(checked.ends_with(" records, 2 of them payments: no violations\n"), "{checked}");
    let report: Value = serde_json::from_str(&run(&server.database, &["check", "--json"])).unwrap();
    assert_eq!((report["payments"].as_u64(), &report["findings"]), (Some(2), &json!([])));

    let exported = run(&server.database, &["export", "payments"]);
    assert_eq!(exported.lines().count(), 2);
    for (line, id) in exported.lines().zip(&ids) {
        assert_eq!(line, server.call(Method::GET, &format!("/payments/{id}"), &json!({})).await);
    }
    let csv = run(&server.database, &["export", "postings", "--format", "csv"]);
    let rows: Vec<_> = csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
    assert_eq!((rows.len(), &rows[0][4], &rows[0][6]), (6, "gateway_clearing", "-10050"));
    assert_eq!(rows.iter().map(|row| row[6].parse::<i64>().unwrap()).sum::<i64>(), 0);
    assert_eq!(run(&server.database, &["export", "deliveries"]), "");

    server.client.batch_execute(DAMAGE).await.unwrap();
    let damaged = try_run(&server.database, &["check"]);
    let (stdout, stderr) = (String::from_utf8(damaged.stdout).unwrap(), String::from_utf8(damaged.stderr).unwrap());
    assert_eq!(damaged.status.code(), Some(1));
    assert!(stdout.contains("/workspace/ws_") && stdout.contains(": has no entry "), "{stdout}");
    assert!(stderr.contains(" of ") && stderr.contains("keep a copy of the database"), "{stderr}");
}

#[tokio::test]
async fn a_role_that_may_only_read_can_check_and_export() {
    let server = OnDatabase::start("only_read").await;
    server.paid().await;
    // The role's connections look like those to a standby.
    let role = "CREATE ROLE auditor LOGIN; ALTER ROLE auditor SET default_transaction_read_only = on; \
                GRANT USAGE ON SCHEMA payments TO auditor; GRANT SELECT ON ALL TABLES IN SCHEMA payments TO auditor";
    server.client.batch_execute(role).await.unwrap();
    let auditor = server.database.replace("postgres@", "auditor@");
    assert!(run(&auditor, &["check"]).ends_with("1 of them payments: no violations\n"));
    assert_eq!(run(&auditor, &["export", "postings"]).lines().count(), 3);
    let replica = format!("{auditor}&target_session_attrs=read-only");
    assert_eq!(run(&replica, &["export", "payments"]).lines().count(), 1);
    let refused = try_run(&auditor, &["workspaces", "create", "--name", "Shop"]);
    assert!(!refused.status.success() && text_of(&refused).contains("the database cannot be reached"));
}

#[tokio::test]
async fn only_creating_a_workspace_begins_a_store_in_a_database() {
    let cluster = Cluster::shared();
    let client = client_of(&cluster.url("postgres")).await;
    client.batch_execute("CREATE DATABASE without_a_store").await.unwrap();
    let database = cluster.url("without_a_store");
    for command in [
        &["check"][..],
        &["export", "payments"],
        &["keys", "list"],
        &["apps", "create", "--workspace", "ws_1", "--name", "Shop"],
        &["refunds", "list"],
        &["disputes", "list"],
        &["settlements", "list", "theirs"],
        &["payouts", "list"],
        &["reviews", "list"],
        &["backup", "/tmp/never-made"],
    ] {
        let refused = try_run(&database, command);
        let said = text_of(&refused);
        assert!(!refused.status.success() && said.contains("; name the right one with --database-url"), "{said}");
    }
    let tables = async || {
        let query = "SELECT FROM pg_namespace WHERE nspname = 'payments'";
        client_of(&database).await.query(query, &[]).await.unwrap().len()
    };
    assert_eq!(tables().await, 0);
    let begun = try_run(&database, &["workspaces", "create", "--name", "Shop"]);
    let said = text_of(&begun);
    assert!(begun.status.success() && said.contains("beginning a new store in the database without_a_store"), "{said}");
    assert_eq!(tables().await, 1);
    let second = try_run(&database, &["workspaces", "create", "--name", "Shop"]);
    assert!(second.status.success() && second.stderr.is_empty(), "{}", text_of(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_stay_readable_while_the_database_is_down() {
    let (cluster, database) = (Cluster::shared(), Cluster::shared().new_database());
    let name = database.split_once("@/").unwrap().1.split_once('?').unwrap().0;
    let sql = |sql: &str| drop(run_sql(&cluster.url("postgres"), sql));
    let server = Server::start_with(&["--database-url", &database]);
    let create = server.request(Method::POST, "/payments").json(&payment_of(&json!(100)));
    assert_eq!(create.send().await.unwrap().status(), 201);
    let readable = server.metrics().await;
    sql(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"));
    sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"));
    let without = server.metrics().await;
    sql(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
    for (text, is_readable) in [(&readable, 1), (&without, 0)] {
        assert!(text.contains(&format!("payments_store_readable {is_readable}\n")), "{text}");
        assert!(text.contains(r#"status="pending"} 1"#), "{text}");
    }
    eventually("the database to be read again", async || {
        server.metrics().await.contains("payments_store_readable 1\n").then_some(())
    })
    .await;
}
