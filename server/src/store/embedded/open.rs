//! Opens a store.

use std::{io, path::Path, process, sync::Arc};

use journaled_tree::{Closing, Database, Options, Read};

use super::{
    EmbeddedStore, keys,
    layout::{FORMAT, Layout},
    migrate,
    view::View,
};
use crate::{ambient::Ambient, metrics::Commits, store::StoreError};

impl EmbeddedStore {
    /// Opens the store of a directory, or makes one if the directory is missing or empty.
    pub(crate) fn open(
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        let outbox = commits.outbox.clone();
        let (database, closing) = Options::new(directory, Layout)
            .clock(move || ambient.now().as_millis())
            .on_sync(move |changes, took| commits.synced(changes, took))
            .on_stop(|what, error| {
                tracing::error!(%error, "{what}; the server stops, start it again to recover from the journal");
                process::exit(74)
            })
            .open()?;
        bring_up_to_date(&database)?;
        // The process that made them is gone.
        write(&database, |mut view| view.void_claims())?;
        let mut pending = 0;
        for entry in database.prefix(keys::OUTBOX) {
            entry.map_err(StoreError::from)?;
            pending += 1;
        }
        outbox.set(pending);
        Ok((Self { database, leases: Arc::default(), outbox }, closing))
    }
}

/// Whether there is a store in a directory.
pub(crate) fn is_there(directory: &Path) -> bool {
    directory.join(journaled_tree::TREE_DIRECTORY).exists()
}

fn bring_up_to_date(database: &Database) -> Result<(), OpenError> {
    let found = database.format().map_err(StoreError::from)?;
    if found == FORMAT {
        return Ok(());
    }
    tracing::warn!(found, present = FORMAT, "an earlier version wrote this store; it is brought up to date");
    while !write(database, migrate::step)? {}
    tracing::warn!(format = FORMAT, "an earlier version wrote this store; it has been brought into the present format");
    Ok(())
}

/// Commits a change of the start's own.
fn write<T: Send + 'static>(
    database: &Database,
    decide: impl FnOnce(View<'_, '_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    database.commit_blocking(|view| decide(View(view))).map_err(|error| match error {
        journaled_tree::CommitError::Refused(error) => error,
        error => StoreError::unavailable(error.to_string()),
    })
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("{0}; payments-server restore makes one of them")]
    Damaged(#[source] journaled_tree::OpenError),
    #[error(transparent)]
    Engine(journaled_tree::OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl OpenError {
    /// Whether another process has it open.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self, Self::Engine(journaled_tree::OpenError::InUse { .. }))
    }
}

impl From<journaled_tree::OpenError> for OpenError {
    fn from(error: journaled_tree::OpenError) -> Self {
        match error {
            journaled_tree::OpenError::Damaged { .. } | journaled_tree::OpenError::HalfAStore { .. } => {
                Self::Damaged(error)
            }
            error => Self::Engine(error),
        }
    }
}
