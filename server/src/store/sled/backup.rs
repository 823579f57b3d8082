//! A consistent copy of a store that goes on being written to, and a store made of one.
//!
//! sled has no snapshots. So the tree is read while the applier writes to it: a record is as it was at some moment between
//! the first journal entry that the tree held when the reading began and the last one when it ended. Then the entries
//! in between are added. They say what a record became, not how it changed, so applying them in order makes every
//! record what it was at the end, whichever moment it was read at. Nothing waits for the copy.
//!
//! A backup is a directory: `records` (the tree, in checksummed pieces as the journal has them), `journal` (the entries
//! in between) and `backup.json`, which is written last: without it the backup is not whole. Records are readable by
//! whoever reads the directory, webhook secrets among them.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use super::{
    FORMAT, OpenError,
    applier::{self, Replay},
    codec, engine,
    journal::{self, JournalCopy, JournalError, Pieces, Retention, Writes},
    keys,
    records::Records,
    until::{LeftOut, Restored, Until, committed_at},
    whole_file,
};
use crate::store::{BackedUp, StoreError};

const MANIFEST: &str = "backup.json";
const RECORDS: &str = "records";
const JOURNAL: &str = "journal";
/// How many bytes of records make a piece.
const PIECE_BYTES: usize = 1024 * 1024;

/// What a backup says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The layout of its records.
    format: u32,
    /// The journal entry before those in `journal`.
    from: u64,
    /// The last of them.
    to: u64,
    pieces: u64,
    records: u64,
}

/// What it takes to copy a store while it is open.
#[derive(Clone)]
pub(super) struct Copier {
    pub(super) records: Records,
    pub(super) journal: PathBuf,
    pub(super) retention: Arc<Retention>,
    /// The store is being closed, and a copy under way must not hold that up.
    pub(super) closing: Arc<AtomicBool>,
}

impl Copier {
    /// Copies the store into a directory, which must be missing or empty.
    pub(super) fn copy_to(&self, directory: &Path) -> Result<BackedUp, BackupError> {
        make_empty(directory)?;
        let mut copying = self.retention.copying();
        let from = self.applied()?;
        copying.begin_after(from);

        let mut records = 0;
        let mut pieces = Pieces::create(&directory.join(RECORDS), 1)?;
        let mut piece = Writes::new();
        let mut bytes = 0;
        for entry in self.records.tree().iter() {
            let (key, value) = entry.map_err(StoreError::unavailable)?;
            if key == keys::APPLIED {
                continue;
            }
            records += 1;
            bytes += key.len() + value.len();
            piece.insert(key.to_vec(), Some(value.to_vec()));
            if bytes > PIECE_BYTES {
                if self.closing.load(Ordering::Relaxed) {
                    return Err(StoreError::Stopped.into());
                }
                pieces.append(&std::mem::take(&mut piece))?;
                bytes = 0;
            }
        }
        pieces.append(&piece)?;
        let pieces = pieces.finish()?;

        // A batch is shown before any of it is in the tree; so nothing of a later one can have been read.
        let to = self.records.last();
        let journal = directory.join(JOURNAL);
        DirBuilder::new().mode(0o700).create(&journal)?;
        let mut between = Pieces::create(&journal::file_in(&journal, from + 1), from + 1)?;
        journal::read(&self.journal, from, |number, writes| match number > to {
            true => Ok(()),
            false => between.append(&writes).map_err(JournalError::Io),
        })?;
        let last = between.finish()?;
        if last != to {
            return Err(BackupError::Short { last, to });
        }
        let manifest = Manifest { format: FORMAT, from, to, pieces, records };
        // Everything else of it first, names included: with this file the backup is whole.
        whole_file::sync_directory(&journal)?;
        whole_file::write(&directory.join(MANIFEST), &serde_json::to_vec_pretty(&manifest).map_err(io::Error::from)?)?;
        if let Some(parent) = directory.canonicalize()?.parent() {
            whole_file::sync_directory(parent)?;
        }
        Ok(BackedUp { directory: directory.to_owned(), records, from, to })
    }

    fn applied(&self) -> Result<u64, StoreError> {
        Ok(codec::read(self.records.tree(), keys::APPLIED)?.unwrap_or(0))
    }
}

/// The journal entry from which on a whole backup needs the journal; `None` of a directory that is no whole backup.
pub(crate) fn needs_after(directory: &Path) -> Option<u64> {
    let manifest = fs::read(directory.join(MANIFEST)).ok()?;
    serde_json::from_slice::<Manifest>(&manifest).ok().map(|manifest| manifest.from)
}

