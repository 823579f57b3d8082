//! Reads the entries of a journal and changes nothing.

use std::path::{Path, PathBuf};

use super::{
    DIRECTORY,
    content::Content,
    entry::Each,
    file_list::FileList,
    files::{JournalFile, belonging, file_in, files_in},
};
use crate::{
    disk::{Disk, SystemDisk},
    error::JournalError,
    line::Lines,
    whole_file::if_there,
    writes::Writes,
};

/// The files of a journal by their part in it.
pub(super) struct Files {
    /// Those before the current one, there or not, oldest first.
    pub(super) closed: Vec<JournalFile>,
    /// The one that has the last entry.
    pub(super) current: Content,
    /// Those without entries that were begun after it.
    pub(super) unused: Vec<JournalFile>,
}

impl Files {
    /// The files of a journal of which the entries after number `after` are needed, and none after `until`.
    pub(super) fn of(disk: &dyn Disk, directory: &Path, after: u64, until: Option<u64>) -> Result<Self, JournalError> {
        let mut closed = belonging(disk, directory)?;
        closed.retain(|file| until.is_none_or(|until| file.first <= until));
        let Some(newest) = closed.last() else {
            return Err(JournalError::Missing { directory: directory.to_owned() });
        };
        if !newest.is_there(disk)? {
            return Err(newest.gone());
        }
        let mut current = closed.len() - 1;
        while current > 0 && closed[current].is_unused(disk)? {
            current -= 1;
        }
        if !closed[current].is_there(disk)? {
            // It is not needed if the next one begins at the first entry that is, or before.
            if closed.get(current + 1).is_none_or(|next| next.first > after + 1) {
                return Err(closed[current].gone());
            }
            current += 1;
        }
        let unused = closed.split_off(current + 1);
        Ok(Self { current: Content::of(disk, closed.remove(current))?, closed, unused })
    }

    /// Passes the entries after number `after` to `each`, in order.
    pub(super) fn read(&self, disk: &dyn Disk, after: u64, each: &mut Each<'_>) -> Result<(), JournalError> {
        let nexts = self.closed.iter().chain([&self.current.file]).skip(1);
        let superseded = nexts.take_while(|next| next.first <= after + 1).count();
        let needed = &self.closed[superseded..];
        let JournalFile { first, path } = needed.first().unwrap_or(&self.current.file);
        if *first > after + 1 {
            return Err(JournalError::Gap { path: path.clone(), after, found: *first });
        }
        let mut last = first - 1;
        for file in needed {
            file.read_closed(disk, &mut last, after, each)?;
        }
        self.current.read(&mut last, after, each)
    }
}

/// Whether entries may have been written to the journal in a directory, which may be missing.
pub(crate) fn is_begun(disk: &dyn Disk, directory: &Path) -> Result<bool, JournalError> {
    // A journal is listed once its first file is there.
    let list = FileList::read(disk, directory)?;
    let mut is_begun = match list {
        Some(list) => list.active() > 1 || !disk.exists(&file_in(directory, 1))?,
        None => false,
    };
    for file in if_there(files_in(disk, directory))?.unwrap_or_default() {
        is_begun |= !file.is_unused(disk)?;
    }
    Ok(is_begun)
}

/// The lines of the journal in a directory; none if it has no list.
pub(crate) fn lines(disk: &dyn Disk, directory: &Path) -> Result<Lines, JournalError> {
    Ok(FileList::read(disk, directory)?.map(|list| list.lines).unwrap_or_default())
}

/// Passes the entries after number `after` to `each`, in order. Another thread may append to the journal meanwhile; entries
/// that it appends after the call may or may not be read.
pub(crate) fn read(
    disk: &dyn Disk,
    directory: &Path,
    after: u64,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    Files::of(disk, directory, after, None)?.read(disk, after, &mut each)
}

/// Makes the last entry of a journal durable that nobody appends to: a process that was killed may not have synced it.
pub(crate) fn write_last_again(disk: &dyn Disk, directory: &Path) -> Result<(), JournalError> {
    Ok(Files::of(disk, directory, 0, None)?.current.write_last_again(disk)?)
}

/// As [`read`], of a journal that nobody appends to. Returns the last entry's number. A journal that is damaged before its end
/// is refused, and one whose last file is missing or was cut off, unless only entries up to `until` are wanted.
pub(crate) fn read_closed(
    disk: &dyn Disk,
    directory: &Path,
    after: u64,
    until: Option<u64>,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let files = Files::of(disk, directory, after, until)?;
    files.read(disk, after, &mut each)?;
    let Files { current, unused, .. } = files;
    current.refuse_damage()?;
    if until.is_none_or(|until| until > current.last) {
        current.refuse_loss(in_tree(disk, directory)?, &unused)?;
    }
    Ok(current.last)
}

/// Up to which entry the tree was synced, as far as a list of files says so.
fn in_tree(disk: &dyn Disk, directory: &Path) -> Result<u64, JournalError> {
    Ok(FileList::read(disk, directory)?.map_or(0, |list| list.in_tree()))
}

/// Reads all journal files of a database, which may be open, and returns what is wrong with them: each must be there and
/// have all entries up to the first of the next.
///
/// # Errors
/// If the journal cannot be read at all.
pub fn check_journal(database: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    check_journal_on(&SystemDisk, database)
}

pub(crate) fn check_journal_on(disk: &dyn Disk, database: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    let directory = database.join(DIRECTORY);
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for file in belonging(disk, &directory)? {
        if file.is_unused(disk)? { &mut unused } else { &mut used }.push(file);
    }
    let mut faults = Vec::new();
    for (nth, file) in used.iter().enumerate() {
        // A file that a backup supersedes may be removed at any moment.
        if let Err(error) = check(disk, &directory, file, used.get(nth + 1), &unused)
            && FileList::read(disk, &directory)?.is_none_or(|list| list.has(file.first))
        {
            faults.push((file.path.clone(), error));
        }
    }
    Ok(faults)
}

/// Whether a file is there and whole. A file that has a next one is closed.
fn check(
    disk: &dyn Disk,
    directory: &Path,
    file: &JournalFile,
    next: Option<&JournalFile>,
    unused: &[JournalFile],
) -> Result<(), JournalError> {
    let ends_well = || {
        let in_tree = in_tree(disk, directory)?;
        let content = Content::of(disk, file.clone())?;
        content.refuse_damage()?;
        content.refuse_loss(in_tree, unused)
    };
    let Some(next) = next else {
        // Its last entry may be half written at this moment, or its head, and is whole when it is read again.
        return ends_well().or_else(|_| ends_well());
    };
    if !file.is_there(disk)? {
        return Err(JournalError::Superseded { path: file.path.clone() });
    }
    let mut last = file.first - 1;
    file.read_closed(disk, &mut last, u64::MAX, &mut |_, _| Ok(()))?;
    if last + 1 != next.first {
        return Err(JournalError::Gap { path: file.path.clone(), after: last, found: next.first });
    }
    Ok(())
}
