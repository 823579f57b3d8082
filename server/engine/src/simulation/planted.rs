//! Faults of the engine that a test plants, to see that the simulation finds them.

use std::cell::Cell;

/// A fault of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A commit is answered before the journal is synced.
    AnswerBeforeSync,
    /// A failed write of an entry counts as written.
    FailedWriteCounts,
    /// After a failed sync of an entry the engine goes on.
    FailedSyncGoesOn,
    /// A file gets its name before its content is synced.
    NameBeforeContent,
    /// The directory is not synced when a file gets its name.
    NameNotSynced,
    /// An entry's checksum is not compared.
    ChecksumIgnored,
    /// A start does not sync what a killed process wrote last.
    LastEntryNotSynced,
    /// The list says that the tree has what it was not synced with.
    ListedWithoutTree,
    /// Old journal files are removed before the list lacks them.
    RemovedBeforeListed,
    /// The list names a journal file before there is one.
    ListedBeforeBegun,
    /// A closed journal file is removed before its compressed form is there.
    RemovedBeforeCompressed,
    /// The number of a batch comes before the batch, and a start trusts it.
    NumberBeforeBatch,
    /// No room is reserved for the tree.
    NoReserve,
    /// A series takes backups of all lines for its own.
    BackupsOfAllLines,
    /// A backup of a moment ago goes when enough newer ones are there.
    BackupsWithoutAge,
    /// A journal file that is shorter than it was is taken for whole.
    CutAccepted,
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// From now on the engine has this fault on this thread, or none.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
}

/// Whether the engine has this fault on this thread.
pub(crate) fn is_planted(fault: Planted) -> bool {
    PLANTED.get() == Some(fault)
}
