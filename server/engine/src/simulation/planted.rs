//! Faults that a test plants, to check that the simulation finds them. Most of them change calls on the simulated disk.

use std::cell::Cell;

use super::trace::Call;
use crate::{journal, tree};

/// A fault of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A commit is answered before the journal is synced.
    AnswerBeforeSync,
    /// A failed write of an entry counts as written.
    FailedWriteCounts,
    /// The engine goes on after a failed sync of an entry.
    FailedSyncGoesOn,
    /// A file gets its name before its content is synced.
    NameBeforeContent,
    /// The directory is not synced when a file gets its name.
    NameNotSynced,
    /// An entry's checksum is not compared.
    ChecksumIgnored,
    /// A start does not sync what a killed process wrote last.
    LastEntryNotSynced,
    /// The list says that the tree has more than it was synced with.
    ListedWithoutTree,
    /// Old journal files are removed before the list omits them.
    RemovedBeforeListed,
    /// The list names a journal file whose own name may not be durable.
    ListedBeforeBegun,
    /// A closed journal file is removed before its compressed form exists.
    RemovedBeforeCompressed,
    /// A start trusts the number of the last batch in the tree.
    NumberTrusted,
    /// No room is reserved for the tree.
    NoReserve,
    /// A series treats backups of all lines as its own.
    BackupsOfAllLines,
    /// A journal file that was cut off counts as whole.
    CutAccepted,
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// From now on the engine has this fault, or none, on this thread.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
}

/// Whether the engine has this fault on this thread.
pub(crate) fn is_planted(fault: Planted) -> bool {
    PLANTED.get() == Some(fault)
}

/// Whether the planted fault omits this call.
pub(super) fn leaves_out(call: Call<'_>, is_path_there: bool) -> bool {
    let Call { name, path, .. } = call;
    match PLANTED.get() {
        Some(Planted::AnswerBeforeSync) => name == "sync data",
        // As long as the file does not have its final name.
        Some(Planted::NameBeforeContent) => {
            name == "sync all" && path.extension().is_some_and(|suffix| suffix == "unfinished") && is_path_there
        }
        Some(Planted::NameNotSynced) => name == "sync directory",
        Some(Planted::ListedBeforeBegun) => name == "sync directory" && path.ends_with(journal::DIRECTORY),
        Some(Planted::ListedWithoutTree) => name == "sync all" && path.ends_with(tree::FILE),
        _ => false,
    }
}

/// Whether the planted fault counts this write as done even if it fails.
pub(super) fn counts_as_written(call: Call<'_>) -> bool {
    let is_of_journal = call.path.parent().is_some_and(|directory| directory.ends_with(journal::DIRECTORY));
    is_planted(Planted::FailedWriteCounts) && is_of_journal
}
