//! Opens a store as of one moment, to read all of it: a directory, a copy of a running server's store, or a database.

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

use super::store_copy::{StoreCopy, remove_abandoned_copies};
use crate::{
    administration,
    ambient::OperatingSystem,
    cli::CommandError,
    commands::{connection::unexpected, no_store::no_store_in},
    service::{AdminReply, AdminRequest},
    store::{
        Location, Snapshot,
        embedded::{self, Closing, EmbeddedStore, OpenError},
        postgres::PostgresSnapshot,
    },
};

const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Passes a store to `read`, as of one moment. Returns an error if there is none.
pub(super) async fn with_snapshot<T: Send + 'static>(
    location: Location,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    match location {
        Location::Directory(directory) => with_store(&directory, read).await,
        Location::Database(target) => {
            let work = async {
                let snapshot = PostgresSnapshot::open(&target).await?;
                tokio::task::spawn_blocking(move || read(&snapshot)).await?
            };
            unless_interrupted(work).await
        }
    }
}

/// Opens the store of a directory, passes it to `read`, and closes it. If a server runs on the directory, opens a copy as of
/// one moment instead, and removes the copy afterwards.
async fn with_store<T: Send + 'static>(
    directory: &Path,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    if !embedded::is_there(directory) {
        return Err(no_store_in(directory, "--data-dir").into());
    }
    remove_abandoned_copies(directory)?;
    // The copy is in the data directory, which has enough space and the right permissions.
    let copy = StoreCopy::create(directory)?;
    let (backup, restored) = (copy.path().join("backup"), copy.path().join("store"));
    // An interruption drops `copy`, which removes it.
    unless_interrupted(async {
        let request = AdminRequest::BackUp { directory: backup.clone() };
        let is_copied = match administration::ask_socket(directory, &request).await? {
            None => false,
            Some(AdminReply::BackedUp(_)) => true,
            Some(AdminReply::Error { error, .. }) => return Err(error.into()),
            Some(_) => return Err(unexpected()),
        };
        let mut directory = directory.to_owned();
        tokio::task::spawn_blocking(move || {
            if is_copied {
                directory = restored;
                embedded::restore(&embedded::Sources { backup: Some(&backup), ..Default::default() }, &directory)?;
            }
            let (store, closing) = open(&directory)?;
            let outcome = read(&store);
            drop(store);
            closing.wait();
            outcome
        })
        .await?
    })
    .await
}

async fn unless_interrupted<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    tokio::select! {
        outcome = work => outcome,
        interrupted = interrupted() => interrupted.and(Err("interrupted; nothing was changed".into())),
    }
}

pub(super) async fn interrupted() -> Result<(), CommandError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// Opens the store. Retries, because the engine's threads release the lock shortly after a restore in this process.
fn open(directory: &Path) -> Result<(EmbeddedStore, Closing), OpenError> {
    let begun = Instant::now();
    loop {
        match EmbeddedStore::open(directory, Arc::new(OperatingSystem), |_, _| ()) {
            Err(error) if error.is_in_use() && begun.elapsed() < LOCK_TIMEOUT => {
                thread::sleep(Duration::from_millis(20));
            }
            outcome => return outcome,
        }
    }
}
