//! Opening a store to read all of it.

use std::path::Path;

use tokio::sync::mpsc;

use super::Failure;
use crate::store::sled::SledStore;

/// Opens the store of a directory, hands it to `read`, and closes it. A directory without a store is refused: none is
/// made to be read.
pub(super) async fn with_store<T: Send + 'static>(
    directory: &Path,
    read: impl FnOnce(&SledStore) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if !directory.join("sled").exists() {
        return Err(format!("there is no store in {}; name its directory with --data-dir", directory.display()).into());
    }
    let directory = directory.to_owned();
    tokio::task::spawn_blocking(move || {
        // Deliveries that are owed wait for the server.
        let (outbox, _woken) = mpsc::unbounded_channel();
        let (store, closing) = SledStore::open(&directory, outbox)?;
        let outcome = read(&store);
        drop(store);
        closing.wait();
        outcome
    })
    .await?
}
