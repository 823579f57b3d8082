//! A running `payments-server`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use payments_client::Client;
use tempfile::TempDir;
use test_support::server_binary;

/// A server process with its own data directory and without a rate limit.
pub(crate) struct Server {
    process: Child,
    directory: TempDir,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more environment variables.
    pub(crate) fn start_with(environment: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let mut process = Command::new(server_binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path().join("data"))
            .envs([("PAYMENTS_RATE_LIMIT", "0"), ("PAYMENTS_KEYLESS_RATE_LIMIT", "0")])
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ").expect("the server starts").to_owned();
        Self { process, directory, url }
    }

    /// Runs an administrative command on this server's data directory and returns its output.
    pub(crate) fn administer(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(server_binary());
        command.args(arguments).arg("--data-dir").arg(self.directory.path().join("data"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder("sk_test_demo").base_url(&self.url).build().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
