//! The README's commands work as printed, in its order, in an empty directory.
//!
//! Four things differ from a reader's machine. The binary of this build stands on the `PATH` for what `cargo install` makes.
//! Port 8080 may be in use, so another one stands for it. `createdb` and `postgres:///…` mean a cluster of the tests, where
//! nobody has to become another user by `sudo`. The two programs of `cargo run -p examples` have a test of their own.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    cluster::Cluster,
    server::{BINARY, text_of},
};

const README: &str = include_str!("../../../README.md");

/// The README's code blocks: language and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fenced = README.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// The commands of a block. A line that ends with a backslash goes on in the next one.
fn commands(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", "\\\u{0}");
    joined.lines().map(|line| line.replace('\u{0}', "\n")).filter(|line| !line.trim().is_empty()).collect()
}

/// Somebody who types what the README prints.
struct Reader {
    directory: TempDir,
    /// Programs of the reader's machine.
    programs: TempDir,
    /// The address that stands for 127.0.0.1:8080.
    address: String,
    /// The environment, with the variables that commands have set.
    variables: HashMap<String, String>,
    /// The server, in a terminal of its own, and `listen` in another one.
    server: Option<Running>,
    listening: Option<Running>,
}

/// A command that runs until it is stopped.
struct Running {
    process: Child,
    /// What it prints. Nobody reads it, and it stays open.
    _out: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Reader {
    fn new() -> Self {
        let (directory, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(BINARY, programs.path().join("payments-server")).unwrap();
        let sudo = programs.path().join("sudo");
        fs::write(&sudo, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut variables: HashMap<_, _> =
            std::env::vars().filter(|(name, _)| !name.starts_with("PAYMENTS_")).collect();
        let path = format!("{}:{}", programs.path().display(), variables["PATH"]);
        let sockets = Cluster::shared().socket().parent().unwrap().display().to_string();
        for (name, value) in [
            ("PATH", path),
            ("PGHOST", sockets),
            ("PGUSER", "postgres".into()),
            ("USER", "reader".into()),
            ("PAYMENTS_LISTEN", address.clone()),
            ("PAYMENTS_API_URL", format!("http://{address}")),
        ] {
            variables.insert(name.into(), value);
        }
        Self { directory, programs, address, variables, server: None, listening: None }
    }

    /// What the reader's shell gets for a command as printed.
    fn shell(&self, command: &str) -> Command {
        let mut text = command.replace("127.0.0.1:8080", &self.address);
        while let Some((before, rest)) = text.split_once("postgres:///") {
            let end = rest.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(rest.len());
            text = format!("{before}'{}'{}", Cluster::shared().url(&rest[..end]), &rest[end..]);
        }
        let state = self.programs.path().join("variables").display().to_string();
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("set -euo pipefail; set -a\n{text}\nenv -0 >'{state}'")]);
        shell.env_clear().envs(&self.variables).current_dir(&self.directory);
        shell
    }

    /// Runs a command to its end. Returns what it printed.
    fn run(&mut self, command: &str) -> String {
        let answer = fs::File::open(self.answer()).unwrap();
        let output = self.shell(command).stdin(answer).output().unwrap();
        assert!(output.status.success(), "{command}: {}", text_of(&output));
        let state = fs::read_to_string(self.programs.path().join("variables")).unwrap();
        let set = state.split('\0').filter_map(|variable| variable.split_once('='));
        self.variables = set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        String::from_utf8(output.stdout).unwrap()
    }

    /// A file with the answer to a question that a command asks.
    fn answer(&self) -> std::path::PathBuf {
        let file = self.programs.path().join("answer");
        fs::write(&file, "yes\n").unwrap();
        file
    }

    /// Runs a command whose id is not written out: it is understood, and refused because nothing has the id.
    fn run_with_unknown_id(&self, command: &str) {
        let output = self.shell(command).output().unwrap();
        let said = text_of(&output);
        assert!(output.status.code() == Some(1) && said.contains("this id"), "{command}: {said}");
    }

    /// Starts a command that runs until it is stopped. Returns after the first line that contains a text.
    fn start(&self, command: &str, until: &str) -> Running {
        let exec = command.replacen("payments-server", "exec payments-server", 1);
        let log = self.programs.path().join("log");
        let mut shell = self.shell(&exec);
        let mut process = shell.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        if !out.by_ref().lines().any(|line| line.unwrap().contains(until)) {
            panic!("{command}: {}", fs::read_to_string(log).unwrap());
        }
        Running { process, _out: out }
    }

    /// Types a command. Returns what it printed.
    fn type_in(&mut self, command: &str) -> String {
        let bare = command.split(" #").next().unwrap_or_default().trim();
        match bare {
            "cargo install --path server --locked" => String::new(),
            _ if bare.starts_with("cargo run -p examples ") => String::new(),
            "payments-server" | "payments-server serve" => self.serve(bare),
            _ if bare.starts_with("payments-server serve ") => self.serve(bare),
            _ if bare.starts_with("payments-server listen ") => {
                self.listening = Some(self.start(bare, "whsec_"));
                String::new()
            }
            _ if bare.contains("_...") => {
                self.run_with_unknown_id(command);
                String::new()
            }
            _ => self.run(command),
        }
    }

    /// Starts a server in place of the last one.
    fn serve(&mut self, command: &str) -> String {
        if let Some(mut server) = self.server.take() {
            Command::new("kill").arg(server.process.id().to_string()).status().unwrap();
            assert!(server.process.wait().unwrap().success());
        }
        self.server = Some(self.start(command, "listening on http://"));
        String::new()
    }
}

/// The names of an object's fields at every depth.
fn names(value: &Value) -> Vec<String> {
    let Some(object) = value.as_object() else { return Vec::new() };
    object.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
}

/// Compares an answer with the printed one, except ids and times.
fn assert_is_as_printed(answer: &str, printed: &str) {
    let (got, printed): (Value, Value) =
        (serde_json::from_str(answer).unwrap(), serde_json::from_str(printed).unwrap());
    assert_eq!(names(&got), names(&printed));
    for name in ["amount", "currency", "status", "rawStatus", "netAmount", "platform_fee", "success", "success_url"] {
        assert_eq!(got[name], printed[name], "{name}");
    }
    assert!(got["error"].is_null() || got == printed, "{got}");
}

#[test]
fn the_readmes_commands_work_in_its_order_in_an_empty_directory() {
    let mut reader = Reader::new();
    let (mut last, mut compared, mut typed) = (String::new(), 0, 0);
    for (language, block) in blocks() {
        match language {
            "sh" => {
                for command in commands(block) {
                    last = reader.type_in(&command);
                    typed += 1;
                }
            }
            "json" => {
                assert_is_as_printed(&last, block);
                compared += 1;
            }
            "toml" => {
                let file = reader.directory.path().join("payments.toml");
                fs::write(&file, block).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            }
            other => panic!("a block of {other:?}, which no reader can follow"),
        }
    }
    assert_eq!(compared, 3);
    assert!(typed > 30, "{typed} commands");
    for made in ["payments-data", "backups/today", "restored", "restored-as-of-now", "moved-back"] {
        assert!(reader.directory.path().join(made).exists(), "{made}");
    }
}
