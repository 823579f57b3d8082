//! The engine that a server of a test runs on.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::cluster::Cluster;

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The embedded store, in the server's own directory.
    Directory,
    /// A database of its own in the shared cluster.
    Postgres,
}

impl Engine {
    /// The arguments of the server that choose the engine.
    pub(crate) fn arguments(self) -> Vec<String> {
        match self {
            Self::Directory => Vec::new(),
            Self::Postgres => vec!["--database-url".into(), Cluster::shared().new_database()],
        }
    }
}

impl Cluster {
    /// The Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        PathBuf::from(self.url("").split_once("host=").unwrap().1).join(".s.PGSQL.5432")
    }

    /// Makes an empty database and returns its URL.
    pub(crate) fn new_database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        run_sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }
}

/// Runs SQL and returns its rows, a line each, the columns separated by `|`.
pub(crate) fn run_sql(url: &str, sql: &str) -> String {
    let output = Command::new("psql").args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url]).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The sums, postings and deliveries that do not follow from the payments and the rows that they count, a line each. All of
/// it is one statement, so it may run beside servers.
pub(crate) fn inconsistencies(url: &str) -> String {
    run_sql(url, include_str!("inconsistencies.sql"))
}
