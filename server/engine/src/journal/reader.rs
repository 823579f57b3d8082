//! Reads the entries of a journal without changing it.

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

/// The files of a journal by their roles.
pub(super) struct Files {
    /// The files before the current one, oldest first, even if missing.
    pub(super) closed: Vec<JournalFile>,
    /// The file with the last entry.
    pub(super) current: Content,
    /// Later files, which were begun but have no entries.
    pub(super) unused: Vec<JournalFile>,
}

impl Files {
    /// The files of a journal. The caller needs the entries after number `after`, but none after `until`.
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
            // A file is not needed if the next one begins with the first needed entry or before.
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
    // A journal is listed once its first file exists.
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

/// The lines of the journal in a directory. They are empty if it has no list.
pub(crate) fn lines(disk: &dyn Disk, directory: &Path) -> Result<Lines, JournalError> {
    Ok(FileList::read(disk, directory)?.map(|list| list.lines).unwrap_or_default())
}

/// Passes the entries after number `after` to `each`, in order. Another thread may append to the journal during the call; it
/// is open whether those entries are read.
pub(crate) fn read(
    disk: &dyn Disk,
    directory: &Path,
    after: u64,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    Files::of(disk, directory, after, None)?.read(disk, after, &mut each)
}

/// Makes a journal's last entry durable, because a killed process may not have synced it. Nobody may append to the journal.
pub(crate) fn write_last_again(disk: &dyn Disk, directory: &Path) -> Result<(), JournalError> {
    Ok(Files::of(disk, directory, 0, None)?.current.write_last_again(disk)?)
}

/// Does the same as [`read`] for a journal to which nobody appends. Returns the last entry's number. Refuses a journal that
/// is damaged before its end. Unless only entries up to `until` are wanted, also refuses one whose last file is missing or
/// cut off.
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

/// The entry up to which the tree was synced, according to the list of files; 0 without a list.
fn in_tree(disk: &dyn Disk, directory: &Path) -> Result<u64, JournalError> {
    Ok(FileList::read(disk, directory)?.map_or(0, |list| list.in_tree()))
}

/// Reads all journal files of a database, which may be open. Returns the faults: each file must exist and have all entries up
/// to the first of the next.
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
        // A file that backups have made unnecessary may be removed at any moment.
        if let Err(error) = check(disk, &directory, file, used.get(nth + 1), &unused)
            && FileList::read(disk, &directory)?.is_none_or(|list| list.has(file.first))
        {
            faults.push((file.path.clone(), error));
        }
    }
    Ok(faults)
}

/// Checks that a file exists and is whole. A file with a next file is closed.
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
        // The last entry or the head may be half written at this moment. A second read finds it whole.
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
