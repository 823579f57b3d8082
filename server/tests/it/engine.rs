//! The engine that a server of a test runs on.

use std::path::PathBuf;

use crate::cluster::Cluster;
pub(crate) use crate::cluster::run_sql;

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
}

/// The sums, postings and deliveries that do not follow from the payments and the rows that they count, a line each. All of
/// it is one statement, so it may run beside servers.
pub(crate) fn inconsistencies(url: &str) -> String {
    run_sql(url, include_str!("inconsistencies.sql"))
}
