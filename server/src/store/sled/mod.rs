//! The store on sled: one directory, one process.
//!
//! The committer makes changes durable (`committer`), by the journal (`journal`), and the applier brings them to sled
//! (`applier`). `tables` says what a write does to the records and `keys` where each lies. Reads find what is durable, in sled
//! or before it (`records`).

mod applier;
mod backup;
mod check;
mod claims;
mod codec;
mod committer;
mod deliveries;
mod engine;
mod journal;
mod keys;
mod maintenance;
mod migrate;
mod outbox;
mod packed;
mod pages;
mod pending;
mod records;
mod responses;
mod squeezed;
mod stop;
mod store;
mod stored;
mod tables;
#[cfg(test)]
mod tests;
mod until;
mod view;
mod whole_file;
mod work;

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread,
};

pub(crate) use self::{
    backup::{Sources, needs_after, restore},
    check::check_journal,
    until::{LeftOut, Restored, Until},
};

use prometheus_client::metrics::gauge::Gauge;
use serde::de::DeserializeOwned;

use self::{
    applier::{Applier, Replay},
    backup::Copier,
    committer::Committer,
    journal::{Archivist, Journal, JournalError, Retention, Writes},
    records::Records,
};
use super::{Leases, StoreError};
use crate::{ambient::Ambient, metrics::Commits};

/// The layout of `keys`. A store of another number is not opened.
const FORMAT: u32 = 6;

/// A store in a directory.
pub(crate) struct SledStore {
    records: Records,
    leases: Arc<Leases>,
    /// How many deliveries are pending.
    outbox: Gauge,
    copier: Copier,
    /// Last, so that it is dropped last: whoever waits for its thread finds everything else let go of.
    committer: Committer,
}

/// Waits for the committer to finish, once the store itself is gone.
pub(crate) struct Closing {
    committer: thread::JoinHandle<()>,
    engine: PathBuf,
    mark: PathBuf,
    /// Held until the store is closed.
    _lock: File,
}

/// The file that whoever has a store open holds a lock on. Its text is the number of that process.
const LOCK: &str = "lock";
/// A file that is there while a store is open: where it is found at the start, the last end was not in order.
const MARK: &str = "open";

impl Closing {
    pub(crate) fn wait(self) {
        // A committer that panicked has ended the process already.
        let _ = self.committer.join();
        // An end is in order when all that sled ever writes is on the disk.
        if let Err(error) = engine::sync_closed(&self.engine).and_then(|()| fs::remove_file(&self.mark)) {
            tracing::warn!(%error, "the next start will say that this end was not in order");
        }
    }
}