/// What a store is made of.
#[derive(Debug, Default)]
pub(crate) struct Sources<'p> {
    /// A backup; without one the journal must begin with the first change there ever was.
    pub(crate) backup: Option<&'p Path>,
    /// The journal of the store that was lost: with it nothing that was acknowledged is lost.
    pub(crate) journal: Option<&'p Path>,
    /// Where to stop; after the last change unless given.
    pub(crate) until: Option<Until>,
}

/// Makes a store in a directory that is missing or empty.
pub(crate) fn restore(sources: &Sources<'_>, directory: &Path) -> Result<Restored, BackupError> {
    let manifest = sources.backup.map(Manifest::read).transpose()?;
    refuse_if_used(directory)?;
    // Under another name until it is whole, so that a crash leaves no half of a store to be opened.
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let making = directory.with_file_name(format!("{name}.restoring"));
    if making.exists() {
        // A restore that was refused or killed did not come to an end.
        fs::remove_dir_all(&making)?;
    }
    make_empty(&making)?;
    let new_journal = making.join(JOURNAL);
    DirBuilder::new().mode(0o700).create(&new_journal)?;
    let mut restored = Restored { last: 0, left_out: None };
    engine::make(&making.join("sled"), |tree| {
        restored = sources.put_together(manifest.as_ref(), tree, &new_journal)?;
        Ok::<_, BackupError>(())
    })?;
    for made in [&new_journal, &making] {
        whole_file::sync_directory(made)?;
    }
    fs::rename(&making, directory)?;
    if let Some(parent) = directory.canonicalize()?.parent() {
        whole_file::sync_directory(parent)?;
    }
    Ok(restored)
}

impl Manifest {
    fn read(backup: &Path) -> Result<Self, BackupError> {
        let json = fs::read(backup.join(MANIFEST)).map_err(|_| BackupError::NotWhole { backup: backup.to_owned() })?;
        let manifest: Self =
            serde_json::from_slice(&json).map_err(|_| BackupError::NotWhole { backup: backup.to_owned() })?;
        // An earlier one is brought up to date when the store is opened.
        if manifest.format > FORMAT {
            return Err(BackupError::Format { found: manifest.format });
        }
        Ok(manifest)
    }
}

impl Sources<'_> {
    fn put_together(
        &self,
        manifest: Option<&Manifest>,
        tree: &sled::Tree,
        new_journal: &Path,
    ) -> Result<Restored, BackupError> {
        let (from, to) = manifest.map_or((0, 0), |manifest| (manifest.from, manifest.to));
        if let (Some(backup), Some(manifest)) = (self.backup, manifest) {
            let mut records = 0;
            let mut is_later = false;
            let pieces = journal::read_pieces(&backup.join(RECORDS), |writes| {
                records += writes.len() as u64;
                is_later |= self.ends_before(from, &writes);
                Ok(applier::apply(tree, &writes)?)
            })?;
            if (pieces, records) != (manifest.pieces, manifest.records) {
                return Err(BackupError::Damaged { backup: backup.to_owned() });
            }
            if is_later {
                return Err(BackupError::Later { backup: backup.to_owned() });
            }
        }
        let mut copy = JournalCopy::create(new_journal, from + 1)?;
        let mut replay = Replay::new(tree);
        let mut last = from;
        // The last entry up to the place that is asked for.
        let mut end = from;
        let (mut left_out, mut is_beyond) = (None, false);
        let until = match self.until {
            Some(Until::Entry(entry)) => Some(entry),
            _ => None,
        };
        for source in [self.backup.map(|backup| backup.join(JOURNAL)), self.journal.map(Path::to_owned)] {
            let Some(source) = source else { continue };
            last = last.max(journal::read_closed(&source, last, until, |number, writes| {
                // Entries have one order, that of their numbers, whatever the clock said: what comes after the first that
                // is beyond the place is beyond it too.
                is_beyond |= self.ends_before(number, &writes);
                if is_beyond {
                    left_out = Some(LeftOut::with(left_out, number, committed_at(&writes)));
                    return Ok(());
                }
                copy.append(&writes)?;
                end = number;
                Ok(replay.add(number, writes)?)
            })?);
            if last < to {
                return Err(BackupError::Short { last, to });
            }
        }
        if let Some(backup) = self.backup.filter(|_| end < to) {
            // Its records are of moments up to its end, and only its whole journal makes them of one.
            return Err(BackupError::Later { backup: backup.to_owned() });
        }
        copy.finish()?;
        replay.finish().map_err(StoreError::unavailable)?;
        tree.insert(keys::APPLIED, end.to_string().as_bytes()).map_err(StoreError::unavailable)?;
        Ok(Restored { last: end, left_out })
    }

    /// Whether an entry, or a piece of records as of one, is beyond the place that is asked for.
    fn ends_before(&self, number: u64, writes: &Writes) -> bool {
        self.until.is_some_and(|until| until.is_before(number, committed_at(writes)))
    }
}

