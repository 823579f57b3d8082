//! The embedded store on a simulated disk, where nothing runs by itself.

use std::{error::Error, path::Path, sync::Arc};

use journaled_tree::{
    BackupError, Closing, Manifest, Options, Restored, Sources,
    simulation::{self, SimulatedDisk, Worker},
};

use super::{EmbeddedStore, layout::Layout, open::OpenError};
use crate::{ambient::Ambient, metrics::Commits, store::Leases};

/// How large a journal file grows before the next one begins: small, so that a run has many.
const JOURNAL_FILE_BYTES: u64 = 1 << 17;

impl EmbeddedStore {
    /// Opens the store of a simulated disk. Servers may outlive it, so the claims on work stay, and those on idempotency keys:
    /// a database that starts again voids none. `on_stop` is called when the store cannot go on.
    pub(crate) fn open_simulated(
        disk: &SimulatedDisk,
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
        leases: Arc<Leases>,
        on_stop: impl Fn(&'static str, &dyn Error) + Send + Sync + 'static,
    ) -> Result<(Self, Closing), OpenError> {
        let options = Options::new(directory, Layout)
            .simulated(disk)
            .journal_file_bytes(JOURNAL_FILE_BYTES)
            .clock(move || ambient.now().as_millis())
            .on_stop(on_stop);
        Self::open_with(options, directory, commits, leases)
    }

    /// Backs up the store.
    pub(crate) fn back_up_simulated(&self, directory: &Path) -> Result<Manifest, BackupError> {
        self.database.back_up_blocking(directory)
    }

    /// Restores a store from a backup, if there is one, and the journal of the one that was lost.
    pub(crate) fn restore_simulated(
        disk: &SimulatedDisk,
        backup: Option<&Path>,
        journal: &Path,
        directory: &Path,
    ) -> Result<Restored, BackupError> {
        let sources = Sources { backup, journal: Some(journal), until: None };
        simulation::restore(disk, &sources, directory, Layout)
    }

    /// Does the next piece of a worker's work. False if there is none.
    pub(crate) fn step(&self, worker: Worker) -> bool {
        self.database.step(worker)
    }
}
