//! A server whose output is not read or cannot be written.

use std::{
    fs::File,
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use crate::server::{SANDBOX_KEY, eventually, metric, payment_of, server_binary, text_of};

/// The capacity of a pipe.
const PIPE_BYTES: usize = 64 * 1024;

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server on an address that was free a moment ago, and its URL.
fn serve(directory: &Path, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>, more: &[&str]) -> (Running, String) {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(server_binary());
    command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(directory.join("data")).args(more);
    command.env("PAYMENTS_LOG", "debug").env("PAYMENTS_KEYLESS_RATE_LIMIT", "0").env("PAYMENTS_RATE_LIMIT", "0");
    (Running(command.stdout(stdout).stderr(stderr).spawn().unwrap()), format!("http://{address}"))
}

/// A client with a timeout of some seconds.
fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap()
}

async fn status(url: &str) -> Option<u16> {
    Some(http().get(url).send().await.ok()?.status().as_u16())
}

async fn is_ready(url: &str) {
    eventually("a ready server", async || (status(&format!("{url}/readyz")).await == Some(200)).then_some(())).await;
}

async fn creates_a_payment(url: &str) {
    let create = http().post(format!("{url}/api/v1/payments")).bearer_auth(SANDBOX_KEY);
    assert_eq!(create.json(&payment_of(&json!(7))).send().await.unwrap().status(), 201);
}

/// Sends SIGTERM. Returns the exit status, or `None` if the server still runs after 20 seconds.
fn terminate(Running(process): &mut Running) -> Option<ExitStatus> {
    assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if let Some(status) = process.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// A full pipe that nobody reads.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(&[b'\n'; PIPE_BYTES]).unwrap();
    (reader, writer)
}

/// Makes the server log more than its buffer holds, some 300 bytes with each request.
async fn make_it_log(url: &str) {
    let (http, path) = (http(), "x".repeat(2000));
    for _ in 0..6000 {
        let answer = http.get(format!("{url}/{path}")).send().await;
        assert_eq!(answer.unwrap().status(), 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_log_stops_no_request_and_later_reports_the_dropped_lines() {
    let directory = TempDir::new().unwrap();
    let (log, writer) = full_pipe();
    let (mut server, url) = serve(directory.path(), Stdio::null(), writer, &[]);
    is_ready(&url).await;
    make_it_log(&url).await;
    creates_a_payment(&url).await;
    let dropped = async || -> u64 {
        let metrics = http().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
        metric(&metrics, "payments_log_lines_dropped_total")
    };
    assert!(dropped().await > 0);

    // Read the log again until the sentence comes.
    let mut lines = BufReader::new(log).lines().map(Result::unwrap).skip_while(String::is_empty);
    let (mut read, mut said) = (0, None);
    while said.is_none() {
        let line = lines.next().unwrap();
        assert!(line.starts_with("20") && line.contains(" DEBUG ") || !line.contains(" DEBUG "), "a part: {line}");
        said = line.split_once(" log lines were dropped").map(|(before, _)| before.to_owned());
        read += 1;
    }
    let said = said.unwrap();
    let dropped = dropped().await;
    assert!(said.contains("ERROR") && said.ends_with(&format!(" {dropped}")), "{said}, not {dropped}");
    assert!(read > 300, "{read} lines were kept");
    let rest = std::thread::spawn(move || lines.last());
    assert!(terminate(&mut server).unwrap().success());
    assert!(rest.join().unwrap().unwrap().ends_with("shut down"), "the last line is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_unread_log_stops_on_sigterm() {
    let directory = TempDir::new().unwrap();
    let (_log, writer) = full_pipe();
    let (mut server, url) = serve(directory.path(), Stdio::null(), writer, &[]);
    is_ready(&url).await;
    make_it_log(&url).await;
    assert!(terminate(&mut server).expect("the server stops").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_serves_even_if_its_output_is_full_closed_or_unread() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let closed = || pipe().unwrap().1;
    let (_unread, unread) = full_pipe();
    let outputs: [(&str, Stdio, Stdio); 5] = [
        ("both full", full().into(), full().into()),
        ("both closed", closed().into(), closed().into()),
        ("both unread", unread.try_clone().unwrap().into(), unread.into()),
        ("stdout full", full().into(), Stdio::null()),
        ("stdout closed", closed().into(), Stdio::null()),
    ];
    for (what, stdout, stderr) in outputs {
        let directory = TempDir::new().unwrap();
        let (mut server, url) = serve(directory.path(), stdout, stderr, &[]);
        is_ready(&url).await;
        creates_a_payment(&url).await;
        let ended = terminate(&mut server);
        assert!(ended.is_some_and(|status| status.success()), "{what}: {ended:?}");
    }
}

#[test]
fn a_command_whose_messages_cannot_be_written_does_its_work() {
    let directory = TempDir::new().unwrap();
    let command = |stderr: File| {
        let mut command = Command::new(server_binary());
        command.args(["workspaces", "create", "--name", "Rahim", "--data-dir"]).arg(directory.path().join("data"));
        command.stderr(stderr).output().unwrap()
    };
    let output = command(File::options().write(true).open("/dev/full").unwrap());
    assert!(output.status.success() && !output.stdout.is_empty(), "{}", text_of(&output));
}
