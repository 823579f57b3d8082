//! The journal: append-only files of committed batches, synced before any caller is answered.
//!
//! `entry` is the form of an entry; `files` and `file_list` tell which files there are; `content` is the last file. `writer`
//! appends, `opening` continues a journal at a start, `reader` reads a journal that another process may write. Closed files
//! stay, compressed (`archive`), until scheduled backups no longer need them (`retention`): together they can rebuild the
//! database.

mod archive;
mod content;
mod copy;
#[cfg(test)]
mod cut_tests;
mod entry;
mod file_list;
mod files;
mod opening;
#[cfg(test)]
mod parts_tests;
mod reader;
mod retention;
#[cfg(test)]
mod tests;
mod writer;

pub use self::reader::check_journal;
#[cfg(feature = "simulation")]
pub(crate) use self::reader::check_journal_on;
pub(crate) use self::{
    archive::Archivist,
    copy::{JournalCopy, Pieces, read_pieces},
    files::file_in,
    reader::{is_begun, lines, read, read_closed, write_last_again},
    retention::Retention,
    writer::Journal,
};

pub(crate) const DIRECTORY: &str = "journal";
pub(crate) const FILE_BYTES: u64 = 32 * 1024 * 1024;
