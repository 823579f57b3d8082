//! Journals, and single files in the form of a journal file, that are written once and read whole.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{
    FILE_BYTES,
    entry::{EMPTY_BYTES, ENTRY_HEAD_BYTES, Head, decode, encode, entry_bytes},
    file_list::FileList,
    files::file_in,
};
use crate::{
    disk::{Disk, DiskFile, Open, Sequential, read_from},
    error::JournalError,
    line::Lines,
    writes::Writes,
};

/// A journal that is written as a copy of others. It has files like those of [`Journal`](super::Journal), of about the same
/// length.
pub(crate) struct JournalCopy<'d> {
    disk: &'d dyn Disk,
    directory: PathBuf,
    list: FileList,
    pieces: Pieces,
}

impl<'d> JournalCopy<'d> {
    pub(crate) fn create(disk: &'d dyn Disk, directory: &Path, first: u64) -> io::Result<Self> {
        let pieces = Pieces::create(disk, &file_in(directory, first), first)?;
        Ok(Self { disk, directory: directory.to_owned(), list: FileList::of(vec![first]), pieces })
    }

    pub(crate) fn append(&mut self, writes: &Writes) -> io::Result<()> {
        if self.pieces.length > FILE_BYTES {
            self.begin_next()?;
        }
        self.pieces.append(writes)
    }

    /// Ends with an empty file, so that the first start has nothing to apply, and records the journal's lines.
    pub(crate) fn finish(mut self, lines: Lines) -> io::Result<()> {
        self.list.lines = lines;
        if self.pieces.length > EMPTY_BYTES {
            self.begin_next()?;
        }
        self.pieces.finish()?;
        self.list.write(self.disk, &self.directory)
    }

    fn begin_next(&mut self) -> io::Result<()> {
        let first = self.pieces.last + 1;
        let next = Pieces::create(self.disk, &file_in(&self.directory, first), first)?;
        self.list.files.push(first);
        std::mem::replace(&mut self.pieces, next).finish().map(drop)
    }
}

/// A file in the form of a journal file that is written once, without zeros at its end and with one sync.
pub(crate) struct Pieces {
    file: io::BufWriter<Sequential<Box<dyn DiskFile>>>,
    length: u64,
    last: u64,
    buffer: Vec<u8>,
}

impl Pieces {
    /// Creates a file whose first entry will have this number.
    pub(crate) fn create(disk: &dyn Disk, path: &Path, first: u64) -> io::Result<Self> {
        let mut file = io::BufWriter::new(Sequential::new(disk.open(path, Open::CreateNew)?));
        file.write_all(&Head::bytes(EMPTY_BYTES))?;
        Ok(Self { file, length: EMPTY_BYTES, last: first - 1, buffer: Vec::new() })
    }

    pub(crate) fn append(&mut self, writes: &Writes) -> io::Result<()> {
        encode(&mut self.buffer, self.last + 1, writes)?;
        self.file.write_all(&self.buffer)?;
        self.length += self.buffer.len() as u64;
        self.last += 1;
        Ok(())
    }

    /// Syncs the file. Returns the number of its last entry and its length.
    pub(crate) fn finish(self) -> io::Result<(u64, u64)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.file.sync_all()?;
        Ok((self.last, self.length))
    }
}

/// Passes the entries of a file of [`Pieces`] to `each`. Its first entry must have this number. Returns the number of the
/// last. One entry at a time is in memory.
pub(crate) fn read_pieces(
    disk: &dyn Disk,
    path: &Path,
    first: u64,
    mut each: impl FnMut(Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let file = disk.open(path, Open::Read)?;
    let length = file.length()?;
    let (mut start, mut last) = (EMPTY_BYTES, first - 1);
    let damaged = |offset| JournalError::Damaged { path: path.to_owned(), offset };
    let head = read_from(&*file, 0, usize::try_from(EMPTY_BYTES).map_err(io::Error::other)?)?;
    if Head::of(&head).is_none() {
        return Err(damaged(0));
    }
    while start < length {
        let head = read_from(&*file, start, ENTRY_HEAD_BYTES)?;
        let bytes = entry_bytes(&head).filter(|bytes| *bytes <= length - start).ok_or_else(|| damaged(start))?;
        let entry = read_from(&*file, start, usize::try_from(bytes).map_err(io::Error::other)?)?;
        let (number, writes, _) = decode(&entry).ok_or_else(|| damaged(start))?;
        if number != last + 1 {
            return Err(JournalError::Gap { path: path.to_owned(), after: last, found: number });
        }
        each(writes)?;
        (start, last) = (start + bytes, number);
    }
    Ok(last)
}