fn refuse_if_used(directory: &Path) -> Result<(), BackupError> {
    let is_used = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    if is_used { Err(BackupError::NotEmpty { directory: directory.to_owned() }) } else { Ok(()) }
}

fn make_empty(directory: &Path) -> Result<(), BackupError> {
    refuse_if_used(directory)?;
    // Webhook secrets lie in there in clear.
    Ok(DirBuilder::new().recursive(true).mode(0o700).create(directory)?)
}

/// A backup was not made, or no store was made of one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("{directory} is not empty; name a directory that is, or none yet", directory = directory.display())]
    NotEmpty { directory: PathBuf },
    #[error("{backup} is not a whole backup: its backup.json is missing or cannot be read; take another",
        backup = backup.display())]
    NotWhole { backup: PathBuf },
    #[error("the backup {backup} is damaged: it holds less than it says; take another", backup = backup.display())]
    Damaged { backup: PathBuf },
    #[error(
        "the backup has format {found} and this server restores up to {FORMAT}; restore it with the version that made it"
    )]
    Format { found: u32 },
    #[error("the backup {backup} is of a later moment than that; take an earlier one, or none and the journal alone",
        backup = backup.display())]
    Later { backup: PathBuf },
    #[error("the journal ends at {last} before the backup's end at {to}; take another backup")]
    Short { last: u64, to: u64 },
    #[error("the copy could not be read or written: {0}; is the disk full?")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Engine(#[from] OpenError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sled::{journal::Journal, records::Batch};

    #[test]
    fn a_copy_that_was_read_while_a_batch_was_applied_has_the_whole_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name| directory.path().join(name);
        let tree = engine::open(&within("sled")).unwrap();
        let records = Records::new(tree.clone(), 0);
        let mut journal = Journal::create(&within("journal")).unwrap();
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let writes = Writes::from([(b"a".to_vec(), value("1")), (b"b".to_vec(), value("2"))]);
        let number = journal.append(&writes).unwrap();
        records.show(Arc::new(Batch { number, writes }));
        tree.insert("b", "2").unwrap();

        let retention = Arc::default();
        let copier = Copier { records, journal: within("journal"), retention, closing: Arc::default() };
        let made = copier.copy_to(&within("backup")).unwrap();
        assert_eq!((made.records, made.from, made.to), (1, 0, 1));
        let sources = Sources { backup: Some(&within("backup")), ..Sources::default() };
        assert_eq!(restore(&sources, &within("restored")).unwrap(), Restored { last: 1, left_out: None });
        let restored = engine::open(&within("restored").join("sled")).unwrap();
        assert_eq!(codec::bytes(&restored, b"a").unwrap(), b"1");
        assert_eq!(codec::bytes(&restored, b"b").unwrap(), b"2");
    }

    #[test]
    fn a_restore_up_to_a_time_says_what_it_left_out_and_one_up_to_an_entry_goes_there_whatever_the_clock_said() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name: &str| directory.path().join(name);
        let mut journal = Journal::create(&within("journal")).unwrap();
        // A clock that stepped forward and back, of a version that wrote down what it said.
        for millis in [1_000, 9_000, 2_000, 3_000] {
            let at = Some(millis.to_string().into_bytes());
            journal.append(&Writes::from([(keys::COMMITTED_AT.to_vec(), at)])).unwrap();
        }
        let at = |millis| payments_core::Timestamp::from_millis(millis).unwrap();
        let restored = |until, name| {
            let sources = Sources { journal: Some(&within("journal")), until: Some(until), ..Sources::default() };
            restore(&sources, &within(name)).unwrap()
        };
        let left_out =
            |first, since, until| Some(LeftOut { first, last: 4, since: Some(at(since)), until: Some(at(until)) });
        let by_time = restored(Until::Time(at(5_000)), "by-time");
        assert_eq!(by_time, Restored { last: 1, left_out: left_out(2, 2_000, 9_000) });
        let by_entry = restored(Until::Entry(3), "by-entry");
        assert_eq!(by_entry, Restored { last: 3, left_out: left_out(4, 3_000, 3_000) });
        assert_eq!(restored(Until::Entry(9), "all"), Restored { last: 4, left_out: None });
    }
}
