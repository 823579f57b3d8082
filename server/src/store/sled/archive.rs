//! Journal files that nobody appends to any more, compressed: about a tenth of what they were.
//!
//! They hold every change there ever was. So a broken sled can be made anew from them, and the store as it was at any
//! moment, for a tenth of the disk that the records take.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use super::journal::{self, JournalError};

/// What the name of a compressed file has more than that of the file.
pub(super) const SUFFIX: &str = ".zst";
/// A file under this name is not whole.
const UNFINISHED: &str = ".unfinished";
/// The quickest of zstd's usual levels: the committer and the requests need the processor more.
const LEVEL: i32 = 1;

/// Compresses the journal files that are closed, in a thread of its own.
pub(super) struct Archivist {
    wake: Sender<()>,
}

impl Archivist {
    /// Begins with what an earlier run left.
    pub(super) fn start(directory: PathBuf) -> io::Result<Self> {
        let (wake, woken) = channel();
        thread::Builder::new().name("archivist".into()).spawn(move || work(&directory, &woken))?;
        let archivist = Self { wake };
        archivist.file_closed();
        Ok(archivist)
    }

    /// Another file is closed.
    pub(super) fn file_closed(&self) {
        // The thread ends only when this is gone.
        let _ = self.wake.send(());
    }
}

fn work(directory: &Path, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        if let Err(error) = compress_closed(directory) {
            tracing::warn!(%error, "old journal files could not be compressed; they stay as they are for now");
        }
    }
}

/// Compresses every file but the last, to which the committer appends.
fn compress_closed(directory: &Path) -> Result<(), JournalError> {
    let mut files = journal::files_in(directory)?;
    files.pop();
    for file in files.iter().filter(|file| !is_one(&file.path)) {
        let mut source = match File::open(&file.path) {
            Ok(source) => source,
            // A backup holds what it held, and it was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        let archive = of(&file.path);
        let unfinished = with_suffix(&archive, UNFINISHED);
        let mut target = zstd::Encoder::new(File::create(&unfinished)?, LEVEL)?;
        target.include_checksum(true)?;
        io::copy(&mut source, &mut target)?;
        target.finish()?.sync_all()?;
        // The name first, durably: at no moment is there neither.
        fs::rename(&unfinished, &archive)?;
        journal::sync_directory(directory)?;
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
