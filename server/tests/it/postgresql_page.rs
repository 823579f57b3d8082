//! The operators' page about PostgreSQL, followed from its first block to its last. It runs on a cluster with the page's
//! roles, and takes payments.
//!
//! Some things differ from an operator's machine. The cluster is the test's own, with its files in one folder. So its paths
//! and ports replace Debian's, and small programs replace `sudo`, `pg_createcluster` and `pg_ctlcluster`. The passwords are
//! the page's dots. Blocks that need more machines are not run; other tests cover them.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    engine::{inconsistencies, run_sql},
    nodes::Nodes,
    readme::blocks::{blocks, commands},
    server::{SANDBOX_KEY, payment_of, server_binary, text_of},
};

/// The text by which blocks that are not run are recognised, each with the reason.
const NOT_RUN: [(&str, &str); 3] = [
    ("scope: payments", "Patroni's settings need etcd and three nodes; `failover` promotes standbys without it"),
    ("10.0.0.1", "needs Patroni's nodes; `failover` has such a URL"),
    ("standby.example", "needs a standby; `database` reads one as a role that may only read"),
];
/// The moment on the page to which a restore returns.
const MOMENT: &str = "2026-11-22 21:57:43+00";
/// The programs `pg_createcluster`, `pg_ctlcluster` and `sudo` of this test. `$directory`, `$restored` and `$as_postgres` are
/// set before.
const PROGRAMS: [(&str, &str); 3] = [
    ("sudo", "[ \"$1\" = -u ] || exec \"$@\"\nshift 2\nPGUSER=postgres exec $as_postgres \"$@\""),
    ("pg_createcluster", "cd $directory && $as_postgres mkdir -m 700 restored && $as_postgres mkdir restored.d"),
    (
        "pg_ctlcluster",
        "cd $directory\nif [ $2 = restored ]; then cat restored.d/*.conf >>restored/postgresql.conf; port=\"-p $restored\"; fi\n\
         exec $as_postgres pg_ctl -D $2 -w -l $2.log -o \"${port:-}\" $3 >/dev/null",
    ),
];

