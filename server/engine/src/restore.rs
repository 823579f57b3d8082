//! Creates a database from a backup, a journal, or both, up to a time or an entry.
//!
//! Changes are ordered by number. Each also has a time, but the clock may have stepped.

use std::{path::Path, sync::Arc};

use crate::{
    backup::{Manifest, RECORDS, refuse_if_used},
    disk::SystemDisk,
    error::{BackupError, JournalError, OpenError},
    journal::{self, JournalCopy},
    layout::Layout,
    line::Lines,
    platform::Platform,
    replay::Replay,
    tree::{self, Tree},
    whole_file,
    writes::{APPLIED, Writes, committed_at, set_number},
};

/// The sources of a database.
#[derive(Debug, Default)]
pub struct Sources<'p> {
    /// A backup. Without it the journal must begin with the store's first change.
    pub backup: Option<&'p Path>,
    /// The `journal` directory of the lost database. With it, no acknowledged change is lost.
    pub journal: Option<&'p Path>,
    /// Where to stop; by default after the last change.
    pub until: Option<Until>,
}

/// The last change that is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The last change before the first that was committed after this time, in milliseconds since 1970.
    Time(i64),
    /// The change with this number.
    Entry(u64),
}

/// A restored database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The number of the database's last change.
    pub last: u64,
    /// How many changes come from [`Sources::journal`].
    pub replayed: u64,
    /// The changes that were left out after that.
    pub left_out: Option<LeftOut>,
}

/// Changes that were not restored, because they come after the wanted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the first one.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// The earliest time at which one of them was committed, in milliseconds since 1970. Writes of an opening have no time.
    pub since: Option<i64>,
    /// The latest time at which one of them was committed.
    pub until: Option<i64>,
}

impl LeftOut {
    pub(crate) fn with(known: Option<Self>, number: u64, at: Option<i64>) -> Self {
        let known = known.unwrap_or(Self { first: number, last: number, since: at, until: at });
        let since = known.since.into_iter().chain(at).min();
        Self { last: number, since, until: known.until.max(at), ..known }
    }
}

/// Creates a database in a directory that is missing or empty.
///
/// # Errors
/// If the directory is in use, the sources are damaged or do not meet, or the disk is full. The directory then stays as it
/// was.
pub fn restore(sources: &Sources<'_>, directory: &Path, layout: impl Layout) -> Result<Restored, BackupError> {
    restore_on(&SystemDisk, sources, directory, &(Arc::new(layout) as Arc<dyn Layout>))
}

pub(crate) fn restore_on(
    disk: &dyn Platform,
    sources: &Sources<'_>,
    directory: &Path,
    layout: &Arc<dyn Layout>,
) -> Result<Restored, BackupError> {
    let backup = sources.backup.map(|path| Ok::<_, BackupError>((path, Manifest::read(disk, path)?))).transpose()?;
    if let Some((_, Manifest { format: found, .. })) = backup {
        // An opening converts records of an earlier version.
        OpenError::refuse_later_format(found, layout.format())?;
    }
    let restore = Restore { disk, sources, backup };
    let lines = restore.lines()?;
    refuse_if_used(disk, directory)?;
    // The database has another name until it is whole, so that nobody opens half of it after a crash.
    let making = whole_file::beside(directory, "restoring");
    whole_file::remove_directory(disk, &making)?;
    let restored = restore.make(lines, &making, layout);
    if restored.is_err() {
        // The unfinished part takes room. If it cannot be removed, the next try removes it.
        let _ = whole_file::remove_directory(disk, &making);
    }
    let restored = restored?;
    whole_file::rename(disk, &making, directory)?;
    Ok(restored)
}

/// A running restore.
struct Restore<'r> {
    disk: &'r dyn Platform,
    sources: &'r Sources<'r>,
    backup: Option<(&'r Path, Manifest)>,
}

