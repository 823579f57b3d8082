//! Backs up an open database.
//!
//! The tree is copied while commits go on, so its entries are from different moments. So the backup also has the journal
//! entries of that time. An entry says what a value became, not how it changed. So applying the entries in order gives every
//! value its state at the end of the copy, whenever the value was read. Nothing waits for the copy.
//!
//! A backup is a directory with `records` (the tree's entries, in checksummed pieces of the journal's form), `journal` (the
//! entries of the time of the copy) and `backup.json`. The last is written last: without it the backup is not whole.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::{self, Disk, Listed},
    error::{BackupError, JournalError},
    journal::{self, Pieces, Retention},
    line::Lines,
    overlay::Overlay,
    whole_file::{self, if_there},
    writes::{APPLIED, Writes, bytes_of},
};

pub(crate) const MANIFEST: &str = "backup.json";
pub(crate) const RECORDS: &str = "records";
/// How many bytes a put has in addition to its key and its value.
const PUT_BYTES: usize = 9;
/// At how many bytes of records a piece ends.
const PIECE_BYTES: usize = 1024 * 1024;

/// The content of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the records' layout.
    pub(crate) format: u32,
    /// The number of the journal entry before those in the backup.
    pub from: u64,
    /// The number of the last journal entry in the backup.
    pub to: u64,
    pub(crate) pieces: u64,
    /// How many keys the records have. The journal adds and removes some.
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) lines: Lines,
}

impl Manifest {
    /// Reads the manifest of a whole backup.
    pub(crate) fn read(disk: &dyn Disk, backup: &Path) -> Result<Self, BackupError> {
        let json = disk::read(disk, &backup.join(MANIFEST)).ok();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| BackupError::NotWhole {
            backup: backup.to_owned(),
            what: "its backup.json is missing or cannot be read",
        })
    }
}

#[derive(Clone)]
pub(crate) struct Copier {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) overlay: Overlay,
    pub(crate) journal: PathBuf,
    pub(crate) retention: Arc<Retention>,
    /// Whether the database is being closed. It must not wait for a running copy.
    pub(crate) is_closing: Arc<AtomicBool>,
}

impl Copier {
    /// Copies the database into a directory, which must be missing or empty.
    pub(crate) fn copy_to(&self, directory: &Path) -> Result<Manifest, BackupError> {
        let disk = &*self.disk;
        refuse_if_used(disk, directory)?;
        let was_there = disk.exists(directory)?;
        let made = self.fill(directory);
        if made.is_err()
            && let Err(error) = remove_part(disk, directory, was_there)
        {
            tracing::warn!(%error, directory = %directory.display(), "remove this part of a backup that was not finished");
        }
        made
    }

