//! Journal files that nobody appends to any more, compressed: about a tenth of what they were.
//!
//! They hold every change there ever was. So a broken sled can be made anew from them, and the store as it was at any
//! moment, for a tenth of the disk that the records take.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use super::{
    journal::{self, JournalError},
    whole_file,
};

/// What the name of a compressed file has more than that of the file.
pub(super) const SUFFIX: &str = ".zst";
/// The quickest of zstd's usual levels: the committer and the requests need the processor more.
const LEVEL: i32 = 1;
/// How much is written at a time.
const WRITTEN_AT_BYTES: usize = 1024 * 1024;

/// Compresses the journal files that are closed, in a thread of its own.
pub(super) struct Archivist {
    closed: Sender<u64>,
}

impl Archivist {
    /// Begins with what an earlier run left. `active` is the first entry of the file that is appended to.
    pub(super) fn start(directory: PathBuf, active: u64) -> io::Result<Self> {
        let (closed, waiting) = channel();
        thread::Builder::new().name("archivist".into()).spawn(move || work(&directory, &waiting))?;
        let archivist = Self { closed };
        archivist.closed_before(active);
        Ok(archivist)
    }

    /// The files before the one with this first entry are closed.
    pub(super) fn closed_before(&self, active: u64) {
        // The thread ends only when this is gone.
        let _ = self.closed.send(active);
    }
}

fn work(directory: &Path, closed: &Receiver<u64>) {
    while let Ok(active) = closed.recv() {
        if let Err(error) = compress_before(directory, active) {
            tracing::warn!(%error, "old journal files could not be compressed; they stay as they are for now");
        }
    }
}

/// Compresses the files before the one with this first entry, to which the committer appends. Which one that is only the
/// committer knows: the last name in the directory may be of a file that was begun in vain.
fn compress_before(directory: &Path, active: u64) -> Result<(), JournalError> {
    for file in journal::files_in(directory)?.iter().filter(|file| file.first() < active && !is_one(&file.path)) {
        let mut source = match File::open(&file.path) {
            Ok(source) => source,
            // A backup holds what it held, and it was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        whole_file::create(&of(&file.path), |target| {
            let mut target = zstd::Encoder::new(BufWriter::with_capacity(WRITTEN_AT_BYTES, target), LEVEL)?;
            target.include_checksum(true)?;
            io::copy(&mut source, &mut target)?;
            target.finish()?.flush()
        })?;
        // The archive has its name, durably: at no moment is there neither.
        fs::remove_file(&file.path)?;
    }
    Ok(())
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
