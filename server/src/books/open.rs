//! Opening a store to read all of it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use crate::{
    admin_socket,
    ambient::OperatingSystem,
    metrics::Metrics,
    service::{AdminReply, AdminRequest},
    store::{
        Maintenance,
        embedded::{self, Closing, EmbeddedStore, OpenError},
    },
};

/// How long a lock is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Opens the store of a directory, hands it to `read`, and closes it. Of a running server's store it is a copy as of one
/// moment, made by the server and removed afterwards. A directory without a store is refused: none is made to be read.
pub(super) async fn with_store<T: Send + 'static>(
    directory: &Path,
    read: impl FnOnce(&dyn Maintenance) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if !embedded::is_there(directory) {
        return Err(format!("there is no store in {}; name its directory with --data-dir", directory.display()).into());
    }
    remove_left_copies(directory)?;
    // On the disk that has room for the store, and readable by those who may read it.
    let copy = Copy::begin(directory)?;
    let work = with_copy(directory, copy.path.clone(), read);
    tokio::select! {
        outcome = work => outcome,
        // The copy goes with it.
        () = interrupted() => Err("interrupted; nothing was changed".into()),
    }
}

async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

async fn with_copy<T: Send + 'static>(
    directory: &Path,
    copy: PathBuf,
    read: impl FnOnce(&dyn Maintenance) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let request = AdminRequest::BackUp { directory: copy.join("backup") };
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
                let (store, backup) = (copy.join("store"), copy.join("backup"));
                embedded::restore(&embedded::Sources { backup: Some(&backup), ..Default::default() }, &store)?;
                store
            }
            false => directory,
        };
        let (store, closing) = open(&directory)?;
        let outcome = read(&store);
        drop(store);
        closing.wait();
        outcome
    })
    .await?
}

/// The engine's own threads can hold the lock of what this process has just restored for a moment longer.
fn open(directory: &Path) -> Result<(EmbeddedStore, Closing), OpenError> {
    let begun = Instant::now();
    loop {
        match EmbeddedStore::open(directory, Arc::new(OperatingSystem), Metrics::new().commits) {
            Err(error) if error.is_in_use() && begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(20)),
            outcome => return outcome,
        }
    }
}

/// How often it is tried to remove a copy. What is left then is removed with the next copy, or by the server's next start.
const REMOVALS: usize = 50;

/// What the names of copies begin with, in the data directory; the number of the process that reads one follows.
const COPY: &str = "copy-";

/// A directory for a copy of the store, removed when it is no longer needed.
struct Copy {
    path: PathBuf,
    /// Locked for as long as somebody reads the copy: what nobody holds was left by a process that is gone.
    _lock: File,
}

impl Copy {
    fn begin(data_directory: &Path) -> io::Result<Self> {
        let path = std::path::absolute(data_directory)?.join(format!("{COPY}{}", std::process::id()));
        fs::create_dir(&path)?;
        let lock = File::create(path.join("lock"))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // The server may be writing to it at this moment, and cannot go on once it is gone.
        for _ in 0..REMOVALS {
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Removes the copies that nobody reads any more: whoever made them was killed.
pub(crate) fn remove_left_copies(data_directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(data_directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // A backup that an operator has put there has another name.
        let process = name.to_str().and_then(|name| name.strip_prefix(COPY)).map(str::parse::<u32>);
        if !matches!(process, Some(Ok(_))) || !entry.file_type()?.is_dir() {
            continue;
        }
        let is_held = match File::open(entry.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_err(),
            Err(_) => false,
        };
        if !is_held {
            tracing::warn!(directory = %entry.path().display(), "a copy that nobody reads any more is removed");
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