    fn fill(&self, directory: &Path) -> Result<Manifest, BackupError> {
        let disk = &*self.disk;
        let between = directory.join(journal::DIRECTORY);
        // First of all: a caller that gives up removes the directory, and then it must not be created again.
        whole_file::create_directory(disk, &between)?;
        let copying = self.retention.copy_after(|| self.overlay.tree.number(APPLIED))?;
        let from = copying.after;
        self.refuse_without_room(directory, from)?;
        let (pieces, bytes, records) = self.copy_tree(&directory.join(RECORDS))?;
        // A batch is visible before any of it is in the tree, so the copy has read nothing of a later batch.
        let to = self.overlay.last();
        self.copy_journal(&between, from, to)?;
        let (format, lines) = (self.overlay.tree.layout.format(), journal::lines(disk, &self.journal)?);
        let manifest = Manifest { format, from, to, pieces, records, bytes, lines };
        // The manifest makes the backup whole, so all other names must be durable before it.
        disk.sync_directory(directory)?;
        let json = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from)?;
        whole_file::write(disk, &directory.join(MANIFEST), &json)?;
        whole_file::sync_parent(disk, directory)?;
        Ok(manifest)
    }

    /// Refuses a disk with too little room for a copy and for the journal after an entry.
    fn refuse_without_room(&self, directory: &Path, from: u64) -> Result<(), BackupError> {
        let free = self.disk.free(directory)?;
        // Counting would read the whole tree. Its files have at least about as many bytes as a copy.
        if free / 2 >= self.overlay.tree.store.bytes()? + journal::FILE_BYTES {
            return Ok(());
        }
        let mut needed = 0;
        for entry in self.overlay.tree.stored() {
            let (key, stored) = entry?;
            needed += (key.len() + stored.len() + PUT_BYTES) as u64;
        }
        journal::read(&*self.disk, &self.journal, from, |_, writes| {
            needed += (bytes_of(&writes) + writes.len() * PUT_BYTES) as u64;
            Ok(())
        })?;
        // Commits go on during the copy.
        needed += needed / 8;
        match needed > free {
            true => Err(BackupError::NoRoom { directory: directory.to_owned(), needed, free }),
            false => Ok(()),
        }
    }

    /// Copies the tree. Returns the number of pieces, their bytes, and the number of records.
    fn copy_tree(&self, path: &Path) -> Result<(u64, u64, u64), BackupError> {
        let mut pieces = Pieces::create(&*self.disk, path, 1)?;
        let (mut piece, mut bytes, mut records) = (Writes::new(), 0, 0);
        for entry in self.overlay.tree.stored() {
            let (key, stored) = entry?;
            if key == APPLIED {
                continue;
            }
            records += 1;
            bytes += key.len() + stored.len();
            piece.insert(key, Some(stored));
            if bytes > PIECE_BYTES {
                if self.is_closing.load(Ordering::Relaxed) {
                    return Err(BackupError::Stopped);
                }
                pieces.append(&std::mem::take(&mut piece))?;
                bytes = 0;
            }
        }
        pieces.append(&piece)?;
        let (pieces, bytes) = pieces.finish()?;
        Ok((pieces, bytes, records))
    }

    fn copy_journal(&self, directory: &Path, from: u64, to: u64) -> Result<(), BackupError> {
        let mut between = Pieces::create(&*self.disk, &journal::file_in(directory, from + 1), from + 1)?;
        journal::read(&*self.disk, &self.journal, from, |number, writes| match number > to {
            true => Ok(()),
            false => between.append(&writes).map_err(JournalError::Io),
        })?;
        let (last, _) = between.finish()?;
        if last != to {
            return Err(BackupError::Short { journal: self.journal.clone(), last, to });
        }
        Ok(self.disk.sync_directory(directory)?)
    }
}

pub(crate) fn refuse_if_used(disk: &dyn Disk, directory: &Path) -> Result<(), BackupError> {
    let listed = if_there(disk.list(directory))?.unwrap_or_default();
    let (has, directory) = (|wanted| listed.iter().any(|Listed { name, .. }| name == wanted), directory.to_owned());
    match listed.is_empty() {
        true => Ok(()),
        false if has(RECORDS) && !has(MANIFEST) => Err(BackupError::CutOff { directory }),
        false => Err(BackupError::NotEmpty { directory }),
    }
}

