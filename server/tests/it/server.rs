//! A running `payments-server`, and what a test says to it.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use payments_client::Client;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_payments-server");
pub(crate) const SANDBOX_KEY: &str = "sk_test_demo";

/// A server process on a data directory of its own. Its log is in `server.log` beside the store.
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

    /// Starts a server with further arguments of `serve`.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let arguments = arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (process, url) = spawn(directory.path(), "127.0.0.1:0", &arguments);
        Self { process, directory, url, arguments }
    }

    /// Starts a server on the store in `data` of a directory, or gives the directory back with what was said.
    pub(crate) fn try_start_on(directory: TempDir) -> Result<Self, (TempDir, String)> {
        match try_launch(Command::new(BINARY), directory.path(), "127.0.0.1:0", &[]) {
            Ok((process, url)) => Ok(Self { process, directory, url, arguments: Vec::new() }),
            Err(said) => Err((directory, said)),
        }
    }

    /// Starts a server that may have so many files and sockets open.
    pub(crate) fn start_limited(descriptors: u32) -> Self {
        Self::start_limited_with(descriptors, &[])
    }

    /// The same with further arguments of `serve`.
    pub(crate) fn start_limited_with(descriptors: u32, arguments: &[&str]) -> Self {
        let mut server = Self::start();
        server.kill();
        let address = server.url.strip_prefix("http://").unwrap().to_owned();
        let mut command = Command::new("bash");
        command.args(["-c", &format!("ulimit -n {descriptors} && exec \"$0\" \"$@\""), BINARY]);
        server.arguments = arguments.iter().map(ToString::to_string).collect();
        (server.process, server.url) = launch(command, server.directory.path(), &address, &server.arguments);
        server
    }

    /// Starts a server that logs so much.
    pub(crate) fn start_logging(level: &str, arguments: &[&str]) -> Self {
        let mut server = Self::start();
        server.kill();
        std::fs::remove_file(server.directory.path().join("server.log")).unwrap();
        let address = server.url.strip_prefix("http://").unwrap().to_owned();
        server.arguments = arguments.iter().map(ToString::to_string).collect();
        let mut command = Command::new(BINARY);
        command.env("PAYMENTS_LOG", level);
        (server.process, server.url) = launch(command, server.directory.path(), &address, &server.arguments);
        server
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }

    /// `kill -9`, then a new start on the same data and port.
    pub(crate) fn crash_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        let address = self.url.strip_prefix("http://").unwrap();
        (self.process, self.url) = spawn(self.directory.path(), address, &self.arguments);
    }

    /// A start on the same data and port, with other arguments.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.restart();
    }

    /// The server, after its end, on the same data and port with other arguments.
    pub(crate) fn restarted_with(mut self, arguments: &[&str]) -> Self {
        self.restart_with(arguments);
        self
    }

    /// `kill -9`, then a new start with further variables in its environment.
    pub(crate) fn restart_in(&mut self, variables: &[(&str, &str)]) {
        self.kill();
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        let mut command = Command::new(BINARY);
        command.envs(variables.iter().copied());
        (self.process, self.url) = launch(command, self.directory.path(), &address, &self.arguments);
    }

    /// SIGTERM, and how the process ended.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        self.process.wait().unwrap()
    }

    /// How the process ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("server.log")).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder(SANDBOX_KEY).base_url(&self.url).build().unwrap()
    }

    /// A request to a path below `/api/v1` with the sandbox's key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.keyless(method, &format!("/api/v1{path}")).bearer_auth(SANDBOX_KEY)
    }

    /// Creates a payment with the sandbox's key.
    pub(crate) async fn create(&self, body: &Value) -> Value {
        let answer = self.request(Method::POST, "/payments").json(body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.json().await.unwrap()
    }

    /// A request without a key.
    pub(crate) fn keyless(&self, method: Method, path: &str) -> RequestBuilder {
        // Making one reads all of the system's certificates. A connection is used once: no test meets another's server.
        static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
            let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
            client.pool_max_idle_per_host(0).build().unwrap()
        });
        HTTP.request(method, format!("{}{path}", self.url))
    }

    /// An administrative verb on this server's data directory.
    pub(crate) fn administer(&self, arguments: &[&str]) -> std::process::Output {
        Command::new(BINARY).args(arguments).arg("--data-dir").arg(self.data()).output().unwrap()
    }
}

/// Whatever a test did to a store, everything must hold in it afterwards. A store that a test has damaged on purpose is
/// refused, which is no finding.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !std::thread::panicking() && self.data().join("sled").exists() {
            let said = String::from_utf8_lossy(&self.administer(&["check"]).stderr).into_owned();
            assert!(!said.contains("records are invalid"), "{said}");
        }
    }
}

fn spawn(directory: &Path, address: &str, arguments: &[String]) -> (Child, String) {
    launch(Command::new(BINARY), directory, address, arguments)
}

pub(crate) fn launch(command: Command, directory: &Path, address: &str, arguments: &[String]) -> (Child, String) {
    try_launch(command, directory, address, arguments).unwrap_or_else(|said| panic!("the server did not start: {said}"))
}

/// The process and its address, or what it said instead.
pub(crate) fn try_launch(
    mut command: Command,
    directory: &Path,
    address: &str,
    arguments: &[String],
) -> Result<(Child, String), String> {
    let log = File::options().create(true).append(true).open(directory.join("server.log")).unwrap();
    // Tests ask faster than a merchant does; those of the limits set their own.
    if !arguments.iter().any(|argument| argument.contains("rate-limit")) {
        command.envs([("PAYMENTS_RATE_LIMIT", "0"), ("PAYMENTS_KEYLESS_RATE_LIMIT", "0")]);
    }
    let mut process = command
        .args(["serve", "--listen", address, "--data-dir"])
        .arg(directory.join("data"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    match first.trim().strip_prefix("listening on ") {
        Some(url) => Ok((process, url.to_owned())),
        None => {
            let _ = process.wait();
            Err(std::fs::read_to_string(directory.join("server.log")).unwrap_or_default())
        }
    }
}

/// The body of a valid payment.
pub(crate) fn payment_of(amount: &Value) -> Value {
    json!({"amount": amount, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart"})
}

/// Asks again and again until there is an answer, for at most ten seconds.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
