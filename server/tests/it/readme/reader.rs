//! A reader who types the commands that a README prints.
//!
//! Six things differ from a reader's machine. The `PATH` has this build's binary instead of `cargo install`'s, and this
//! build's programs replace `cargo run`. Another port replaces 8080, which may be in use. `createdb` and `postgres:///…` mean
//! a cluster of the tests. `sudo` does not change the user, `chown` does not change the owner, and `payments-data` replaces
//! `/var/lib/payments`. `systemctl` stops and starts the server of the other terminal.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use super::blocks::is_not_typed;
use crate::server::{server_binary, text_of};
use test_support::cluster::Cluster;

/// A reader who types the commands that a README prints.
pub(crate) struct Reader {
    pub(crate) directory: TempDir,
    /// Programs of the reader's machine.
    programs: TempDir,
    /// The address that replaces 127.0.0.1:8080.
    pub(crate) address: String,
    /// The environment, with the variables that commands have set.
    pub(crate) variables: HashMap<String, String>,
    /// The server, in its own terminal.
    server: Option<Running>,
    /// The programs in other terminals.
    others: Vec<Running>,
}

/// A command that runs until it is stopped.
struct Running {
    process: Child,
    /// Its output. Nobody reads it, but the pipe stays open.
    _out: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Reader {
    pub(crate) fn new() -> Self {
        let (directory, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(server_binary(), programs.path().join("payments-server")).unwrap();
        for (name, script) in [("sudo", "shift 2\nexec \"$@\""), ("chown", "exit")] {
            let program = programs.path().join(name);
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
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
            ("PAYMENTS_URL", format!("http://{address}")),
            ("RECEIVER_LISTEN", "127.0.0.1:0".into()),
            ("SHOP_LISTEN", "127.0.0.1:0".into()),
        ] {
            variables.insert(name.into(), value);
        }
        Self { directory, programs, address, variables, server: None, others: Vec::new() }
    }

    /// A shell with a printed command, adapted to this machine.
    fn shell(&self, command: &str) -> Command {
        let mut text = command.replace("127.0.0.1:8080", &self.address).replace("/var/lib/payments", "payments-data");
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

    /// Runs a command to its end. Returns its output.
    pub(crate) fn run(&mut self, command: &str) -> String {
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

    /// Runs a command whose id the README omits. The command is valid, and is refused because nothing has the id.
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

    /// Types a command. Returns its output.
    pub(crate) fn type_in(&mut self, command: &str) -> String {
        let bare = command.split(" #").next().unwrap_or_default().trim();
        match bare {
            _ if is_not_typed(bare) => String::new(),
            _ if bare.starts_with("cargo run -p ") => {
                let name = bare.split(' ').skip_while(|word| *word != "--bin").nth(1).unwrap();
                let program = Path::new(server_binary()).with_file_name(name);
                assert!(program.exists(), "build {name} first: cargo build --workspace");
                self.others.push(self.start(&format!("exec {}", program.display()), "http://"));
                String::new()
            }
            "cargo run --release" => self.serve("payments-server"),
            "payments-server serve" => self.serve(bare),
            "systemctl stop payments-server" => self.stop(),
            "systemctl start payments-server" => self.serve("payments-server serve"),
            _ if bare.starts_with("payments-server serve ") => self.serve(bare),
            _ if bare.starts_with("payments-server listen ") => {
                self.others.push(self.start(bare, "whsec_"));
                String::new()
            }
            _ if bare.contains("_...") => {
                self.run_with_unknown_id(command);
                String::new()
            }
            _ => self.run(command),
        }
    }

    /// Stops the server.
    fn stop(&mut self) -> String {
        if let Some(mut server) = self.server.take() {
            Command::new("kill").arg(server.process.id().to_string()).status().unwrap();
            assert!(server.process.wait().unwrap().success());
        }
        String::new()
    }

    /// Starts a server instead of the last one.
    pub(crate) fn serve(&mut self, command: &str) -> String {
        self.stop();
        self.server = Some(self.start(command, "listening on http://"));
        String::new()
    }
}