/// Removes what a failed copy has written to a directory.
fn remove_part(disk: &dyn Disk, directory: &Path, was_there: bool) -> io::Result<()> {
    if !was_there {
        return whole_file::remove_directory(disk, directory);
    }
    for Listed { name, is_file } in disk.list(directory)? {
        let path = directory.join(name);
        if is_file { disk.remove_file(&path) } else { disk.remove_directory(&path) }?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        disk::SystemDisk,
        journal::Journal,
        layout::tests::Plain,
        restore::{LeftOut, Restored, Sources, Until, restore},
        tree::Tree,
        writes::{COMMITTED_AT, FORMAT, set_number},
    };

    /// A copier of a database whose journal is in this directory.
    fn copier(overlay: Overlay, journal: PathBuf) -> Copier {
        let (retention, is_closing) = (Arc::default(), Arc::default());
        Copier { disk: SystemDisk::shared(), overlay, journal, retention, is_closing }
    }

    #[test]
    fn a_copy_read_while_a_batch_is_applied_has_the_whole_batch() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name| directory.path().join(name);
        let disk = SystemDisk::shared();
        let tree = Tree::open(&SystemDisk, &within("tree"), &Plain::shared()).unwrap();
        let overlay = Overlay::new(tree.clone(), 0);
        let mut journal = Journal::create(&disk, &within("journal")).unwrap();
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let writes =
            Writes::from([(b"a".to_vec(), value("1")), (b"b".to_vec(), value("2")), (FORMAT.to_vec(), value("1"))]);
        let number = journal.append(&writes).unwrap();
        tree.apply(&Writes::from([(b"b".to_vec(), value("2"))])).unwrap();
        overlay.push(number, writes);

        let made = copier(overlay, within("journal")).copy_to(&within("backup")).unwrap();
        assert_eq!((made.format, made.from, made.to, made.pieces, made.records), (1, 0, 1, 1, 1));
        assert_eq!(made.bytes, within("backup").join(RECORDS).metadata().unwrap().len());
        assert!(made.lines.present().is_some());
        let sources = Sources { backup: Some(&within("backup")), ..Sources::default() };
        assert_eq!(
            restore(&sources, &within("restored"), Plain).unwrap(),
            Restored { last: 1, replayed: 0, left_out: None }
        );
        let restored =
            Tree::open(&SystemDisk, &within("restored").join(crate::tree::DIRECTORY), &Plain::shared()).unwrap();
        assert_eq!(restored.get(b"a").unwrap().unwrap(), b"1");
        assert_eq!(restored.get(b"b").unwrap().unwrap(), b"2");
    }

    #[test]
    fn a_restore_reports_the_changes_that_it_left_out_even_if_the_clock_stepped() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name: &str| directory.path().join(name);
        let mut journal = Journal::create(&SystemDisk::shared(), &within("journal")).unwrap();
        // An earlier version recorded the clock's times even if the clock stepped back.
        for millis in [1_000, 9_000, 2_000, 3_000] {
            let mut writes = Writes::new();
            set_number(&mut writes, COMMITTED_AT, millis);
            journal.append(&writes).unwrap();
        }
        let restored = |until, name| {
            let sources = Sources { journal: Some(&within("journal")), until: Some(until), ..Sources::default() };
            restore(&sources, &within(name), Plain).unwrap()
        };
        let left_out = |first, since, until| Some(LeftOut { first, last: 4, since: Some(since), until: Some(until) });
        let by_time = restored(Until::Time(5_000), "by-time");
        assert_eq!(by_time, Restored { last: 1, replayed: 1, left_out: left_out(2, 2_000, 9_000) });
        let by_entry = restored(Until::Entry(3), "by-entry");
        assert_eq!(by_entry, Restored { last: 3, replayed: 3, left_out: left_out(4, 3_000, 3_000) });
        assert_eq!(restored(Until::Entry(9), "all"), Restored { last: 4, replayed: 4, left_out: None });
    }

    #[test]
    fn a_journal_must_meet_the_backup_and_its_later_changes_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name: &str| directory.path().join(name);
        let disk = SystemDisk::shared();
        let tree = Tree::open(&SystemDisk, &within("tree"), &Plain::shared()).unwrap();
        let overlay = Overlay::new(tree, 0);
        let mut journal = Journal::create(&disk, &within("journal")).unwrap();
        let mut commit = |overlay: &Overlay| {
            let writes = Writes::from([(FORMAT.to_vec(), Some(b"1".to_vec()))]);
            overlay.push(journal.append(&writes).unwrap(), writes);
        };
        let copy_of = |first, last, name: &str| {
            std::fs::create_dir_all(within(name).join("journal")).unwrap();
            let mut copy = journal::JournalCopy::create(&*disk, &within(name).join("journal"), first).unwrap();
            (first..=last).for_each(|_| copy.append(&Writes::from([(b"a".to_vec(), None)])).unwrap());
            copy.finish(Lines::default()).unwrap();
        };
        (1..=4).for_each(|_| commit(&overlay));
        copier(overlay, within("journal")).copy_to(&within("backup")).unwrap();
        let restored = |name: &str| {
            let journal = within(name).join("journal");
            let sources = Sources { backup: Some(&within("backup")), journal: Some(&journal), until: None };
            let restored = restore(&sources, &within(&format!("of-{name}")), Plain);
            assert_eq!(within(&format!("of-{name}")).exists(), restored.is_ok());
            restored
        };
        for (first, last, name) in [(1, 3, "older"), (1, 4, "same"), (3, 9, "newer"), (5, 9, "next"), (6, 9, "apart")] {
            copy_of(first, last, name);
        }
        assert!(matches!(restored("older"), Err(BackupError::Short { last: 3, to: 4, .. })));
        assert_eq!(restored("same").unwrap(), Restored { last: 4, replayed: 0, left_out: None });
        assert_eq!(restored("newer").unwrap(), Restored { last: 9, replayed: 5, left_out: None });
        assert_eq!(restored("next").unwrap(), Restored { last: 9, replayed: 5, left_out: None });
        assert!(matches!(restored("apart"), Err(BackupError::Apart { to: 4, found: 6, .. })));
    }

    #[test]
    fn only_a_directory_that_is_missing_or_empty_takes_a_backup() {
        let directory = tempfile::tempdir().unwrap();
        let backup = directory.path().join("backup");
        refuse_if_used(&SystemDisk, &backup).unwrap();
        std::fs::create_dir(&backup).unwrap();
        refuse_if_used(&SystemDisk, &backup).unwrap();
        std::fs::write(backup.join("file"), "text").unwrap();
        assert!(matches!(refuse_if_used(&SystemDisk, &backup), Err(BackupError::NotEmpty { .. })));
        std::fs::rename(backup.join("file"), backup.join(RECORDS)).unwrap();
        assert!(matches!(refuse_if_used(&SystemDisk, &backup), Err(BackupError::CutOff { .. })));
        std::fs::write(backup.join(MANIFEST), "{}").unwrap();
        assert!(matches!(refuse_if_used(&SystemDisk, &backup), Err(BackupError::NotEmpty { .. })));
    }

    #[test]
    fn a_piece_of_a_copy_ends_after_the_entry_that_makes_it_exceed_a_mebibyte() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name| directory.path().join(name);
        let disk = SystemDisk::shared();
        let tree = Tree::open(&SystemDisk, &within("tree"), &Plain::shared()).unwrap();
        // The key of each entry has two bytes.
        for (key, length) in [(b"aa", PIECE_BYTES / 2 - 2), (b"bb", PIECE_BYTES / 2 - 2), (b"cc", 0), (b"dd", 1)] {
            tree.apply(&Writes::from([(key.to_vec(), Some(vec![0; length]))])).unwrap();
        }
        let copier = copier(Overlay::new(tree, 0), within("journal"));
        let (made, bytes, records) = copier.copy_tree(&within("records")).unwrap();
        assert_eq!((made, bytes, records), (2, within("records").metadata().unwrap().len(), 4));
        let mut pieces = Vec::new();
        let keys = |writes: Writes| writes.into_keys().map(|key| String::from_utf8(key).unwrap()).collect::<Vec<_>>();
        journal::read_pieces(&*disk, &within("records"), 1, |writes| {
            pieces.push(keys(writes));
            Ok(())
        })
        .unwrap();
        assert_eq!(pieces, [vec!["aa", "bb", "cc"], vec!["dd"]]);
        copier.is_closing.store(true, Ordering::Relaxed);
        assert!(matches!(copier.copy_tree(&within("stopped")), Err(BackupError::Stopped)));
    }
}
