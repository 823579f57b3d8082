//! A directory of PostgreSQL servers, and a shell in it. They end when the test process ends, in any way.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// Runs the lines of its standard input, and stops all servers when the input ends. If root runs the tests, it runs as the
/// package's user.
const SCRIPT: &str = r#"
directory=$1
if [ "$(id -u)" = 0 ]; then
    chown postgres "$directory"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -c "$SCRIPT" nodes "$directory"
fi
cd "$directory"
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
eval "$FUNCTIONS"
trap 'for data in */postmaster.pid; do pg_ctl -D ${data%/*} -m immediate stop; done >/dev/null 2>&1; rm -rf "$directory"' EXIT
while read -r line; do
    if eval "$line" >>commands.log 2>&1 </dev/null; then echo done; else tail -n 5 commands.log | tr '\n' ' '; echo; fi
done
"#;

/// The data directories of servers, each in its own folder, and their sockets.
pub(crate) struct Nodes {
    pub(crate) directory: PathBuf,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Ends when its standard input ends.
    _script: Child,
}

impl Nodes {
    /// Creates the directory. Lines may call the shell `functions`.
    pub(crate) fn new(functions: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // The path of a socket must be short.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = PathBuf::from(format!("/tmp/payments-nodes-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "nodes"]).arg(&directory).env("SCRIPT", SCRIPT).env("FUNCTIONS", functions);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (lines, answers) = (script.stdin.take().unwrap(), BufReader::new(script.stdout.take().unwrap()));
        Self { directory, lines, answers, _script: script }
    }

    /// Runs a line of the shell, which must succeed.
    pub(crate) fn run(&mut self, line: &str) {
        writeln!(self.lines, "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), "done", "{line}");
    }

    /// The URL of a database. It leads to the server at these ports that accepts writes.
    pub(crate) fn url(&self, ports: &[u16], database: &str) -> String {
        let directory = self.directory.display().to_string().replace('/', "%2F");
        let hosts = ports.iter().map(|port| format!("{directory}:{port}")).collect::<Vec<_>>().join(",");
        format!("postgres://postgres@{hosts}/{database}?target_session_attrs=read-write")
    }

    /// The URL of a database on the server at a port.
    pub(crate) fn url_at(&self, port: u16, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}&port={port}", self.directory.display())
    }
}
