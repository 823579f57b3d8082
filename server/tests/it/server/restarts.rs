//! How a test's server stops and starts again.

use std::{
    fs,
    process::{Command, ExitStatus},
};

use test_support::cluster::Cluster;

use super::{DATABASE, Server, launch, server_binary, spawn};
use crate::{
    engine::{END_LEASES, run_sql},
    migrate::moved,
};

impl Server {
    /// `kill -9`, then a restart on the same data and port.
    pub(crate) fn crash_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Restarts on the same data and port. On a database, the killed server's leases end now instead of after a minute.
    pub(crate) fn restart(&mut self) {
        if let Some(url) = self.database() {
            run_sql(url, END_LEASES);
        }
        let address = self.address();
        (self.process, self.url) = spawn(self.directory.path(), address, &self.arguments);
    }

    /// Restarts on the same data and port with other arguments. The server must have stopped.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
        self.restart();
    }

    /// Restarts on a database, or on the directory without one. The server must have stopped.
    pub(crate) fn restart_on(&mut self, database: Option<&str>) {
        if let Some(flag) = self.arguments.iter().position(|argument| argument == DATABASE) {
            self.arguments.drain(flag..flag + 2);
        }
        self.arguments.extend(database.into_iter().flat_map(|url| [DATABASE.to_owned(), url.to_owned()]));
        self.restart();
    }

    /// `kill -9`, then moves the store to a new place on the other engine, and starts there.
    pub(crate) fn migrate(&mut self) {
        self.kill();
        let (data, database) = (self.data(), self.database().map(str::to_owned));
        let target = database.is_none().then(|| Cluster::shared().new_database());
        let directory = data.to_str().unwrap();
        moved(database.as_deref().unwrap_or(directory), target.as_deref().unwrap_or(directory));
        if target.is_some() {
            fs::remove_dir_all(&data).unwrap();
        }
        self.restart_on(target.as_deref());
    }

    /// Does the same as [`Self::restart_with`] and returns the server.
    pub(crate) fn restarted_with(mut self, arguments: &[&str]) -> Self {
        self.restart_with(arguments);
        self
    }

    /// `kill -9`, then a restart with more environment variables.
    pub(crate) fn restart_in(&mut self, variables: &[(&str, &str)]) {
        self.kill();
        let address = self.address().to_owned();
        let mut command = Command::new(server_binary());
        command.envs(variables.iter().copied());
        (self.process, self.url) = launch(command, self.directory.path(), &address, &self.arguments);
    }

    /// Sends SIGTERM and returns the exit status.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        self.process.wait().unwrap()
    }

    /// Waits for the process to exit by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Skips the check of its database at the end of the test, because nothing answers at its URL.
    pub(crate) fn has_no_database_to_check(&mut self) {
        self.arguments.clear();
    }
}
