//! Reads the entries of a journal and changes nothing.

use std::path::{Path, PathBuf};

use super::{
    entry::{is_blank, read_entries, refuse_damage},
    file_list::FileList,
    files::{JournalFile, Parts, belonging, file_in, files_in, files_still_needed, listed_in, without_unused},
};
use crate::{error::JournalError, writes::Writes};

/// Whether entries may have been written to the journal in a directory, which may be missing.
pub(crate) fn is_begun(directory: &Path) -> Result<bool, JournalError> {
    // It is listed when its first file is there.
    let listed = FileList::read(directory)?.is_some_and(|list| list.active() > 1 || !file_in(directory, 1).exists());
    if listed || !directory.exists() {
        return Ok(listed);
    }
    for file in files_in(directory)? {
        if !file.is_unused()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Hands over, in order, the entries of a journal that come after number `after`, and changes nothing. Returns the last
/// entry's number. Somebody may be appending meanwhile; what came after the call may or may not be there.
pub(crate) fn read(
    directory: &Path,
    after: u64,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    read_files(directory, after, None, &mut each).map(|(last, ..)| last)
}

/// As [`read`], of a journal that nobody appends to. One that is damaged before its end is refused, and one whose last file
/// is missing, unless nothing after entry `until` is wanted.
pub(crate) fn read_closed(
    directory: &Path,
    after: u64,
    until: Option<u64>,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let (last, file, end) = read_files(directory, after, until, &mut each)?;
    refuse_damage(&file.read()?, &file.path, end, last)?;
    Ok(last)
}

/// What is wrong with the files of a journal that may be appended to meanwhile: each must be there and have all entries up
/// to where the next begins. All of them are read.
pub(crate) fn faults(directory: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    let files = match FileList::read(directory)? {
        Some(list) => listed_in(directory, &list).collect(),
        None => files_in(directory)?,
    };
    let (used, _) = without_unused(files)?;
    let mut faults = Vec::new();
    for (nth, file) in used.iter().enumerate() {
        // What a backup made superfluous may go at any moment.
        if let Err(error) = check(file, used.get(nth + 1))
            && FileList::read(directory)?.is_none_or(|list| list.has(file.first))
        {
            faults.push((file.path.clone(), error));
        }
    }
    Ok(faults)
}

/// Whether a file is there and whole. The one that has a next is closed.
fn check(file: &JournalFile, next: Option<&JournalFile>) -> Result<(), JournalError> {
    match next {
        _ if !file.is_there() => Err(match next {
            Some(_) => JournalError::Superseded { path: file.path.clone() },
            None => file.gone(),
        }),
        Some(next) => file.reaches(next.first),
        // Its last entry may be half written at this moment, and is whole at the next look.
        None => ends_well(file).or_else(|_| ends_well(file)),
    }
}

/// Whether nothing whole stands behind where the entries of the last file end.
fn ends_well(file: &JournalFile) -> Result<(), JournalError> {
    let bytes = file.read()?;
    if is_blank(&bytes) {
        return Ok(());
    }
    let mut last = file.first - 1;
    let end = read_entries(&bytes, &file.path, &mut last, u64::MAX, &mut |_, _| Ok(()))?;
    refuse_damage(&bytes, &file.path, end, last)
}

/// Returns the last entry's number, the file it stands in, and where it ends there.
fn read_files(
    directory: &Path,
    after: u64,
    until: Option<u64>,
    each: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<(u64, JournalFile, u64), JournalError> {
    let mut files = match FileList::read(directory)? {
        Some(list) => belonging(files_in(directory)?, &list, directory)?,
        None => files_in(directory)?,
    };
    files.retain(|file| until.is_none_or(|until| file.first <= until));
    if let Some(gone) = files.last().filter(|file| !file.is_there()) {
        return Err(gone.gone());
    }
    let Parts { ended, current, .. } = Parts::of(files, directory, after)?;
    let files = files_still_needed(ended, after, current.first);
    let JournalFile { first, path, .. } = files.first().unwrap_or(&current);
    if *first > after + 1 {
        return Err(JournalError::Gap { path: path.clone(), after, found: *first });
    }
    let mut last = first - 1;
    for file in &files {
        if !file.is_there() {
            return Err(file.gone());
        }
        file.read_whole(&mut last, after, each)?;
    }
    let bytes = current.read()?;
    let end = match is_blank(&bytes) {
        true => bytes.len() as u64,
        false => read_entries(&bytes, &current.path, &mut last, after, each)?,
    };
    Ok((last, current, end))
}
