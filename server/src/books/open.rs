//! Opening a store to read all of it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::Failure;
use crate::{
    admin_socket,
    ambient::OperatingSystem,
    metrics::Metrics,
    service::{AdminReply, AdminRequest},
    store::sled::{self, Closing, OpenError, SledStore},
};

/// How long a lock is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Opens the store of a directory, hands it to `read`, and closes it. Of a running server's store it is a copy as of one
/// moment, made by the server and removed afterwards. A directory without a store is refused: none is made to be read.
pub(super) async fn with_store<T: Send + 'static>(
    directory: &Path,
    read: impl FnOnce(&SledStore) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if !directory.join("sled").exists() {
        return Err(format!("there is no store in {}; name its directory with --data-dir", directory.display()).into());
    }
    // On the disk that has room for the store, and readable by those who may read it.
    let copy = Temporary(std::path::absolute(directory)?.join(format!("copy-{}", std::process::id())));
    let request = AdminRequest::BackUp { directory: copy.0.join("backup") };
    let copied = match admin_socket::ask(directory, &request).await? {
        None => false,
        Some(AdminReply::BackedUp(_)) => true,
        Some(AdminReply::Error { error }) => return Err(error.into()),
        Some(_) => return Err("the running server is of another version; use its own command line".into()),
    };
    let directory = directory.to_owned();
    tokio::task::spawn_blocking(move || {
        let directory = match copied {
            true => {
                let store = copy.0.join("store");
                let backup = copy.0.join("backup");
                sled::restore(&sled::Sources { backup: Some(&backup), ..sled::Sources::default() }, &store)?;
                store
            }
            false => directory,
        };
        let (store, closing) = open(&directory)?;
        let outcome = read(&store);
        drop(store);
        closing.wait();
        drop(copy);
        outcome
    })
    .await?
}

/// The engine's own threads can hold the lock of what this process has just restored for a moment longer.
fn open(directory: &Path) -> Result<(SledStore, Closing), OpenError> {
    let begun = Instant::now();
    loop {
        // Deliveries that are owed wait for the server.
        let (outbox, _woken) = mpsc::unbounded_channel();
        match SledStore::open(directory, outbox, Arc::new(OperatingSystem), Metrics::new().commits) {
            Err(OpenError::InUse { .. }) if begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(20)),
            outcome => return outcome,
        }
    }
}

/// A directory that is removed when it is no longer needed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_dir_all(&self.0);
    }
}
