//! Journals, and single files in the form of a journal file, that are written once and read whole.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::{
    FILE_BYTES,
    entry::{EMPTY_BYTES, Head, encode},
    file_list::FileList,
    files::{JournalFile, file_in},
};
use crate::{
    disk::{Disk, DiskFile, Open, Sequential},
    error::JournalError,
    line::Lines,
    writes::Writes,
};

/// A journal that is written as a copy of others: files like those of [`Journal`](super::Journal), of about the same length.
pub(crate) struct JournalCopy<'d> {
    disk: &'d dyn Disk,
    directory: PathBuf,
    list: FileList,
    pieces: Pieces,
}

impl<'d> JournalCopy<'d> {
    /// Begins in an empty directory.
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

    /// Ends with an empty file, so that the first start has nothing to apply, and says which lines it is of.
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

/// A file in the form of a journal file that is written once: no zeros ahead, one sync at the end.
pub(crate) struct Pieces {
    file: io::BufWriter<Sequential<Box<dyn DiskFile>>>,
    length: u64,
    last: u64,
    buffer: Vec<u8>,
}

impl Pieces {
    /// Begins a file whose first entry will have this number.
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

    /// Syncs the file. Returns the number of its last entry, and how many bytes it has.
    pub(crate) fn finish(self) -> io::Result<(u64, u64)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.file.sync_all()?;
        Ok((self.last, self.length))
    }
}

/// Passes the entries of a file of [`Pieces`] numbered from 1 to `each`. Returns how many there are.
pub(crate) fn read_pieces(
    disk: &dyn Disk,
    path: PathBuf,
    mut each: impl FnMut(Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let mut last = 0;
    JournalFile { first: 1, path }.read_closed(disk, &mut last, 0, &mut |_, writes| each(writes))?;
    Ok(last)
}
