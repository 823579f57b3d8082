//! The errors of the engine, with advice for the caller.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

/// The tree cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A value is not the one that was written. Other values can be read.
    #[error("the value under {key} is damaged: {what}; restore the database from its journal or a backup")]
    Damaged {
        /// The value's key, with escapes for bytes that are not text.
        key: String,
        /// What is wrong with the value.
        what: String,
    },
    /// The tree failed as a whole. Close the database and open it again.
    #[error("the tree failed: {0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// A change was not committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError<E> {
    /// The change itself refused. Nothing of it was written.
    #[error(transparent)]
    Refused(E),
    /// Nothing was written, usually because the disk is full. Try again later.
    #[error("the change could not be written; is the disk full?")]
    NotWritten,
    /// The engine has stopped. The next opening of the database shows whether the change is durable.
    #[error("the database has stopped; open it again")]
    Stopped,
}

/// The journal cannot be read or created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The system refused a call.
    #[error("the journal cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// A file does not have the bytes that were written.
    #[error("the journal {path} is damaged at byte {offset}; restore it from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The end of the last entry before the damage.
        offset: u64,
    },
    /// The last file was cut off, and may have lost entries.
    #[error(
        "the journal file {path} was cut off: it has {length} bytes and once had at least {had}; changes after {last} are \
         missing; put the whole file back"
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
        /// The length that it once had, at least.
        had: u64,
        /// The last entry that is still there.
        last: u64,
    },
    /// Entries are missing between two files.
    #[error("the journal {path} goes on with entry {found} after {after}; a file is missing, restore it from a backup")]
    Gap {
        /// The file after the gap.
        path: PathBuf,
        /// The last entry before the gap.
        after: u64,
        /// The first entry after the gap.
        found: u64,
    },
    /// The journal ends before the tree does.
    #[error("the journal {path} ends at entry {last}, but the store already holds {applied}; restore it from a backup")]
    Behind {
        /// The journal's last file.
        path: PathBuf,
        /// The file's last entry.
        last: u64,
        /// The last entry that the tree holds.
        applied: u64,
    },
    /// A directory holds no journal file.
    #[error("there is no journal in {directory}; put its files back, or name the directory that holds them")]
    Missing {
        /// The directory.
        directory: PathBuf,
    },
    /// A needed file is missing.
    #[error("the journal file {path} with the changes from {first} on is missing; put it back, or restore a backup")]
    Gone {
        /// The file.
        path: PathBuf,
        /// The file's first entry.
        first: u64,
    },
    /// A file is missing, but the tree no longer needs it.
    #[error("the journal file {path} is missing: the journal alone can no longer rebuild the store; take a backup now")]
    Superseded {
        /// The file.
        path: PathBuf,
    },
    /// An entry could not be applied to the tree.
    #[error("an entry cannot be applied: {0}")]
    Apply(#[from] TreeError),
}

