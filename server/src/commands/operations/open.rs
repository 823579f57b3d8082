//! Opens a store as of one moment, to read all of it: a directory, a copy of a running server's store, or a database.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

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
    let copy = StoreCopy::create(directory).map_err(|error| OpenError::unusable(error, directory))?;
    let (backup, restored) = (copy.path.join("backup"), copy.path.join("store"));
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

/// Maximum tries to remove a copy. If all fail, the next copy or the server's next start removes it.
const MAX_REMOVAL_ATTEMPTS: usize = 50;
/// How many tries must find no copy. A thread that is interrupted while it writes may create the directory again.
const ATTEMPTS_WITHOUT_COPY: usize = 5;

/// Directory name of a copy: this prefix and the id of the process that reads it.
const COPY_PREFIX: &str = "copy-";

/// A directory for a copy of the store, removed on drop.
struct StoreCopy {
    path: PathBuf,
    /// Locked while the process reads the copy. A copy with a free lock is abandoned.
    _lock: File,
}

impl StoreCopy {
    fn create(data_directory: &Path) -> io::Result<Self> {
        let path = std::path::absolute(data_directory)?.join(format!("{COPY_PREFIX}{}", std::process::id()));
        fs::create_dir(&path)?;
        let lock = File::create(path.join("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for StoreCopy {
    fn drop(&mut self) {
        // Retry, because the server or a thread of this process may still be writing to it.
        let mut without_copy = 0;
        for _ in 0..MAX_REMOVAL_ATTEMPTS {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => without_copy += 1,
                _ => without_copy = 0,
            }
            if without_copy == ATTEMPTS_WITHOUT_COPY {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Removes the copies of processes that were killed.
pub fn remove_abandoned_copies(data_directory: &Path) -> Result<(), OpenError> {
    remove_abandoned_in(data_directory).map_err(|error| OpenError::unusable(error, data_directory))
}

fn remove_abandoned_in(data_directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(data_directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // Leave an operator's own backups alone.
        let process = name.to_str().and_then(|name| name.strip_prefix(COPY_PREFIX)).map(str::parse::<u32>);
        if !matches!(process, Some(Ok(_))) || !entry.file_type()?.is_dir() {
            continue;
        }
        let is_held = File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_err());
        if !is_held {
            tracing::warn!(directory = %entry.path().display(), "removing an abandoned copy of the store");
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