impl SledStore {
    /// Opens the store of a directory, or makes one where the directory is missing or empty.
    pub(crate) fn open(
        directory: &Path,
        ambient: Arc<dyn Ambient>,
        commits: Commits,
    ) -> Result<(Self, Closing), OpenError> {
        // Webhook secrets lie in there in clear, so it is nobody else's to read.
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // sled has a lock of its own, but a start does something before that and beside it.
        let lock = lock(directory)?;
        let engine_directory = directory.join("sled");
        let journal_directory = directory.join("journal");
        engine::finish_making_anew(&engine_directory)?;
        if journal_directory.exists() && !engine_directory.exists() {
            return Err(OpenError::HalfAStore { missing: engine_directory });
        }
        let mark = directory.join(MARK);
        let after_crash = mark.exists();
        // Nobody was ever answered by a store that was never open.
        let is_new = !after_crash && !journal::is_begun(&journal_directory)?;
        let tree = match engine::open(&engine_directory).and_then(|tree| with_its_mark(tree, &engine_directory)) {
            Err(error @ OpenError::Damaged { .. }) if is_new => engine::begin_again(&engine_directory, &error)?,
            // A power cut can leave sled's file so, even one soon after an orderly end; the journal can make it anew.
            Err(error @ OpenError::Damaged { .. }) if journal_directory.exists() => {
                engine::make_anew(&engine_directory, &journal_directory, error)?
            }
            opened => opened?,
        };
        if let Some(found) = format_of(&tree)?.filter(|found| *found < FORMAT) {
            tracing::warn!(found, present = FORMAT, "an earlier version wrote this store; it is brought up to date");
        }
        let applied = codec::read(&tree, keys::APPLIED).map_err(OpenError::Store)?.unwrap_or(0);
        let (mut replayed, mut replay) = (0_u64, Replay::new(&tree));
        let mut journal = if is_new && tree.is_empty() {
            Journal::create(&journal_directory)
        } else if journal_directory.exists() {
            Journal::open(&journal_directory, applied, |number, writes| {
                replayed += 1;
                Ok(replay.add(number, writes)?)
            })
        } else {
            return Err(OpenError::HalfAStore { missing: journal_directory });
        }?;
        replay.finish().map_err(StoreError::unavailable)?;
        if after_crash {
            tracing::warn!(
                replayed,
                "the server did not shut down cleanly; the journal brought the store up to date, and what was being \
                 delivered is delivered again"
            );
        }
        fs::write(&mark, b"")?;
        for made in [&engine_directory, &journal_directory, directory] {
            whole_file::sync_directory(made)?;
        }
        if let Some(parent) = directory.canonicalize()?.parent() {
            whole_file::sync_directory(parent)?;
        }
        // Through the journal, so that it is as durable and as whole as any change.
        let mut change = |mut writes: Writes| -> Result<(), OpenError> {
            let number = journal.append(&writes).map_err(|error| OpenError::Journal(Box::new(error)))?;
            writes.insert(keys::APPLIED.to_vec(), Some(number.to_string().into_bytes()));
            Ok(applier::apply(&tree, &writes).map_err(StoreError::unavailable)?)
        };
        while let Some(writes) = migrate::next_step(&tree)? {
            change(writes)?;
        }
        let void = claims::of_a_gone_process(&tree)?;
        if !void.is_empty() {
            change(void)?;
        }
        let applied = codec::read(&tree, keys::APPLIED)?.unwrap_or(0);
        let owed = tree.scan_prefix(keys::OUTBOX).keys().count();
        commits.outbox.set(i64::try_from(owed).unwrap_or(i64::MAX));
        let retention = Arc::<Retention>::default();
        let archivist = Archivist::start(journal_directory.clone(), journal.list())?;
        let records = Records::new(tree, applied);
        let copier = Copier {
            records: records.clone(),
            journal: journal_directory,
            retention: Arc::clone(&retention),
            closing: Arc::default(),
        };
        let engine = Arc::new(File::options().write(true).open(engine_directory.join("db"))?);
        let applier = Applier::start(records.clone(), Arc::clone(&engine))?;
        let files = committer::Files { journal, archivist, applier, reserve: committer::Reserve::of(engine) };
        let (committer, thread) = Committer::start(records.clone(), files, retention, ambient, commits.clone())?;
        Ok((
            Self { records, leases: Arc::default(), outbox: commits.outbox, committer, copier },
            Closing { committer: thread, engine: engine_directory, mark, _lock: lock },
        ))
    }

    pub(super) fn each<T: DeserializeOwned>(&self, prefix: &[u8]) -> impl Iterator<Item = Result<T, StoreError>> {
        self.records.under(prefix).map(|entry| entry.and_then(|(key, json)| codec::parse(&key, &json)))
    }

    pub(super) fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.records.read(key)
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.copier.closing.store(true, Ordering::Relaxed);
    }
}

/// Takes the lock of a directory, for as long as the file is open.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK);
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let process = fs::read_to_string(path).unwrap_or_default();
            return Err(OpenError::InUse { directory: directory.to_owned(), process });
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

/// The tree, unless it holds records and not the mark of their format: then sled has lost what was written first.
fn with_its_mark(tree: sled::Db, directory: &Path) -> Result<sled::Db, OpenError> {
    if tree.is_empty() || tree.contains_key(keys::FORMAT).map_err(StoreError::unavailable)? {
        return Ok(tree);
    }
    let what = "it holds records and not the mark of their format".into();
    Err(OpenError::Damaged { directory: directory.to_owned(), what })
}

/// The format of a store, if it is not new. One of a later version is refused before anything is done to it.
fn format_of(tree: &sled::Tree) -> Result<Option<u32>, OpenError> {
    match codec::read::<u32>(tree, keys::FORMAT).map_err(OpenError::Store)? {
        Some(found) if found > FORMAT => Err(OpenError::Format { found }),
        found => Ok(found),
    }
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the data directory cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("process {process} has {directory} open; stop it, or use another --data-dir",
        directory = directory.display())]
    InUse { directory: PathBuf, process: String },
    #[error("the store in {directory} is damaged and was not opened: {what}; make it anew with payments-server restore, \
        from its journal and, if there is one, from a backup", directory = directory.display())]
    Damaged { directory: PathBuf, what: String },
    #[error("{missing} is missing, the other half of the store is there; it was not opened; make it anew with \
        payments-server restore, from its journal or from a backup", missing = missing.display())]
    HalfAStore { missing: PathBuf },
    #[error("{0}")]
    Journal(Box<dyn std::error::Error + Send + Sync>),
    #[error("the store has format {found} and this server reads up to {FORMAT}; use the version that wrote it")]
    Format { found: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<JournalError> for OpenError {
    fn from(error: JournalError) -> Self {
        Self::Journal(Box::new(error))
    }
}