/// A batch was not appended to the journal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    #[error("the tree would have no room for the batch: {0}")]
    NoRoom(#[source] io::Error),
    #[error("the journal could not be written: {0}")]
    NotWritten(#[source] io::Error),
    #[error("the journal could not be synced: {0}")]
    NotSynced(#[source] io::Error),
    #[error("the journal file {path} was removed or renamed while it was in use, or cut off")]
    Gone { path: PathBuf },
}

/// A database cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused a call.
    #[error("the data directory cannot be used: {0}")]
    Io(#[from] io::Error),
    /// Another process, or another handle in this process, has the database open.
    #[error("process {process} has {directory} open; stop it, or use another directory")]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// The id of the other process.
        process: String,
    },
    /// The tree is damaged, and the journal alone cannot rebuild it.
    #[error("the store in {directory} is damaged: {what}; restore it from its journal and, if there is one, a backup")]
    Damaged {
        /// The tree's directory.
        directory: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The tree or the journal is missing.
    #[error("{missing} is missing, one half of the store; restore the store from its journal or from a backup")]
    Incomplete {
        /// What is missing.
        missing: PathBuf,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A later version wrote it.
    #[error("format {found} is newer than format {known} of this version; use the version that wrote it")]
    Format {
        /// The version of its layout.
        found: u32,
        /// The version of the layout given to this opening.
        known: u32,
    },
    /// The tree cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// A backup or a restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The target is in use.
    #[error("{directory} is not empty; name a directory that is, or none yet")]
    NotEmpty {
        /// The target.
        directory: PathBuf,
    },
    /// The target contains a part of a backup that nobody seems to be writing.
    #[error("{directory} holds a part of a backup that was not finished; remove it, or name another directory")]
    CutOff {
        /// The target.
        directory: PathBuf,
    },
    /// The backup was not finished, or lacks records.
    #[error("{backup} is not a whole backup: {what}; take another")]
    NotWhole {
        /// The backup.
        backup: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The backup was made after the requested moment.
    #[error("the backup {backup} is of a later moment than that; take an earlier one, or none and the journal alone")]
    Later {
        /// The backup.
        backup: PathBuf,
    },
    /// The disk has too little room.
    #[error(
        "a backup needs about {}, and {} are free on the disk of {directory}; make room, or name a directory on another disk",
        size(*.needed),
        size(*.free)
    )]
    NoRoom {
        /// The target.
        directory: PathBuf,
        /// How many bytes are needed.
        needed: u64,
        /// How many bytes are free.
        free: u64,
    },
    /// The journal and the backup are of two databases, or of one database before and after a restore.
    #[error(
        "the backup {backup} and the journal {journal} do not belong together: they are of two stores, or one of them is from \
         before a restore; use the journal of the store that made the backup, or a backup of the store with this journal"
    )]
    OtherLine {
        /// The backup.
        backup: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// The journal does not reach the backup's end.
    #[error(
        "the journal {journal} ends at change {last}, before the backup's end at {to}: it is an older copy, of another store, or \
         was cut off; name the journal of the store that was lost, or take another backup"
    )]
    Short {
        /// The journal's directory.
        journal: PathBuf,
        /// The last entry of the journal.
        last: u64,
        /// The last entry that the backup needs.
        to: u64,
    },
    /// The journal begins after the backup's end.
    #[error(
        "the backup ends at change {to}, and the journal {journal} goes on with {found}: neither has the changes between; take a \
         later backup, or put the missing journal files back"
    )]
    Apart {
        /// The journal's directory.
        journal: PathBuf,
        /// The last entry of the backup.
        to: u64,
        /// The journal's first entry after that.
        found: u64,
    },
    /// The database was closed before the backup was finished.
    #[error("the store has stopped")]
    Stopped,
    /// The system refused a call.
    #[error("the copy could not be read or written: {0}; is the disk full?")]
    Io(#[from] io::Error),
    /// The new database's tree cannot be created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The tree cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

impl JournalError {
    /// The last entry that can be read before missing ones.
    #[must_use]
    pub fn left_until(&self) -> Option<u64> {
        match self {
            Self::Gone { first, .. } => Some(first - 1),
            Self::Cut { last, .. } => Some(*last),
            _ => None,
        }
        .filter(|last| *last > 0)
    }
}

/// A number of bytes, written for a person.
fn size(bytes: u64) -> String {
    match bytes / 1024 {
        kib @ ..10_240 => format!("{kib} KiB"),
        kib => format!("{} MiB", kib / 1024),
    }
}

impl TreeError {
    pub(crate) fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }

    pub(crate) fn damaged(key: &[u8], what: impl std::fmt::Display) -> Self {
        Self::Damaged { key: String::from_utf8_lossy(key).escape_debug().to_string(), what: what.to_string() }
    }
}

impl OpenError {
    /// Refuses a database or a backup whose layout has a later version than the known one.
    pub(crate) fn refuse_later_format(found: u32, known: u32) -> Result<(), Self> {
        if found > known { Err(Self::Format { found, known }) } else { Ok(()) }
    }

    pub(crate) fn damaged(directory: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { directory: directory.to_owned(), what: what.into() }
    }
}
