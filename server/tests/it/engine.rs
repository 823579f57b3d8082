//! The storage engine of a test's server.

use std::process::Command;

use test_support::cluster::Cluster;
pub(crate) use test_support::cluster::run_sql;

use crate::server::{server_binary, text_of};

/// A storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The embedded store, in the server's own directory.
    Directory,
    /// Its own database in the shared cluster.
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

/// Ends all claims on work, as if their servers had stopped long ago.
pub(crate) const END_LEASES: &str = "DELETE FROM payments.entry WHERE substring(key FROM 4 FOR 7) = ':lease/'";

/// Moves an entry of each workspace to a key that nobody reads.
pub(crate) const DAMAGE: &str =
    "UPDATE payments.entry SET key = key || 'x'::bytea WHERE substring(key FROM 4 FOR 14) = ':workspace-of/'";
/// Moves the entries back.
pub(crate) const REPAIR: &str = "UPDATE payments.entry SET key = substring(key FROM 1 FOR length(key) - 1) WHERE substring(key FROM 4 FOR 14) = ':workspace-of/'";

/// The faults of a database, one per line: the findings of `check`, and second deliveries of one event to one endpoint that
/// nobody requested. It may run beside servers.
pub(crate) fn inconsistencies(url: &str) -> String {
    let check = Command::new(server_binary()).args(["check", "--database-url", url]).output().unwrap();
    assert!(matches!(check.status.code(), Some(0 | 1)), "{}", text_of(&check));
    let twice = "SELECT min(id) || ' is one of ' || count(*) || ' deliveries of one event to one endpoint' \
                 FROM payments.delivery WHERE event IS NOT NULL AND resend_of IS NULL GROUP BY endpoint, event \
                 HAVING count(*) > 1";
    let found = if check.status.success() { Vec::new() } else { check.stdout };
    String::from_utf8(found).unwrap() + &run_sql(url, twice)
}
