//! A disposable store: an empty one replaces it when it is a day old or too large.
//!
//! A store never shrinks, because its journal is kept and lists only grow. So strangers write to a disposable store. The name
//! of its directory is the time at which it began, such as `sandbox/1764000000000`. A start removes all other stores.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use payments_core::{DeveloperId, Timestamp};
use tokio::{
    task::spawn_blocking,
    time::{interval, sleep},
};

use crate::{
    ambient::Ambient,
    domain::Workspace,
    metrics::SandboxGauges,
    store::{
        Change, Store, Write,
        embedded::{Closing, EmbeddedStore, OpenError},
    },
};

/// The longest life of a store.
const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often the store's size and age are checked.
const EVERY: Duration = Duration::from_secs(1);
/// How long to wait before the next try, if a new store cannot be made.
const REST: Duration = Duration::from_secs(30);
/// How long requests and workers may still use a store when the server stops.
const LAST_USES: Duration = Duration::from_secs(30);
/// How many times to try to remove a store's directory. Its archiver may still be writing a file.
const REMOVALS: usize = 100;

/// A place for disposable stores. One of them is present.
pub struct Disposable {
    directory: PathBuf,
    max_bytes: u64,
    /// The sandbox's workspace, which every new store gets.
    workspace: Workspace,
    ambient: Arc<dyn Ambient>,
    gauges: SandboxGauges,
}

/// A disposable store that is open.
pub struct Present {
    /// Each user of the store has a handle. The store stays open for it, even if another store replaces it.
    store: EmbeddedStore,
    closing: Closing,
    directory: PathBuf,
    begun: Timestamp,
}

impl Disposable {
    /// Opens the store that an earlier run left in a directory. Begins a new one if that store is due for replacement or does
    /// not open. Removes all others. Fails if another server uses the directory.
    pub async fn open(
        directory: PathBuf,
        max_bytes: u64,
        workspace: Workspace,
        ambient: Arc<dyn Ambient>,
        gauges: SandboxGauges,
    ) -> Result<(Self, Present), OpenError> {
        let now = ambient.now();
        let left = left_in(&directory)?;
        let last = left.last().filter(|(begun, path)| !is_due(*begun, now, bytes_in(path), max_bytes));
        let opened = match last.map(|(begun, path)| Present::open(path, *begun, &ambient)) {
            Some(Err(error)) if error.is_in_use() => return Err(error),
            Some(Err(error)) => {
                tracing::warn!(%error, "the sandbox's store cannot be opened; it starts empty");
                None
            }
            Some(Ok(opened)) => Some(opened),
            None => None,
        };
        for (_, path) in &left {
            if opened.as_ref().is_none_or(|opened| opened.directory != *path) {
                fs::remove_dir_all(path)?;
            }
        }
        let present = match opened {
            Some(present) => present,
            None => Present::begin(&directory, &workspace, &ambient).await?,
        };
        Ok((Self { directory, max_bytes, workspace, ambient, gauges }, present))
    }

    /// The developer whose records this store is for.
    pub fn developer(&self) -> &DeveloperId {
        &self.workspace.developer_id
    }

    /// Waits until a store is due for replacement, and begins the next one.
    pub async fn next(&self, present: &Present) -> Present {
        let mut ticks = interval(EVERY);
        loop {
            ticks.tick().await;
            let bytes = bytes_in(&present.directory);
            self.gauges.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
            if !is_due(present.begun, self.ambient.now(), bytes, self.max_bytes) {
                continue;
            }
            match Present::begin(&self.directory, &self.workspace, &self.ambient).await {
                Ok(next) => {
                    self.gauges.renewals.inc();
                    tracing::info!(bytes, "the sandbox was emptied");
                    return next;
                }
                Err(error) => {
                    tracing::error!(%error, "the sandbox cannot be emptied; trying again");
                    sleep(REST).await;
                }
            }
        }
    }

    /// Removes the stores of an earlier run, on a server that has no disposable store now.
    pub fn remove_left(directory: &Path) -> io::Result<()> {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Present {
    fn open(directory: &Path, begun: Timestamp, ambient: &Arc<dyn Ambient>) -> Result<Self, OpenError> {
        // The operator's metrics count only the lasting store's commits.
        let (store, closing) = EmbeddedStore::open(directory, Arc::clone(ambient), |_, _| ())?;
        Ok(Self { store, closing, directory: directory.to_owned(), begun })
    }

    /// Begins a store with the sandbox's workspace. If that fails, removes it: the disk may be full.
    async fn begin(directory: &Path, workspace: &Workspace, ambient: &Arc<dyn Ambient>) -> Result<Self, OpenError> {
        // The new name is later than those of all earlier stores, even if the clock stepped back.
        let last = left_in(directory)?.last().map_or(i64::MIN, |(begun, _)| begun.as_millis());
        let now = ambient.now();
        let begun = Timestamp::from_millis(now.as_millis().max(last.saturating_add(1))).unwrap_or(now);
        let (path, ambient) = (directory.join(begun.as_millis().to_string()), Arc::clone(ambient));
        let open = move || Self::open(&path, begun, &ambient).inspect_err(|_| remove_directory(&path));
        let present = spawn_blocking(open).await.map_err(io::Error::other)??;
        let own = Write::Workspace(Workspace { version: 0, ..workspace.clone() });
        if let Err(error) = present.store.commit(Change::of(own)).await {
            let _ = spawn_blocking(|| present.remove()).await;
            return Err(io::Error::other(error).into());
        }
        Ok(present)
    }

    pub fn store(&self) -> Arc<Store> {
        self.store.store()
    }

    /// Closes the store of a stopping server when nobody uses it any more.
    pub fn close(self) {
        self.close_within(LAST_USES);
    }

    /// Closes the store when nobody uses it any more. If that takes longer than `at_most`, leaves it open.
    fn close_within(self, at_most: Duration) {
        let begun = Instant::now();
        while self.store.is_used() && begun.elapsed() < at_most {
            thread::sleep(Duration::from_millis(5));
        }
        if !self.store.is_used() {
            drop(self.store);
            self.closing.wait();
        }
    }

    /// Removes the store when nobody uses it any more. If its journal vanished earlier, its engine would stop the process.
    pub fn remove(self) {
        let directory = self.directory.clone();
        self.close_within(Duration::MAX);
        remove_directory(&directory);
    }
}

/// The stores in a directory, oldest first.
fn left_in(directory: &Path) -> io::Result<Vec<(Timestamp, PathBuf)>> {
    let mut left = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(left),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let begun = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        left.extend(begun.and_then(|millis| Timestamp::from_millis(millis).ok()).map(|begun| (begun, path)));
    }
    left.sort();
    Ok(left)
}

fn is_due(begun: Timestamp, now: Timestamp, bytes: u64, max_bytes: u64) -> bool {
    // If the clock is set back, the store lives longer, but at most twice its usual life.
    let age = now.as_millis().abs_diff(begun.as_millis());
    bytes > max_bytes || u128::from(age) >= LIFE.as_millis()
}

/// The length of all files below a directory. A file that is removed during the count has length zero.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn remove_directory(directory: &Path) {
    for _ in 0..REMOVALS {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(Duration::from_millis(50)),
            _ => return,
        }
    }
    tracing::warn!(directory = %directory.display(), "a store of the sandbox was not removed; the next start does");
}

#[cfg(test)]
mod tests;
