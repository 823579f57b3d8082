//! The journal's files, and which files of a directory belong to it.
//!
//! A file that was begun but never used, for example on a full disk, is not listed (`file_list`). So it hides no used file.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{
    entry::{EMPTY_BYTES, ENTRY_HEAD_BYTES, Each, Head, is_blank, is_zero_from, read_entries},
    file_list::FileList,
};
use crate::{
    disk::{self, Disk, DiskFile, Open},
    error::JournalError,
    whole_file::{self, if_there},
};

/// The suffixes of a file's names: uncompressed and compressed.
const SUFFIXES: [&str; 2] = ["journal", "journal.zst"];

/// One of the journal's files. It may be missing or compressed.
#[derive(Debug, Clone)]
pub(super) struct JournalFile {
    /// The number of its first entry.
    pub(super) first: u64,
    /// Its path before it is compressed.
    pub(super) path: PathBuf,
}

impl JournalFile {
    pub(super) fn new(directory: &Path, first: u64) -> Self {
        Self { first, path: file_in(directory, first) }
    }

    /// The error for a missing file that is needed.
    pub(super) fn gone(&self) -> JournalError {
        JournalError::Gone { path: self.path.clone(), first: self.first }
    }

    /// The error for a file that was cut off after entry `last` and had at least `had` bytes.
    pub(super) fn cut(&self, bytes: &[u8], had: u64, last: u64) -> JournalError {
        JournalError::Cut { path: self.path.clone(), length: bytes.len() as u64, had, last }
    }

    pub(super) fn is_there(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(disk.exists(&self.path)? || disk.exists(&compressed(&self.path))?)
    }

    /// Whether nothing was ever written to the file: it has only zeros after its head. A file that is compressed, missing or
    /// cut off is not unused.
    pub(super) fn is_unused(&self, disk: &dyn Disk) -> io::Result<bool> {
        let Some(file) = if_there(disk.open(&self.path, Open::Read))? else { return Ok(false) };
        let first = disk::read_from(&*file, 0, Head::bytes(0).len() + ENTRY_HEAD_BYTES)?;
        // If the first entry is zeros, only the rest of the file tells damage from a file that was never used.
        Ok(is_blank(&first) && is_blank(&disk::read(disk, &self.path)?))
    }

    /// The file's bytes, even while it is being compressed.
    pub(super) fn read(&self, disk: &dyn Disk) -> Result<Vec<u8>, JournalError> {
        if let Some(bytes) = if_there(disk::read(disk, &self.path))? {
            return Ok(bytes);
        }
        let path = compressed(&self.path);
        let bytes = if_there(disk::read(disk, &path))?.ok_or_else(|| self.gone())?;
        zstd::stream::decode_all(&*bytes).map_err(|_| JournalError::Damaged { path, offset: 0 })
    }

    /// Passes the entries after number `after` of a closed file to `each`. Unlike the last file, a crash cannot have cut it
    /// short.
    pub(super) fn read_closed(
        &self,
        disk: &dyn Disk,
        last: &mut u64,
        after: u64,
        each: &mut Each<'_>,
    ) -> Result<(), JournalError> {
        let bytes = self.read(disk)?;
        let end = read_entries(&bytes, &self.path, last, after, each)?.end;
        match is_zero_from(&bytes, end) {
            true => Ok(()),
            false => Err(JournalError::Damaged { path: self.path.clone(), offset: end }),
        }
    }

    /// Removes the file, compressed or not.
    pub(super) fn remove(&self, disk: &dyn Disk) -> io::Result<()> {
        if_there(disk.remove_file(&self.path))?;
        if_there(disk.remove_file(&compressed(&self.path))).map(drop)
    }
}

/// The journal files in a directory, oldest first.
pub(super) fn files_in(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<JournalFile>> {
    let mut firsts = Vec::new();
    for listed in disk.list(directory)? {
        let name = listed.name.into_string().unwrap_or_default();
        let (digits, suffix) = name.split_once('.').unwrap_or_default();
        if SUFFIXES.contains(&suffix) {
            firsts.extend(digits.parse::<u64>());
        }
    }
    // A crash while a file is compressed may leave both forms.
    firsts.sort_unstable();
    firsts.dedup();
    Ok(firsts.into_iter().map(|first| JournalFile::new(directory, first)).collect())
}

/// The files that belong to the journal, oldest first: all listed ones, even if missing, and later ones with entries.
pub(super) fn belonging(disk: &dyn Disk, directory: &Path) -> Result<Vec<JournalFile>, JournalError> {
    let list = FileList::read(disk, directory)?;
    let listed = list.iter().flat_map(|list| &list.files).map(|first| JournalFile::new(directory, *first));
    let mut files: Vec<_> = listed.collect();
    for file in files_in(disk, directory)? {
        // Without a list, the first file belongs to the journal even if it is unused.
        if files.last().is_none_or(|last| last.first < file.first) && (files.is_empty() || !file.is_unused(disk)?) {
            files.push(file);
        }
    }
    Ok(files)
}

/// The path of the file whose first entry has this number.
pub(crate) fn file_in(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}.{}", SUFFIXES[0]))
}

/// The path of the compressed form of a journal file.
pub(super) fn compressed(journal: &Path) -> PathBuf {
    whole_file::beside(journal, "zst")
}

/// Begins a file whose first entry will have this number.
pub(super) fn begin_file(disk: &dyn Disk, directory: &Path, first: u64) -> io::Result<Box<dyn DiskFile>> {
    whole_file::create(disk, &file_in(directory, first), |file| file.write_all(&Head::bytes(EMPTY_BYTES)))
}
