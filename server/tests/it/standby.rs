//! A PostgreSQL primary with one synchronous standby.

use std::{path::PathBuf, process::Command};

use reqwest::Method;
use serde_json::json;

use crate::{
    engine::run_sql,
    nodes::Nodes,
    server::{Server, eventually, payment_of, server_binary, text_of},
};

/// Two servers: `one` starts as the primary, and `two` as its standby. Each commit waits for `two`.
pub(crate) struct Pair(Nodes);

impl Pair {
    /// Starts both, with the empty database `shop`.
    pub(crate) fn start() -> Self {
        let mut pair = Self(Nodes::new(""));
        let sockets = pair.0.directory.display().to_string();
        pair.0.run("initdb -D one -A trust -U postgres --no-sync");
        pair.0.run(&format!(
            "printf \"listen_addresses=''\\nunix_socket_directories='{sockets}'\\nmax_connections=50\\n\" \
             >>one/postgresql.conf"
        ));
        pair.start_server("one");
        pair.0.run(&format!("createdb -h {sockets} -U postgres shop"));
        pair.0.run(&format!("pg_basebackup -h {sockets} -U postgres -c fast -R -D two"));
        pair.0.run("printf \"port=5433\\ncluster_name='two'\\n\" >>two/postgresql.conf");
        pair.start_server("two");
        pair.0.run("printf \"synchronous_standby_names='two'\\n\" >>one/postgresql.conf");
        pair.0.run("pg_ctl -D one reload");
        pair
    }

    pub(crate) fn start_server(&mut self, name: &str) {
        self.0.run(&format!("pg_ctl -D {name} -w -l {name}.log start"));
    }

    /// Kills a server immediately, as a crash does.
    pub(crate) fn crash_server(&mut self, name: &str) {
        self.0.run(&format!("pg_ctl -D {name} -m immediate -w stop"));
    }

    /// Promotes the standby. Its commits wait for nobody.
    pub(crate) fn promote(&mut self) {
        self.0.run("pg_ctl -D two -w promote");
    }

    /// The URL of the database. It leads to the server that accepts writes.
    pub(crate) fn url(&self) -> String {
        self.0.url(&[5432, 5433], "shop")
    }

    /// The Unix socket of a server.
    pub(crate) fn socket_of(&self, name: &str) -> PathBuf {
        self.0.directory.join(format!(".s.PGSQL.{}", port(name)))
    }

    /// The URL of the database on one server.
    pub(crate) fn url_of(&self, name: &str) -> String {
        self.0.url_at(port(name), "shop")
    }
}

fn port(name: &str) -> u16 {
    if name == "one" { 5432 } else { 5433 }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_export_read_a_standby_as_its_primary() {
    let pair = Pair::start();
    let mut server = Server::start_with(&["--database-url", &pair.url()]);
    let payment = server.create(&payment_of(&json!(10))).await;
    let path = format!("/api/v1/checkout/{}/simulate", payment["id"].as_str().unwrap());
    let paid = server.keyless(Method::POST, &path).json(&json!({"action": "success"})).send().await.unwrap();
    assert_eq!(paid.status(), 200);
    assert!(server.terminate().success());

    let last = run_sql(&pair.url_of("one"), "SELECT pg_current_wal_lsn()");
    let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{last}'");
    eventually("the standby to replay all", async || (run_sql(&pair.url_of("two"), &replayed) == "t").then_some(()))
        .await;
    let run = |name: &str, arguments: &[&str]| {
        let output = Command::new(server_binary())
            .args(arguments)
            .args(["--database-url", &pair.url_of(name)])
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?} on {name}: {}", String::from_utf8_lossy(&output.stderr));
        text_of(&output)
    };
    for arguments in [&["check"][..], &["export", "payments"], &["export", "postings"], &["export", "deliveries"]] {
        assert_eq!(run("two", arguments), run("one", arguments), "{arguments:?}");
    }
}
