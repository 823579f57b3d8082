//! A PostgreSQL primary with two standbys. Each commit waits for one of them.

use std::{
    fs,
    os::unix::net::UnixListener,
    thread,
    time::{Duration, Instant},
};

use crate::{engine::run_sql, nodes::Nodes};

const NODES: [&str; 3] = ["one", "two", "three"];

/// Shell functions that start and kill a server.
///
/// The servers are children of the shell, so that the shell can wait for a killed one. Without that wait, the process number
/// of the dead child would still count as a running server's.
const FUNCTIONS: &str = r#"
# start NODE PORT: while processes of a killed server still end, a new one does not start.
start() {
    tries=0
    while [ $tries -lt 200 ]; do
        postgres -D $1 -k "$directory" -p $2 -c cluster_name=$1 >>$1.log 2>&1 </dev/null &
        while kill -0 $!; do
            if pg_isready -q -h "$directory" -p $2; then return 0; fi
            sleep 0.02
        done
        sleep 0.05
        tries=$((tries + 1))
    done
    tail -n 5 $1.log
    return 1
}

kill_postmaster() {
    postmaster=$(head -n 1 $1/postmaster.pid)
    kill -KILL $postmaster
    wait $postmaster
    true
}

# Stops the postmaster first, so that it starts no further process.
freeze_node() {
    postmaster=$(head -n 1 $1/postmaster.pid)
    kill -STOP $postmaster
    kill -STOP $(cat /proc/$postmaster/task/$postmaster/children)
}

# Of a node that was killed before, nothing is left.
kill_node() {
    freeze_node $1 || return 0
    kill -KILL $postmaster $(cat /proc/$postmaster/task/$postmaster/children)
    wait $postmaster
    rm $1/postmaster.pid
}
"#;

/// The settings of every node. A standby reconnects soon, so that its retry interval does not count as a gap.
const SETTINGS: &str = "listen_addresses=''\\nmax_connections=100\\nwal_keep_size=256MB\\nwal_retrieve_retry_interval=100ms\\n\
                        synchronous_standby_names='ANY 1 (one,two,three)'\\n";

/// Three nodes. One is the primary, and each of its commits waits for one of the others.
pub(crate) struct Trio {
    nodes: Nodes,
    primary: usize,
}

impl Trio {
    /// Starts all three.
    pub(crate) fn start() -> Self {
        let mut trio = Self { nodes: Nodes::new(FUNCTIONS), primary: 0 };
        trio.nodes.run("initdb -D one -A trust -U postgres --no-sync");
        trio.nodes.run(&format!("printf \"{SETTINGS}\" >>one/postgresql.conf && cp -r one two && cp -r one three"));
        trio.start_node(0);
        let way = trio.way_to_primary();
        for node in [1, 2] {
            let name = NODES[node];
            trio.nodes.run(&format!(
                "echo \"primary_conninfo = '{way}'\" >>{name}/postgresql.auto.conf && touch {name}/standby.signal"
            ));
            trio.start_node(node);
        }
        trio.wait_for_standbys();
        trio
    }

    /// The URL of the database. It leads to the node that accepts writes.
    pub(crate) fn url(&self) -> String {
        self.nodes.url(&[port(0), port(1), port(2)], "postgres")
    }

    /// Runs SQL on the primary.
    pub(crate) fn ask_primary(&self, sql: &str) -> String {
        run_sql(&self.url_of(self.primary), sql)
    }

    /// Runs SQL on both standbys.
    pub(crate) fn ask_standbys(&self, sql: &str) -> [String; 2] {
        self.standbys().map(|node| run_sql(&self.url_of(node), sql))
    }

    /// Kills the primary's first process. The others end by themselves.
    pub(crate) fn kill_postmaster(&mut self) {
        self.nodes.run(&format!("kill_postmaster {}", NODES[self.primary]));
    }