struct Operator {
    nodes: Nodes,
    directory: TempDir,
    port: u16,
    restored: u16,
    /// The time that replaces the page's moment.
    moment: Option<String>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Operator {
    fn new() -> Self {
        let (mut nodes, directory) = (Nodes::new(""), tempfile::tempdir().unwrap());
        let (port, restored) = (free_port(), free_port());
        let sockets = nodes.directory.display().to_string();
        nodes.run("initdb -D main --auth-local=trust --auth-host=scram-sha-256 -U postgres --no-sync");
        nodes.run(&format!(
            "printf \"listen_addresses='localhost'\\nport={port}\\nunix_socket_directories='{sockets}'\\n\" >>main/postgresql.conf"
        ));
        nodes.run("pg_ctl -D main -w -l main.log start && mkdir -p backup/wal");
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let as_postgres = if is_root { "setpriv --reuid=postgres --regid=postgres --clear-groups" } else { "" };
        for (name, text) in PROGRAMS {
            let program = directory.path().join(name);
            let set = format!("directory={sockets}; restored={restored}; as_postgres='{as_postgres}'");
            fs::write(&program, format!("#!/bin/sh\nset -eu\n{set}\n{text}\n")).unwrap();
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(server_binary(), directory.path().join("payments-server")).unwrap();
        for file in ["owner.pw", "serve.pw", "read.pw"] {
            fs::write(directory.path().join(file), "...\n").unwrap();
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { nodes, directory, port, restored, moment: None }
    }

    /// The URL of a database as its superuser.
    fn url(&self, database: &str) -> String {
        self.nodes.url_at(self.port, database)
    }

    /// A shell with a script of the page, adapted to this machine.
    fn shell(&self, script: &str) -> Command {
        let here = self.nodes.directory.display().to_string();
        let mut text = script.to_owned();
        for (page, ours) in [
            ("postgres:///payments", format!("'postgres://reader@/payments?host={here}&port={}'", self.port)),
            ("@localhost/", format!("@localhost:{}/", self.port)),
            ("@localhost:5450/", format!("@localhost:{}/", self.restored)),
            ("/srv/backup", format!("{here}/backup")),
            ("/var/lib/postgresql/15/", format!("{here}/")),
            ("/etc/postgresql/15/restored/conf.d", format!("{here}/restored.d")),
            ("/usr/lib/postgresql/15/bin/", String::new()),
            (MOMENT, self.moment.clone().unwrap_or_default()),
        ] {
            text = text.replace(page, &ours);
        }
        let bin = "PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)";
        let path = format!("{}:{}", self.directory.path().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("set -euo pipefail\n{bin}\n{text}")]).current_dir(&self.directory);
        shell.env("PATH", path).env("PGHOST", &here).env("PGPORT", self.port.to_string());
        shell.env("PGUSER", "reader").env("USER", "reader").env("PAYMENTS_LISTEN", "127.0.0.1:0");
        shell
    }

    /// Runs a script to its end. Returns what it printed.
    fn run(&self, script: &str) -> String {
        let output = self.shell(script).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text_of(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a server with a command of the page.
    fn serve(&self, command: &str) -> Serving {
        let exec = command.replacen("payments-server", "exec payments-server", 1);
        let log = self.directory.path().join("server.log");
        let mut shell = self.shell(&exec);
        let mut process = shell.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ").map(str::to_owned);
        Serving { process, url: url.unwrap_or_else(|| panic!("{command}: {}", fs::read_to_string(log).unwrap())) }
    }
}

/// A running server.
struct Serving {
    process: Child,
    url: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

impl Serving {
    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = reqwest::Client::new().request(method, format!("{}{path}", self.url)).bearer_auth(SANDBOX_KEY);
        let answer = request.json(body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// Creates a payment and pays it, with an endpoint for its events.
    async fn take_a_payment(&self) {
        let endpoint = json!({"url": "http://127.0.0.1:9/", "events": "*"});
        self.call(Method::POST, "/api/v1/webhooks", &endpoint).await;
        let payment = self.call(Method::POST, "/api/v1/payments", &payment_of(&json!(100))).await;
        let id = payment["id"].as_str().unwrap();
        let paid = self.call(Method::POST, &format!("/api/v1/checkout/{id}/simulate"), &json!({})).await;
        assert_eq!(paid["status"], "paid");
        self.call(Method::GET, "/readyz", &json!({})).await;
    }
}

/// Whether a role may do something to a table.
fn may(url: &str, role: &str, table: &str, privilege: &str) -> bool {
    run_sql(url, &format!("SELECT has_table_privilege('{role}', 'payments.{table}', '{privilege}')")) == "t"
}

#[tokio::test(flavor = "multi_thread")]
async fn every_block_of_the_page_on_postgresql_works_and_its_serving_role_takes_payments() {
    let mut operator = Operator::new();
    let (mut ran, mut left_out) = (0, Vec::new());
    for (language, block) in blocks("server/docs/postgresql.md") {
        if let Some((marker, _)) = NOT_RUN.iter().find(|(marker, _)| block.contains(marker)) {
            left_out.push(*marker);
            continue;
        }
        match language.as_str() {
            "sh" if block.contains("pg_createcluster") => {
                // Create a payment to restore, and one after that moment.
                let serving = operator.serve(SERVE);
                let superuser = operator.url("payments");
                operator.moment = Some(run_sql(&superuser, "SELECT now()"));
                thread::sleep(Duration::from_millis(1100));
                serving.take_a_payment().await;
                drop(serving);
                run_sql(&superuser, "SELECT pg_switch_wal()");
                let restored = operator.run(&block);
                assert!(restored.contains("1 of them payments: no violations"), "{restored}");
            }
            "sh" if block.contains("payments-server serve") => {
                for command in commands(&block) {
                    match command.starts_with("payments-server serve") {
                        // A public server accepts no endpoint on this machine. `sandbox_store` makes payments there.
                        true if command.contains("--sandbox-dir") => drop(operator.serve(&command)),
                        true => operator.serve(&command).take_a_payment().await,
                        false => drop(operator.run(&command)),
                    }
                }
            }
            "sh" => drop(operator.run(&block)),
            "sql" => {
                let database = if block.contains("CREATE DATABASE") { "postgres" } else { "payments" };
                let user = if block.contains("GRANT USAGE") { "payments_owner@" } else { "postgres@" };
                if database == "postgres" {
                    // The trial on the page ends here.
                    run_sql(&operator.url("postgres"), "DROP DATABASE payments");
                }
                // psql does not run a file of statements in one transaction.
                let file = operator.directory.path().join("block.sql");
                fs::write(&file, &block).unwrap();
                let url = operator.url(database).replace("postgres@", user);
                operator.run(&format!("psql -XAtq -v ON_ERROR_STOP=1 -f {} '{url}'", file.display()));
                if block.contains("synchronous_standby_names") {
                    // The restored cluster has no standbys.
                    run_sql(&url, "ALTER SYSTEM RESET synchronous_standby_names");
                    run_sql(&url, "SELECT pg_reload_conf()");
                }
            }
            other => panic!("a block of {other:?}, which nobody runs: {block}"),
        }
        ran += 1;
    }
    assert_eq!(left_out.len(), NOT_RUN.len(), "{left_out:?}");
    assert!(ran > 9, "{ran} blocks");

    let payments = operator.url("payments");
    assert_eq!(inconsistencies(&payments), "");
    let doctor = operator.run(&SERVE.replace(" serve ", " doctor "));
    assert!(doctor.contains("its role has the privileges that a server needs"), "{doctor}");
    for (role, table, privilege, may_do) in [
        ("payments_serve", "batch", "UPDATE", false),
        ("payments_serve", "cell", "DELETE", false),
        ("payments_read", "record", "SELECT", true),
        ("payments_read", "record", "UPDATE", false),
        ("payments_report", "record", "SELECT", false),
    ] {
        assert_eq!(may(&payments, role, table, privilege), may_do, "{role} {table} {privilege}");
    }
    let unread = "SELECT string_agg(relname, ' ') FROM pg_class WHERE relkind = 'v' AND
        relnamespace = 'payments'::regnamespace AND NOT has_table_privilege('payments_report', oid, 'SELECT')";
    assert_eq!(run_sql(&payments, unread), "", "views that the role for reports cannot read");
}

const SERVE: &str = "payments-server serve --database-url postgres://payments_serve@localhost/payments \
                     --database-password-file serve.pw";
