//! The store of the tree's records: sled, or a map in a simulation. Only this file names sled.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
};

use rustix::io::Errno;

use crate::{
    entries::KeyRange,
    error::{OpenError, TreeError},
    file_error::named,
};

/// sled keeps about this many bytes of pages in memory. Its default of 1 GiB is more than a small machine has.
const CACHE_BYTES: u64 = 128 * 1024 * 1024;
/// A page of more than a quarter of a segment has a file of its own.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;

/// A key or a value, as it is stored.
pub(crate) type Stored = sled::IVec;

pub(crate) type Range = Box<dyn Iterator<Item = Result<(Stored, Stored), TreeError>> + Send>;

pub(crate) trait Store: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, TreeError>;
    /// Puts a value under a key. `None` removes the key.
    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), TreeError>;
    /// The entries of a range in key order, or reversed. This is no snapshot: each step sees the store's present state.
    fn range(&self, keys: KeyRange, is_reversed: bool) -> Range;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    /// The length of the store's files. It exceeds the records by the space that sled has not reclaimed yet.
    fn bytes(&self) -> Result<u64, TreeError>;
    /// Writes everything that is only in memory. Then a crash of the process no longer undoes it, but a power cut may.
    fn flush(&self) -> Result<(), TreeError>;
}

/// Opens sled's files without changing them. On some kinds of damage sled panics instead of returning an error.
pub(crate) fn open_sled(directory: &Path) -> Result<Arc<dyn Store>, OpenError> {
    // The journal has what sled has not written, so sled need not write twice a second.
    let config = sled::Config::new()
        .path(directory)
        .cache_capacity(CACHE_BYTES)
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(None);
    match panic::catch_unwind(AssertUnwindSafe(move || config.open())) {
        Ok(Ok(db)) => Ok(Arc::new(Sled(db))),
        Ok(Err(sled::Error::Io(error))) if error.to_string().contains("lock") => {
            Err(OpenError::InUse { directory: directory.to_owned(), process: "of another program".into() })
        }
        Ok(Err(sled::Error::Io(error))) if is_refusal(&error) => named(directory, Err(error)).map_err(OpenError::Io),
        Ok(Err(error)) => Err(OpenError::damaged(directory, error.to_string())),
        Err(_) => Err(OpenError::damaged(directory, "the engine panicked while opening")),
    }
}

struct Sled(sled::Db);

impl Store for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, TreeError> {
        self.0.get(key).map_err(TreeError::failed)
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), TreeError> {
        let before = match value {
            Some(value) => self.0.insert(key, value),
            None => self.0.remove(key),
        };
        before.map(drop).map_err(TreeError::failed)
    }

    fn range(&self, keys: KeyRange, is_reversed: bool) -> Range {
        let entries = self.0.range(keys).map(|entry| entry.map_err(TreeError::failed));
        if is_reversed { Box::new(entries.rev()) } else { Box::new(entries) }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> Result<u64, TreeError> {
        self.0.size_on_disk().map_err(TreeError::failed)
    }

    fn flush(&self) -> Result<(), TreeError> {
        self.0.flush().map(drop).map_err(TreeError::failed)
    }
}

/// Whether the system refused a call, which says nothing about the files' content: the disk is full or failed, too many files
/// are open, or the permissions are wrong.
fn is_refusal(error: &io::Error) -> bool {
    let is = |errno: Errno| {
        let code = errno.raw_os_error();
        // sled copies errors as text.
        error.raw_os_error() == Some(code) || error.to_string().starts_with(&format!("Os {{ code: {code},"))
    };
    [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::ROFS,
        Errno::ACCESS,
        Errno::PERM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::IO,
    ]
    .into_iter()
    .any(is)
}
