//! sled itself: how it is opened, and how it is made so that no crash leaves half of it.

use std::{
    fs::{self, File, TryLockError},
    io,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    OpenError, StoreError,
    applier::Replay,
    journal::{self, JournalError},
    whole_file,
};

/// sled's pages are kept in memory up to about this much; its default of 1 GiB is more than a small machine has.
const CACHE_BYTES: u64 = 128 * 1024 * 1024;
/// A page of more than a quarter of a segment goes to a file of its own that sled never syncs. With segments of 8 MiB
/// no page of ours is that large.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
/// How long the lock is waited for of what this process has just closed: sled's own threads hold it a moment longer.
const LOCK_WAIT: Duration = Duration::from_secs(4);
/// What is added to the name of an engine that was made anew.
const DAMAGED: &str = "damaged";

/// Opens the engine in a directory, or makes a new one.
pub(super) fn open(directory: &Path) -> Result<sled::Db, OpenError> {
    if !directory.exists() {
        make(directory, |_| Ok::<_, OpenError>(()))?;
    }
    remove_unfinished_snapshots(directory)?;
    let tree = open_again(directory)?;
    sync_files(directory)?;
    Ok(tree)
}

/// Makes an engine and what `fill` puts into it. The directory has its name only when everything in it is on the disk.
pub(super) fn make<E: From<OpenError>>(
    directory: &Path,
    fill: impl FnOnce(&sled::Tree) -> Result<(), E>,
) -> Result<(), E> {
    let making = prepare(directory, fill)?;
    Ok(put_in_place(&making, directory).map_err(OpenError::Io)?)
}

fn prepare<E: From<OpenError>>(
    directory: &Path,
    fill: impl FnOnce(&sled::Tree) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let making = beside(directory, "making");
    if making.exists() {
        fs::remove_dir_all(&making).map_err(OpenError::Io)?;
    }
    let tree = open_again(&making)?;
    fill(&tree)?;
    tree.flush().map_err(|error| OpenError::Store(StoreError::unavailable(error)))?;
    drop(tree);
    sync_closed(&making).map_err(OpenError::Io)?;
    Ok(making)
}

fn put_in_place(making: &Path, directory: &Path) -> io::Result<()> {
    fs::rename(making, directory)?;
    match directory.parent() {
        Some(parent) => whole_file::sync_directory(parent),
        None => Ok(()),
    }
}

/// Makes a damaged engine anew from the journal, if that has everything; the damaged one is kept beside it.
pub(super) fn make_anew(directory: &Path, journal: &Path, damaged: OpenError) -> Result<sled::Db, OpenError> {
    tracing::warn!(%damaged, "the engine's file is damaged; it is made anew from the journal");
    let made = prepare(directory, |tree| {
        let mut replay = Replay::new(tree);
        match journal::read_closed(journal, 0, None, |number, writes| Ok(replay.add(number, writes)?)) {
            Ok(_) => Ok(replay.finish().map_err(StoreError::unavailable)?),
            // Backups hold the beginning, and only the operator knows where they are.
            Err(JournalError::Gap { .. } | JournalError::Missing { .. } | JournalError::Gone { .. }) => Err(damaged),
            Err(error) => Err(OpenError::Journal(Box::new(error))),
        }
    })?;
    let kept = put_aside(directory)?;
    put_in_place(&made, directory)?;
    tracing::warn!(damaged = %kept.display(), "the engine was made anew from the journal, which had everything");
    open(directory)
}

/// Makes a damaged engine anew, empty: that of a store that was never open, so that nobody was answered.
pub(super) fn begin_again(directory: &Path, damaged: &OpenError) -> Result<sled::Db, OpenError> {
    let kept = put_aside(directory)?;
    tracing::warn!(%damaged, kept = %kept.display(), "a store that was never open is begun again");
    open(directory)
}

fn put_aside(directory: &Path) -> io::Result<PathBuf> {
    let kept = beside(directory, DAMAGED);
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::rename(directory, &kept)?;
    Ok(kept)
}

/// A crash between the two renamings of [`make_anew`] leaves no engine: the damaged one is as good a beginning as it was.
pub(super) fn finish_making_anew(directory: &Path) -> io::Result<()> {
    let kept = beside(directory, DAMAGED);
    if kept.exists() && !directory.exists() { fs::rename(kept, directory) } else { Ok(()) }
}

/// As [`open_as_it_is`], of what this process has had open a moment ago.
fn open_again(directory: &Path) -> Result<sled::Db, OpenError> {
    let begun = Instant::now();
    loop {
        match open_as_it_is(directory) {
            Err(OpenError::InUse { .. }) if begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(2)),
            opened => return opened,
        }
    }
}

/// sled panics on some kinds of damage where it should say so.
fn open_as_it_is(directory: &Path) -> Result<sled::Db, OpenError> {
    // What sled has not written is in the journal, so it need not write it twice a second.
    let config = sled::Config::new()
        .path(directory)
        .cache_capacity(CACHE_BYTES)
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(None);
    match panic::catch_unwind(AssertUnwindSafe(move || config.open())) {
        Ok(Ok(tree)) => Ok(tree),
        Ok(Err(sled::Error::Io(error))) if error.to_string().contains("lock") => {
            Err(OpenError::InUse { directory: directory.to_owned(), process: "of an earlier version".into() })
        }
        Ok(Err(error)) => Err(OpenError::Damaged { directory: directory.to_owned(), what: error.to_string() }),
        Err(_) => Err(OpenError::Damaged {
            directory: directory.to_owned(),
            what: "the engine panicked while opening".into(),
        }),
    }
}

/// A crash during start-up leaves a snapshot under its working name, which sled 0.34.7 would then take for the newest
/// and, if it is torn, refuse for ever. Until it is renamed a snapshot was never begun, so it may go.
fn remove_unfinished_snapshots(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            tracing::warn!(snapshot = name, "a crash during start-up left an unfinished snapshot; it is removed");
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Waits until sled has let go of its file, which its threads write to after the last handle is gone, and syncs it.
pub(super) fn sync_closed(directory: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(directory.join("db"))?;
    let begun = Instant::now();
    while let Err(error) = file.try_lock() {
        match error {
            TryLockError::WouldBlock if begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(2)),
            error => return Err(error.into()),
        }
    }
    sync_files(directory)
}

/// sled syncs neither its settings nor the names of its files.
fn sync_files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    whole_file::sync_directory(directory)
}

fn beside(directory: &Path, suffix: &str) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.with_file_name(format!("{name}.{suffix}"))
}
