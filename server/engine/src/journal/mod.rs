//! The journal: append-only files of committed batches, synced before anyone is answered.
//!
//! A batch is appended and synced with `fdatasync`; only then readers see it and the commit is answered, and the tree gets
//! it after that. So a reader finds nothing that is not durable, and a start applies again what the tree had not yet written.
//!
//! `entry` is the form of an entry, `files` and `file_list` say which files there are. `writer` appends, `opening` is a
//! start's part, `reader` reads what others write. Closed files stay, compressed (`archive`, `archivist`), until scheduled
//! backups no longer need them (`retention`): all of them together can make the database anew.

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

pub(crate) use self::{
    archivist::Archivist,
    copy::{JournalCopy, Pieces, read_pieces},
    files::file_in,
    reader::{faults, is_begun, read, read_closed},
    retention::Retention,
    writer::Journal,
};

/// The name of the journal's directory in a database's.
pub(crate) const DIRECTORY: &str = "journal";
