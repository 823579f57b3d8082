//! Starts, stops and calls a `payments-server` process.

mod restarts;

use std::{
    fmt::Debug,
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    str::FromStr,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use payments_client::Client;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use test_support::server_binary;

use crate::engine::{Engine, inconsistencies};

pub(crate) const SANDBOX_KEY: &str = "sk_test_demo";
const DATABASE: &str = "--database-url";

/// A server process with its own data directory. Its log is `server.log` beside the store.
pub(crate) struct Server {
    process: Child,
    pub(crate) directory: TempDir,
    pub(crate) url: String,
    arguments: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server on an engine, with more arguments of `serve`.
    pub(crate) fn start_on(engine: Engine, arguments: &[&str]) -> Self {
        let chosen = engine.arguments();
        Self::start_with(&[&chosen.iter().map(|argument| &**argument).collect::<Vec<_>>(), arguments].concat())
    }

    /// Starts a server with more arguments of `serve`.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let arguments = arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (process, url) = spawn(directory.path(), "127.0.0.1:0", &arguments);
        Self { process, directory, url, arguments }
    }

    /// Starts a server on the store in the directory's `data`. On failure, returns the directory and the log.
    pub(crate) fn try_start_on(directory: TempDir) -> Result<Self, (TempDir, String)> {
        match try_launch(Command::new(server_binary()), directory.path(), "127.0.0.1:0", &[]) {
            Ok((process, url)) => Ok(Self { process, directory, url, arguments: Vec::new() }),
            Err(log) => Err((directory, log)),
        }
    }

    /// Starts a server with a limit of `descriptors` open files and sockets.
    pub(crate) fn start_limited(descriptors: u32) -> Self {
        Self::start_limited_with(descriptors, &[])
    }

    /// Does the same as [`Self::start_limited`] with more arguments of `serve`.
    pub(crate) fn start_limited_with(descriptors: u32, arguments: &[&str]) -> Self {
        let mut server = Self::start();
        server.kill();
        let address = server.address().to_owned();
        let mut command = Command::new("bash");
        command.args(["-c", &format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""), server_binary()]);
        server.arguments = arguments.iter().map(ToString::to_string).collect();
        (server.process, server.url) = launch(command, server.directory.path(), &address, &server.arguments);
        server
    }

    /// Starts a server with this log level.
    pub(crate) fn start_logging(level: &str, arguments: &[&str]) -> Self {
        let mut server = Self::start();
        server.kill();
        fs::remove_file(server.directory.path().join("server.log")).unwrap();
        let address = server.address().to_owned();
        server.arguments = arguments.iter().map(ToString::to_string).collect();
        let mut command = Command::new(server_binary());
        command.env("PAYMENTS_LOG", level);
        (server.process, server.url) = launch(command, server.directory.path(), &address, &server.arguments);
        server
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("server.log")).unwrap()
    }

    /// Asserts that the log soon has a text: a thread of its own writes the lines.
    pub(crate) fn assert_logs(&self, text: &str) {
        let begun = Instant::now();
        while !self.log().contains(text) {
            assert!(begun.elapsed() < Duration::from_secs(10), "no {text:?} in the log:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder(SANDBOX_KEY).base_url(&self.url).build().unwrap()
    }

    /// A request to a path under `/api/v1` with the sandbox key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.keyless(method, &format!("/api/v1{path}")).bearer_auth(SANDBOX_KEY)
    }

    /// Creates a payment with the sandbox key.
    pub(crate) async fn create(&self, body: &Value) -> Value {
        let answer = self.request(Method::POST, "/payments").json(body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.json().await.unwrap()
    }

    /// A request without a key.
    pub(crate) fn keyless(&self, method: Method, path: &str) -> RequestBuilder {
        // Building a client reads all system certificates. Reuse no connection, because another test's server may get its
        // port.
        static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
            let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
            client.pool_max_idle_per_host(0).build().unwrap()
        });
        HTTP.request(method, format!("{}{path}", self.url))
    }

    /// Reads a path under `/api/v1` as JSON with the sandbox key.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.request(Method::GET, path).send().await.unwrap().json().await.unwrap()
    }

    /// Waits until there are `count` deliveries and none is pending. Returns at most 100 of them.
    pub(crate) async fn ended_deliveries(&self, count: usize) -> Vec<Value> {
        eventually("the deliveries to end", || async {
            let list = self.get("/webhooks/deliveries?limit=100").await;
            let items = list["items"].as_array().unwrap();
            let is_ended = list["total"] == count && items.iter().all(|delivery| delivery["status"] != "pending");
            is_ended.then(|| items.clone())
        })
        .await
    }

    /// Reads `/metrics`.
    pub(crate) async fn metrics(&self) -> String {
        self.keyless(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap()
    }

    /// Runs a command on this server's store.
    pub(crate) fn try_run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(server_binary());
        command.args(arguments);
        match self.database() {
            Some(url) => command.args([DATABASE, url]),
            None => command.arg("--data-dir").arg(self.data()),
        };
        command.output().unwrap()
    }

    /// The URL of the server's database, if it is not on a directory.
    pub(crate) fn database(&self) -> Option<&str> {
        let flag = self.arguments.iter().position(|argument| argument == DATABASE)?;
        self.arguments.get(flag + 1).map(|url| &**url)
    }

    /// Runs a command that must succeed. Returns its standard output without the last line break.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text_of(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs a command that must succeed and print one line. Returns the line.
    pub(crate) fn run_for_line(&self, arguments: &[&str]) -> String {
        let text = self.run(arguments);
        assert_eq!(text.lines().count(), 1, "{text:?}");
        text
    }

    /// Creates a workspace and returns a new key for it.
    pub(crate) fn new_key(&self, workspace: &str, environment: &str) -> String {
        self.new_key_with(workspace, environment, &[])
    }

    /// A key of a new workspace, with more arguments of `keys create`.
    pub(crate) fn new_key_with(&self, workspace: &str, environment: &str, arguments: &[&str]) -> String {
        let workspace = self.run_for_line(&["workspaces", "create", "--name", workspace]);
        let create = ["keys", "create", "--workspace", &workspace, "--environment", environment];
        self.run_for_line(&[&create, arguments].concat())
    }
}