impl Restore<'_> {
    /// The lines of the sources. Refuses a journal that does not continue the backup.
    fn lines(&self) -> Result<Lines, BackupError> {
        let of_backup = self.backup.as_ref().map(|(_, manifest)| manifest.lines.clone()).unwrap_or_default();
        let Some(journal) = self.sources.journal else { return Ok(of_backup) };
        let of_journal = journal::lines(self.disk, journal)?;
        if let Some((backup, Manifest { to, .. })) = self.backup
            && !of_journal.may_hold(&of_backup, to)
        {
            return Err(BackupError::OtherLine { backup: backup.to_owned(), journal: journal.to_owned() });
        }
        Ok(if of_journal.is_empty() { of_backup } else { of_journal })
    }

    fn make(&self, lines: Lines, directory: &Path, layout: &Arc<dyn Layout>) -> Result<Restored, BackupError> {
        let (tree, new_journal) = (directory.join(tree::DIRECTORY), directory.join(journal::DIRECTORY));
        whole_file::create_directory(self.disk, &new_journal)?;
        let (made, restored) =
            tree::prepare(self.disk, &tree, layout, |tree| self.put_together(lines, tree, &new_journal))?;
        whole_file::rename(self.disk, &made, &tree)?;
        self.disk.sync_directory(&new_journal)?;
        Ok(restored)
    }

    fn put_together(&self, lines: Lines, tree: &Tree, new_journal: &Path) -> Result<Restored, BackupError> {
        let (from, to) = self.backup.as_ref().map_or((0, 0), |(_, manifest)| (manifest.from, manifest.to));
        if let Some((backup, manifest)) = &self.backup {
            self.copy_records(backup, manifest, tree)?;
        }
        let mut copy = JournalCopy::create(self.disk, new_journal, from + 1)?;
        let mut replay = Replay::new(tree);
        // The last entry of the sources, and the last restored entry.
        let (mut last, mut end) = (from, from);
        let (mut left_out, mut is_beyond) = (None, false);
        let Sources { backup, journal, until } = *self.sources;
        let until = if let Some(Until::Entry(entry)) = until { Some(entry) } else { None };
        let journals = [backup.map(|backup| backup.join(journal::DIRECTORY)), journal.map(Path::to_owned)];
        for source in journals.into_iter().flatten() {
            let ends_at = journal::read_closed(self.disk, &source, last, until, |number, writes| {
                // Entries are ordered by number, whatever the clock said. After the first unwanted entry, all are unwanted.
                is_beyond |= self.ends_before(number, &writes);
                if is_beyond {
                    left_out = Some(LeftOut::with(left_out, number, committed_at(&writes)));
                    return Ok(());
                }
                copy.append(&writes)?;
                end = number;
                Ok(replay.add(number, writes)?)
            });
            last = match ends_at {
                Ok(last) if last < to => return Err(BackupError::Short { journal: source, last, to }),
                Err(JournalError::Gap { after, found, .. }) if after == to && to > 0 => {
                    return Err(BackupError::Apart { journal: source, to, found });
                }
                ends_at => ends_at?,
            };
            if let Some(backup) = backup.filter(|_| end < to) {
                // The records are from several moments, and only the backup's whole journal makes them consistent.
                return Err(BackupError::Later { backup: backup.to_owned() });
            }
        }
        // Later changes get the numbers of the changes left out.
        copy.finish(lines.begin(self.disk.new_id(), end))?;
        replay.finish()?;
        let mut writes = Writes::new();
        set_number(&mut writes, APPLIED, end);
        tree.apply(&writes)?;
        Ok(Restored { last: end, replayed: end - to, left_out })
    }

    fn copy_records(&self, backup: &Path, manifest: &Manifest, tree: &Tree) -> Result<(), BackupError> {
        let backup = backup.to_owned();
        let (mut records, mut is_later) = (0, false);
        let pieces = journal::read_pieces(self.disk, &backup.join(RECORDS), 1, |writes| {
            records += writes.len() as u64;
            is_later |= self.ends_before(manifest.from, &writes);
            Ok(tree.apply_stored(writes)?)
        })?;
        if (pieces, records) != (manifest.pieces, manifest.records) {
            return Err(BackupError::NotWhole { backup, what: "it holds less than it says" });
        }
        if is_later { Err(BackupError::Later { backup }) } else { Ok(()) }
    }

    /// Whether an entry, or a piece of records, is after the last wanted change.
    fn ends_before(&self, number: u64, writes: &Writes) -> bool {
        match self.sources.until {
            Some(Until::Time(time)) => committed_at(writes).is_some_and(|at| at > time),
            Some(Until::Entry(entry)) => number > entry,
            None => false,
        }
    }
}
