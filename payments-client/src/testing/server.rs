//! A real server for a test.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use payments_core::{PaymentId, SimulateOutcome};
use tempfile::TempDir;

use super::Receiver;
use crate::{Client, Error};

/// The public key of a sandbox.
const SANDBOX_KEY: &str = "sk_test_demo";
/// The beginning of a server's first line, before its address.
const LISTENING: &str = "listening on ";

/// A real `payments-server` on a free port, with its own empty store in a temporary directory. Dropping it ends the server
/// and removes the directory.
///
/// It needs the program `payments-server`: `cargo install --path server` in the platform's repository puts it into the `PATH`.
/// The environment variable `PAYMENTS_SERVER` may name another one.
///
/// ```no_run
/// use payments_client::{CreatePayment, Money, EventKind, testing::TestServer};
///
/// #[tokio::test]
/// async fn an_order_is_shipped_when_it_is_paid() -> Result<(), Box<dyn std::error::Error>> {
///     let server = TestServer::start().await?;
///     let mut webhooks = server.receive_webhooks().await?;
///     let params = CreatePayment::of(Money::taka(750))
///         .success_url("https://shop.example/paid")
///         .cancel_url("https://shop.example/cart");
///     let payment = server.client().payments().create(params).await?;
///     assert_eq!(*webhooks.next().await?.kind(), EventKind::PaymentCreated);
///     server.pay(&payment.id).await?;
///     assert_eq!(*webhooks.next().await?.kind(), EventKind::PaymentCompleted);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct TestServer {
    program: PathBuf,
    _process: Process,
    /// Kept open, because the server may still write to it.
    _output: BufReader<ChildStdout>,
    directory: TempDir,
    url: String,
    pub(super) client: Client,
}

/// Why a [`TestServer`] did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program cannot be started.
    #[error(
        "cannot run {}: {source}; install it with `cargo install --path server`, or name it in PAYMENTS_SERVER",
        program.display()
    )]
    Program {
        /// The program.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The server ended before it listened. The text is its log.
    #[error("the server did not start: {0}")]
    Ended(String),
    /// The server refused an operator's command. The text is its error.
    #[error("the server refused a command: {0}")]
    Command(String),
    /// A temporary directory or a local port cannot be used.
    #[error("cannot use a temporary directory or a local port: {0}")]
    Io(#[from] io::Error),
    /// The server refused a request that the start needs.
    #[error(transparent)]
    Api(#[from] Error),
}

impl TestServer {
    /// Starts a server.
    ///
    /// # Errors
    /// If the program is missing or does not start.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_program(program()).await
    }

    /// Starts a server of this program.
    ///
    /// # Errors
    /// If the program is missing or does not start.
    pub async fn start_program(program: impl Into<PathBuf>) -> Result<Self, StartError> {
        Self::start_with(program.into(), String::new()).await
    }

    /// Starts a server with the text of a configuration file.
    pub(super) async fn start_with(program: PathBuf, settings: String) -> Result<Self, StartError> {
        let launched = program.clone();
        let started = tokio::task::spawn_blocking(move || launch(&launched, &settings)).await;
        let (process, output, directory, url) = started.map_err(io::Error::other)??;
        let client = Client::builder(SANDBOX_KEY).base_url(&url).build()?;
        Ok(Self { program, _process: process, _output: output, directory, url, client })
    }

    /// Runs an operator's command on the server, and returns its output.
    pub(super) async fn administer(&self, arguments: &[&str]) -> Result<String, StartError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--data-dir").arg(data_in(self.directory.path()));
        let output = tokio::task::spawn_blocking(move || command.output()).await.map_err(io::Error::other)??;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(StartError::Command(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
    }

    /// A client with the key of the server's sandbox.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The server's address, such as `http://127.0.0.1:34567`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The server's log.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub fn log(&self) -> io::Result<String> {
        std::fs::read_to_string(log_in(self.directory.path()))
    }

    /// Pays a payment, as the customer would on the checkout page.
    ///
    /// # Errors
    /// Those of [`Checkout::simulate`](crate::Checkout::simulate).
    pub async fn pay(&self, id: &PaymentId) -> Result<(), Error> {
        self.client.checkout().simulate(id, SimulateOutcome::Completed).await.map(drop)
    }

    /// Starts a webhook endpoint and subscribes it to all events.
    ///
    /// # Errors
    /// If no local port is free, and those of [`Webhooks::create`](crate::Webhooks::create).
    pub async fn receive_webhooks(&self) -> Result<Receiver, StartError> {
        Receiver::subscribe(&self.client).await
    }
}

/// A process that ends when it is dropped.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // A temporary store needs no clean shutdown.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program that a test starts if it names none.
pub(super) fn program() -> OsString {
    std::env::var_os("PAYMENTS_SERVER").unwrap_or_else(|| OsString::from("payments-server"))
}

fn data_in(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn log_in(directory: &Path) -> PathBuf {
    directory.join("server.log")
}

type Started = (Process, BufReader<ChildStdout>, TempDir, String);

fn launch(program: &Path, settings: &str) -> Result<Started, StartError> {
    let directory = tempfile::tempdir()?;
    // A temporary file is the user's alone, as the server demands.
    let mut config = tempfile::Builder::new().suffix(".toml").tempfile_in(directory.path())?;
    config.write_all(settings.as_bytes())?;
    let (_, config) = config.keep().map_err(io::Error::other)?;
    let log = std::fs::File::create(log_in(directory.path()))?;
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--keyless-rate-limit", "0", "--data-dir"]);
    command
        .arg(data_in(directory.path()))
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    let refused = |source| StartError::Program { program: program.to_owned(), source };
    let mut process = Process(command.spawn().map_err(refused)?);
    let ended = |why: String| StartError::Ended(std::fs::read_to_string(log_in(directory.path())).unwrap_or(why));
    let mut output = BufReader::new(process.0.stdout.take().ok_or_else(|| ended("no standard output".into()))?);
    let mut first = String::new();
    // The limit is enough, because the first line is short.
    let read = output.by_ref().take(1024).read_line(&mut first);
    let url = first.trim_end().strip_prefix(LISTENING).filter(|_| read.is_ok());
    let url = url.ok_or_else(|| ended(first.clone()))?.to_owned();
    Ok((process, output, directory, url))
}
