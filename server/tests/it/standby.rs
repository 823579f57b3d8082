//! A PostgreSQL primary with one synchronous standby.

use std::path::PathBuf;

use crate::nodes::Nodes;

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

    /// Kills a server at once, as a crash does.
    pub(crate) fn crash_server(&mut self, name: &str) {
        self.0.run(&format!("pg_ctl -D {name} -m immediate -w stop"));
    }

    /// Makes the standby the primary. Its commits wait for nobody.
    pub(crate) fn promote(&mut self) {
        self.0.run("pg_ctl -D two -w promote");
    }

    /// The URL of the database on whichever server accepts writes.
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
