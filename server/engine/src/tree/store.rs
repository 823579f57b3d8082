//! What keeps the tree's records: sled, or in a simulation a map. No other file names sled.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use rustix::io::Errno;

#[cfg(feature = "simulation")]
use crate::simulation::{SimulatedRange, SimulatedTree};
use crate::{
    error::{OpenError, TreeError},
    file_error::named,
    read::KeyRange,
};

/// sled keeps pages in memory up to about this much; its default of 1 GiB is more than a small machine has.
const CACHE_BYTES: u64 = 128 * 1024 * 1024;
/// A page of more than a quarter of a segment has a file of its own.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;

/// Ordered keys and values.
#[derive(Clone)]
pub(crate) enum Store {
    Sled(sled::Db),
    #[cfg(feature = "simulation")]
    Simulated(SimulatedTree),
}

impl Store {
    /// Opens the files of sled as they are. On some kinds of damage sled panics instead of returning an error.
    pub(crate) fn open(directory: &Path) -> Result<Self, OpenError> {
        // What sled has not written is in the journal, so it need not write it twice a second.
        let config = sled::Config::new()
            .path(directory)
            .cache_capacity(CACHE_BYTES)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(None);
        match panic::catch_unwind(AssertUnwindSafe(move || config.open())) {
            Ok(Ok(db)) => Ok(Self::Sled(db)),
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("lock") => {
                Err(OpenError::InUse { directory: directory.to_owned(), process: "of another program".into() })
            }
            Ok(Err(sled::Error::Io(error))) if is_refusal(&error) => {
                named(directory, Err(error)).map_err(OpenError::Io)
            }
            Ok(Err(error)) => Err(OpenError::damaged(directory, error.to_string())),
            Err(_) => Err(OpenError::damaged(directory, "the engine panicked while opening")),
        }
    }

    /// Passes the value under a key to `read`, if there is one.
    pub(super) fn get<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, TreeError> {
        match self {
            Self::Sled(db) => Ok(db.get(key).map_err(TreeError::failed)?.map(|value| read(&value))),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => Ok(tree.get(key)?.map(|value| read(&value))),
        }
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        match self {
            Self::Sled(db) => db.insert(key, value).map(drop).map_err(TreeError::failed),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => tree.write(key, Some(value)),
        }
    }

    pub(super) fn remove(&self, key: &[u8]) -> Result<(), TreeError> {
        match self {
            Self::Sled(db) => db.remove(key).map(drop).map_err(TreeError::failed),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => tree.write(key, None),
        }
    }

    /// The entries of a range, each as `read` makes it of key and value. Each step sees the store as it is then.
    pub(super) fn range<T, F: Fn(&[u8], &[u8]) -> Result<T, TreeError>>(
        &self,
        keys: KeyRange,
        read: F,
    ) -> impl DoubleEndedIterator<Item = Result<T, TreeError>> + use<T, F> {
        let entries = match self {
            Self::Sled(db) => Range::Sled(db.range(keys)),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => Range::Simulated(tree.range(keys)),
        };
        Entries { entries, read }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sled(db) => db.len(),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => tree.len(),
        }
    }

    /// How many bytes its files have, which is more than its records by what sled has not yet tidied up.
    pub(super) fn bytes(&self) -> Result<u64, TreeError> {
        match self {
            Self::Sled(db) => db.size_on_disk().map_err(TreeError::failed),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => Ok(tree.bytes()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Sled(db) => db.is_empty(),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => tree.len() == 0,
        }
    }

    pub(super) fn flush(&self) -> Result<(), TreeError> {
        match self {
            Self::Sled(db) => db.flush().map(drop).map_err(TreeError::failed),
            #[cfg(feature = "simulation")]
            Self::Simulated(tree) => tree.flush(),
        }
    }
}

enum Range {
    Sled(sled::Iter),
    #[cfg(feature = "simulation")]
    Simulated(SimulatedRange),
}

/// Whether the system refused a call, which tells nothing of what the files hold: the disk is full, or failed, there are too
/// many open files, or the rights are wrong.
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

/// The entries of a range.
struct Entries<F> {
    entries: Range,
    read: F,
}

impl<T, F: Fn(&[u8], &[u8]) -> Result<T, TreeError>> Iterator for Entries<F> {
    type Item = Result<T, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Range::Sled(entries) => of_sled(entries.next()?, &self.read).into(),
            #[cfg(feature = "simulation")]
            Range::Simulated(entries) => entries.next()?.and_then(|(key, value)| (self.read)(&key, &value)).into(),
        }
    }
}

impl<T, F: Fn(&[u8], &[u8]) -> Result<T, TreeError>> DoubleEndedIterator for Entries<F> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Range::Sled(entries) => of_sled(entries.next_back()?, &self.read).into(),
            #[cfg(feature = "simulation")]
            Range::Simulated(entries) => entries.next_back()?.and_then(|(key, value)| (self.read)(&key, &value)).into(),
        }
    }
}

fn of_sled<T>(
    entry: sled::Result<(sled::IVec, sled::IVec)>,
    read: impl Fn(&[u8], &[u8]) -> Result<T, TreeError>,
) -> Result<T, TreeError> {
    let (key, value) = entry.map_err(TreeError::failed)?;
    read(&key, &value)
}
