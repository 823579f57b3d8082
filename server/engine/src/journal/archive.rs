//! Closed journal files, compressed to about a tenth.
//!
//! They hold every change there ever was. So they make a broken tree anew, and the database as it was at any moment, for a
//! tenth of the disk that the records take.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use crate::{error::JournalError, whole_file};

/// What the name of a compressed file has more than that of the file.
pub(super) const SUFFIX: &str = ".zst";
/// The quickest of zstd's usual levels: the committer and the requests need the processor more.
const LEVEL: i32 = 1;
/// How much is written at a time.
const WRITTEN_AT_BYTES: usize = 1024 * 1024;

/// Compresses a file, which is then under its other name.
pub(super) fn compress(path: &Path) -> io::Result<()> {
    let mut source = match File::open(path) {
        Ok(source) => source,
        // A backup holds what it held, and it was removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    whole_file::create(&of(path), |target| {
        let mut target = zstd::Encoder::new(BufWriter::with_capacity(WRITTEN_AT_BYTES, target), LEVEL)?;
        target.include_checksum(true)?;
        io::copy(&mut source, &mut target)?;
        target.finish()?.flush()
    })?;
    // The archive has its name, durably: at no moment is there neither.
    fs::remove_file(path)
}

/// The name that a journal file has when it is compressed.
pub(super) fn of(journal: &Path) -> PathBuf {
    with_suffix(journal, SUFFIX)
}

/// Whether a journal file is compressed.
pub(super) fn is_one(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes())
}

/// The bytes of the file that was compressed.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, JournalError> {
    let file = File::open(path)?;
    zstd::stream::decode_all(file).map_err(|_| JournalError::Damaged { path: path.to_owned(), offset: 0 })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
