//! The stores of a running server: opening and closing.

use std::{path::PathBuf, sync::Arc};

use crate::{
    ambient::Ambient,
    domain::Workspace,
    failure::Failure,
    file_modes,
    metrics::Metrics,
    operations,
    store::{
        Store,
        disposable::Disposable,
        embedded::{Closing, EmbeddedStore},
        sandboxed::Sandboxed,
    },
};

/// The main store, and the sandbox's store if it has a separate one.
pub(super) struct Stores {
    store: Arc<dyn Store>,
    sandbox: Option<Arc<Disposable>>,
    closing: Closing,
    directory: PathBuf,
    ambient: Arc<dyn Ambient>,
    metrics: Metrics,
}

impl Stores {
    /// Opens the main store.
    pub(super) fn open(directory: PathBuf, ambient: Arc<dyn Ambient>, metrics: Metrics) -> Result<Self, Failure> {
        operations::remove_abandoned_copies(&directory)?;
        let commits = metrics.commits.clone();
        let (store, closing) = EmbeddedStore::open(&directory, Arc::clone(&ambient), commits)?;
        file_modes::warn_of_readable(&directory);
        Ok(Self { store: Arc::new(store), sandbox: None, closing, directory, ambient, metrics })
    }

    /// Opens a separate store of at most `max_mib` for the sandbox's workspace. Without a workspace, removes an earlier
    /// run's store.
    pub(super) async fn set_sandbox(&mut self, workspace: Option<Workspace>, max_mib: u32) -> Result<(), Failure> {
        let directory = self.directory.join("sandbox");
        let Some(workspace) = workspace else { return Ok(Disposable::remove_left(&directory)?) };
        let (ambient, gauges) = (Arc::clone(&self.ambient), self.metrics.sandbox.clone());
        let max_bytes = u64::from(max_mib) * 1024 * 1024;
        let sandbox = Arc::new(Disposable::open(directory, max_bytes, workspace, ambient, gauges).await?);
        self.store = Arc::new(Sandboxed { lasting: Arc::clone(&self.store), sandbox: Arc::clone(&sandbox) });
        self.sandbox = Some(sandbox);
        Ok(())
    }

    /// The stores behind one interface.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The worker that replaces the sandbox's store when it is old or large.
    pub(super) fn renewal(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.sandbox.clone().map(Disposable::renew)
    }

    /// Closes the stores and waits for their threads. The caller must have dropped all other handles.
    pub(super) fn close(self) {
        drop(self.store);
        if let Some(sandbox) = self.sandbox.and_then(Arc::into_inner) {
            sandbox.close();
        }
        self.closing.wait();
    }
}
