//! A PostgreSQL primary with one synchronous standby. They end with the process of the tests, however that ends.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// Runs the lines of its standard input, and stops both servers at its end. As root it runs as the package's user.
const SCRIPT: &str = r#"
directory=$1
if [ "$(id -u)" = 0 ]; then
    chown postgres "$directory"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -c "$SCRIPT" pair "$directory"
fi
cd "$directory"
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
trap 'for data in one two; do pg_ctl -D $data -m immediate stop; done >/dev/null 2>&1; rm -rf "$directory"' EXIT
while read -r line; do
    if sh -ec "$line" >>commands.log 2>&1 </dev/null; then echo done; else tail -n 5 commands.log | tr '\n' ' '; echo; fi
done
"#;

/// Two servers: `one` starts as the primary, and `two` as its standby. Each commit waits for `two`.
pub(crate) struct Pair {
    directory: PathBuf,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Ends when its standard input ends.
    _script: Child,
}

impl Pair {
    /// Starts both, with the empty database `shop`.
    pub(crate) fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = PathBuf::from(format!("/tmp/payments-pair-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "pair"]).arg(&directory).env("SCRIPT", SCRIPT);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (lines, answers) = (script.stdin.take().unwrap(), BufReader::new(script.stdout.take().unwrap()));
        let mut pair = Self { directory, lines, answers, _script: script };
        let sockets = pair.directory.display().to_string();
        pair.run("initdb -D one -A trust -U postgres --no-sync");
        pair.run(&format!(
            "printf \"listen_addresses=''\\nunix_socket_directories='{sockets}'\\nmax_connections=50\\n\" \
             >>one/postgresql.conf"
        ));
        pair.start_server("one");
        pair.run(&format!("createdb -h {sockets} -U postgres shop"));
        pair.run(&format!("pg_basebackup -h {sockets} -U postgres -c fast -R -D two"));
        pair.run("printf \"port=5433\\ncluster_name='two'\\n\" >>two/postgresql.conf");
        pair.start_server("two");
        pair.run("printf \"synchronous_standby_names='two'\\n\" >>one/postgresql.conf");
        pair.run("pg_ctl -D one reload");
        pair
    }

    pub(crate) fn start_server(&mut self, name: &str) {
        self.run(&format!("pg_ctl -D {name} -w -l {name}.log start"));
    }

    /// Kills a server at once, as a crash does.
    pub(crate) fn crash_server(&mut self, name: &str) {
        self.run(&format!("pg_ctl -D {name} -m immediate -w stop"));
    }

    /// Makes the standby the primary. Its commits wait for nobody.
    pub(crate) fn promote(&mut self) {
        self.run("pg_ctl -D two -w promote");
    }

    /// The URL of the database on whichever server accepts writes.
    pub(crate) fn url(&self) -> String {
        let directory = self.directory.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{directory}:5432,{directory}:5433/shop?target_session_attrs=read-write")
    }

    /// The Unix socket of a server.
    pub(crate) fn socket_of(&self, name: &str) -> PathBuf {
        self.directory.join(if name == "one" { ".s.PGSQL.5432" } else { ".s.PGSQL.5433" })
    }

    /// The URL of the database on one server.
    pub(crate) fn url_of(&self, name: &str) -> String {
        let port = if name == "one" { 5432 } else { 5433 };
        format!("postgres://postgres@/shop?host={}&port={port}", self.directory.display())
    }

    fn run(&mut self, line: &str) {
        writeln!(self.lines, "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), "done", "{line}");
    }
}
