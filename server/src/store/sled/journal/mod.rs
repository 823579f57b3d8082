//! The journal: an append-only file of committed batches, synced before anyone is told of them.
//!
//! sled 0.34.7 does not sync what it calls flushed (`sync_file_range` neither waits for the drive nor covers the
//! file's metadata), so a power cut could take back what was acknowledged. The journal is what durability rests on:
//! a batch is appended here and synced with `fdatasync`, only then shown and answered, and applied to sled after
//! that. What a reader finds is therefore durable, and after a crash the end of the journal that sled had not yet
//! written is applied again.
//!
//! `entry` says what stands in a file and `files` which files there are. `writer` appends, `opening` is what a start does,
//! `reader` reads what others write. Closed files are kept, compressed (`archive`), until a scheduled backup holds what
//! they hold (`retention`): all of them together make the store anew.

mod archive;
mod archivist;
mod copy;
mod entry;
mod file_list;
mod files;
mod opening;
mod reader;
mod retention;
#[cfg(test)]
mod tests;
mod writer;

use std::{collections::BTreeMap, io, path::PathBuf};

pub(super) use self::{
    archivist::Archivist,
    copy::{JournalCopy, Pieces, read_pieces},
    files::file_in,
    reader::{faults, is_begun, read, read_closed},
    retention::Retention,
    writer::Journal,
};

/// What a batch writes: each key's new value, or `None` where it is removed.
pub(super) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The writes under keys with this beginning, in their order.
pub(super) fn under<'w>(
    writes: &'w Writes,
    prefix: &'w [u8],
) -> impl Iterator<Item = (&'w Vec<u8>, &'w Option<Vec<u8>>)> {
    writes.range(prefix.to_vec()..).take_while(move |(key, _)| key.starts_with(prefix))
}

/// The journal cannot be read or begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("the journal cannot be read or written: {0}")]
    Io(#[from] io::Error),
    #[error("the journal {path} is damaged at byte {offset}; restore it from a backup", path = path.display())]
    Damaged { path: PathBuf, offset: u64 },
    #[error("the journal {path} goes on with entry {found} after {after}; a file is missing, restore it from a backup",
        path = path.display())]
    Gap { path: PathBuf, after: u64, found: u64 },
    #[error("the journal {path} ends at entry {last}, but the store already holds {applied}; restore it from a backup",
        path = path.display())]
    Behind { path: PathBuf, last: u64, applied: u64 },
    #[error("there is no journal in {directory}; put its files back, or name the directory that holds them", directory = directory.display())]
    Missing { directory: PathBuf },
    #[error("the journal file {path}, which has the changes from {first} on, is missing; put it back, or restore from a \
        backup, or with --until-entry what came before it", path = path.display())]
    Gone { path: PathBuf, first: u64 },
    #[error("the journal file {path} is missing: the journal alone can no longer make this store anew; take a backup now",
        path = path.display())]
    Superseded { path: PathBuf },
    #[error("an entry cannot be applied: {0}")]
    Apply(#[from] sled::Error),
}

/// A batch was not appended.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error("the batch could not be written: {0}")]
    NotWritten(#[source] io::Error),
    #[error("the journal could not be synced: {0}")]
    NotSynced(#[source] io::Error),
    #[error("the journal file {path} was removed or renamed while it was in use", path = path.display())]
    Gone { path: PathBuf },
}