/// Runs `check` after each test, or the same checks in SQL on a database. If a test damaged the store on purpose, `check`
/// refuses it, and the test passes.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() && self.data().join("sled").exists() {
            let stderr = String::from_utf8_lossy(&self.try_run(&["check"]).stderr).into_owned();
            assert!(!stderr.contains("records are invalid"), "{stderr}");
        }
        if !std::thread::panicking()
            && let Some(url) = self.database()
        {
            assert_eq!(inconsistencies(url), "");
        }
    }
}

fn spawn(directory: &Path, address: &str, arguments: &[String]) -> (Child, String) {
    let begun = Instant::now();
    loop {
        match try_launch(Command::new(server_binary()), directory, address, arguments) {
            Ok(launched) => return launched,
            // Another test may have taken the port while this server did not run.
            Err(log) if log.contains("(os error 98)") && begun.elapsed() < Duration::from_secs(20) => {
                thread::sleep(Duration::from_millis(200));
            }
            Err(log) => panic!("the server did not start: {log}"),
        }
    }
}

pub(crate) fn launch(command: Command, directory: &Path, address: &str, arguments: &[String]) -> (Child, String) {
    try_launch(command, directory, address, arguments).unwrap_or_else(|log| panic!("the server did not start: {log}"))
}

/// Starts a server. Returns the process and its URL, or the log if it does not start.
pub(crate) fn try_launch(
    mut command: Command,
    directory: &Path,
    address: &str,
    arguments: &[String],
) -> Result<(Child, String), String> {
    let log = File::options().create(true).append(true).open(directory.join("server.log")).unwrap();
    // Tests exceed the default rate limits, so turn these off. Tests of the limits set their own.
    if !arguments.iter().any(|argument| argument.contains("rate-limit")) {
        command.envs([("PAYMENTS_RATE_LIMIT", "0"), ("PAYMENTS_KEYLESS_RATE_LIMIT", "0")]);
    }
    command.args(["serve", "--listen", address]);
    if !arguments.iter().any(|argument| argument == DATABASE) {
        command.arg("--data-dir").arg(directory.join("data"));
    }
    let mut process = command.args(arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    match first.trim().strip_prefix("listening on ") {
        Some(url) => Ok((process, url.to_owned())),
        None => {
            let _ = process.wait();
            Err(fs::read_to_string(directory.join("server.log")).unwrap_or_default())
        }
    }
}

/// Writes a file of settings, which only its owner may read.
pub(crate) fn write_settings(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// What a command wrote to standard output and standard error.
pub(crate) fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// Copies a directory with its content.
pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").args(["-r", "--sparse=always"]).args([from, to]).status().unwrap().success());
}

/// The files under a directory, at every depth.
pub(crate) fn files_under(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => files_under(&entry.path()),
        kind if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    });
    files.flatten().collect()
}

/// Asserts that no file under a directory contains a text.
pub(crate) fn assert_nowhere(text: &str, directory: &Path) {
    for file in files_under(directory) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text} in {}", file.display());
    }
}

/// Parses the metric with this name and labels.
pub(crate) fn metric<T: FromStr<Err: Debug>>(metrics: &str, name: &str) -> T {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

/// The body of a valid payment.
pub(crate) fn payment_of(amount: &Value) -> Value {
    json!({"amount": amount, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"})
}

/// Polls until there is a value, for at most 20 seconds.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut poll: impl FnMut() -> F) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
