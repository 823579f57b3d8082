//! The embedded store on a simulated disk. It has no threads: its caller runs all background work.

use std::{error::Error, path::Path, sync::Arc};

use journaled_tree::{
    BackupError, Closing, Database, Options, Restored, Sources,
    simulation::{self, SimulatedDisk, Worker},
};

use super::{EmbeddedStore, open::OpenError};
use crate::{
    StoreError,
    ambient::Ambient,
    bytes::{Bytes, KeysOfPlace},
};

/// The size at which a journal file is full. It is small, so that a run has many files.
const JOURNAL_FILE_BYTES: u64 = 1 << 17;

impl EmbeddedStore {
    /// Opens the store of a simulated disk. It voids no claim on an idempotency key, because the servers that made the claims
    /// may still run. `on_stop` is called when the store cannot go on.
    pub fn open_simulated(
        disk: &SimulatedDisk,
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        on_stop: impl Fn(&'static str, &dyn Error) + Send + Sync + 'static,
    ) -> Result<(Self, Closing), OpenError> {
        let options = Options::new(directory, KeysOfPlace)
            .simulated(disk)
            .journal_file_bytes(JOURNAL_FILE_BYTES)
            .clock(move || ambient.now().as_millis())
            .on_stop(on_stop);
        Self::open_with(options, directory, |_, _| ())
    }

    /// The store's place for bytes.
    pub fn place_simulated(&self) -> &impl Bytes {
        &*self.bytes
    }

    pub fn database_simulated(&self) -> &Database {
        &self.bytes.0
    }

    /// Commits enough to fill a journal file, and does the work that follows.
    pub fn grow_simulated(&self) -> Result<(), String> {
        let database = self.database_simulated();
        for part in [0_u8, 1] {
            let bytes = vec![part; usize::try_from(JOURNAL_FILE_BYTES).unwrap_or_default()];
            let put = move |view: &mut journaled_tree::View<'_>| {
                view.put([&b"simulated/"[..], &[part]].concat(), bytes);
                Ok::<_, StoreError>(())
            };
            database.commit_blocking(put).map_err(|error| error.to_string())?;
            for worker in [Worker::Committer, Worker::Applier, Worker::Committer, Worker::Archivist] {
                while database.step(worker) {}
            }
        }
        Ok(())
    }

    /// Restores a store from a backup and the journal of the lost store.
    pub fn restore_simulated(
        disk: &SimulatedDisk,
        backup: Option<&Path>,
        journal: Option<&Path>,
        directory: &Path,
    ) -> Result<Restored, BackupError> {
        let sources = Sources { backup, journal, until: None };
        simulation::restore(disk, &sources, directory, KeysOfPlace)
    }
}