    /// Restarts the primary in place.
    pub(crate) fn restart_primary(&mut self) {
        self.start_node(self.primary);
    }

    /// Kills all processes of the primary. It stays dead.
    pub(crate) fn kill_primary(&mut self) {
        self.nodes.run(&format!("kill_node {}", NODES[self.primary]));
    }

    /// Pauses all processes of the primary.
    pub(crate) fn freeze_primary(&mut self) {
        self.nodes.run(&format!("freeze_node {}", NODES[self.primary]));
    }

    /// Kills the primary. A process in its place accepts connections but never answers.
    pub(crate) fn silence_primary(&mut self) {
        self.kill_primary();
        let socket = self.nodes.directory.join(format!(".s.PGSQL.{}", port(self.primary)));
        fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        thread::spawn(move || {
            let mut held = Vec::new();
            loop {
                held.push(listener.accept());
            }
        });
    }

    /// Makes the standbys receive nothing more, as if they could not reach the primary.
    pub(crate) fn cut_standbys_off(&self) {
        self.standbys().into_iter().for_each(|node| self.receive_from(node, ""));
        self.wait_until_nothing_is_received();
    }

    /// Promotes the standby that has received most. The other standby follows it.
    pub(crate) fn fail_over(&mut self) {
        const RECEIVED: &str =
            "SELECT pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')";
        self.wait_until_nothing_is_received();
        let received = self.ask_standbys(RECEIVED).map(|lsn| lsn.parse::<u64>().unwrap());
        let [first, second] = self.standbys();
        let (best, other) = if received[0] >= received[1] { (first, second) } else { (second, first) };
        self.nodes.run(&format!("pg_ctl -D {} -w promote", NODES[best]));
        self.primary = best;
        self.receive_from(other, &self.way_to_primary());
    }

    /// Makes the former primary a standby again, whatever state it is in.
    pub(crate) fn rebuild(&mut self, node: usize) {
        self.nodes.run(&format!("kill_node {0} && rm -rf {0} .s.PGSQL.{1}", NODES[node], port(node)));
        self.copy_primary_to(node);
    }

    /// The number of the primary.
    pub(crate) fn primary(&self) -> usize {
        self.primary
    }

    /// Waits until both standbys receive what the primary writes.
    pub(crate) fn wait_for_standbys(&self) {
        const STREAMING: &str = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND \
                                 application_name IN ('one', 'two', 'three')";
        poll("both standbys to follow", || self.ask_primary(STREAMING) == "2");
    }

    fn wait_until_nothing_is_received(&self) {
        const RECEIVING: &str = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'";
        poll("the standbys to receive nothing", || self.ask_standbys(RECEIVING) == ["0", "0"]);
    }

    fn standbys(&self) -> [usize; 2] {
        [(self.primary + 1) % NODES.len(), (self.primary + 2) % NODES.len()]
    }

    fn receive_from(&self, node: usize, way: &str) {
        let url = self.url_of(node);
        run_sql(&url, &format!("ALTER SYSTEM SET primary_conninfo = '{way}'"));
        run_sql(&url, "SELECT pg_reload_conf()");
    }

    fn way_to_primary(&self) -> String {
        format!("host={} port={} user=postgres", self.nodes.directory.display(), port(self.primary))
    }

    fn copy_primary_to(&mut self, node: usize) {
        let way = self.way_to_primary();
        self.nodes.run(&format!("pg_basebackup -d \"{way}\" -c fast --no-sync -R -D {}", NODES[node]));
        self.start_node(node);
    }

    fn start_node(&mut self, node: usize) {
        self.nodes.run(&format!("start {} {}", NODES[node], port(node)));
    }

    fn url_of(&self, node: usize) -> String {
        self.nodes.url_at(port(node), "postgres")
    }
}

fn port(node: usize) -> u16 {
    [5432, 5433, 5434][node]
}

/// Waits for at most 20 seconds.
fn poll(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
