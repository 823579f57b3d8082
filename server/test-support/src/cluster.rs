//! A PostgreSQL cluster for tests, from Debian's package. It ends when the test process ends, in any way.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio::task::spawn_blocking;
use tokio_postgres::{Client, NoTls};

/// Runs until its standard input ends. If root runs the tests, it runs the database as the package's user.
const SCRIPT: &str = r#"
set -eu
directory=$1; shift
if [ "$(id -u)" = 0 ]; then
    chown postgres "$directory"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh -c "$SCRIPT" cluster "$directory" "$@"
fi
cd "$directory"
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
"$bin/initdb" -D data -A trust -U postgres --no-sync >initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
"$bin/postgres" -D data -k "$directory" -c listen_addresses= -c max_connections=400 "$@" >postgres.log 2>&1 &
postgres=$!
trap 'kill -QUIT $postgres 2>/dev/null; wait $postgres || true; rm -rf "$directory"' EXIT
until "$bin/pg_isready" -q -h "$directory"; do
    kill -0 $postgres || { cat postgres.log >&2; exit 1; }
    sleep 0.05
done
echo ready
cat >/dev/null
"#;

/// A running cluster.
pub struct Cluster {
    directory: PathBuf,
    /// The process whose pipe stops the cluster when it closes.
    _script: Child,
}

impl Cluster {
    /// The cluster that all tests of this process share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// Starts a cluster with its own settings, such as `synchronous_commit=off`.
    pub fn start(settings: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // The path of a socket must be short.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = PathBuf::from(format!("/tmp/payments-pg-{}-{number}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "cluster"]).arg(&directory).env("SCRIPT", SCRIPT);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "PostgreSQL is needed: apt-get install postgresql");
        Self { directory, _script: script }
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}", self.directory.display())
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.file(".s.PGSQL.5432")
    }

    /// The path of the database's log.
    pub fn log(&self) -> PathBuf {
        self.file("postgres.log")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Creates an empty database and returns its URL.
    pub fn new_database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        run_sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }
}

/// The URL of the database `postgres` of the cluster that all tests share.
pub async fn shared_url() -> String {
    spawn_blocking(|| Cluster::shared().url("postgres")).await.unwrap()
}

/// A connection to a database.
pub async fn client_of(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs SQL and returns its rows, a line each, the columns separated by `|`.
pub fn run_sql(url: &str, sql: &str) -> String {
    let output = Command::new("psql").args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url]).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
