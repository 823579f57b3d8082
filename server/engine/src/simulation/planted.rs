//! Faults that a test plants, to see that the simulation finds them. The simulated disk makes most of them of the engine's calls.

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
    /// The list names a journal file whose own name may not be on the disk.
    ListedBeforeBegun,
    /// A closed journal file is removed before its compressed form is there.
    RemovedBeforeCompressed,
    /// A start trusts the number of the last batch in the tree.
    NumberTrusted,
    /// No room is reserved for the tree.
    NoReserve,
    /// A series takes backups of all lines for its own.
    BackupsOfAllLines,
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

/// Whether the fault is that the engine does not make this call.
pub(super) fn leaves_out(call: Call<'_>, is_path_there: bool) -> bool {
    let Call { name, path, .. } = call;
    match PLANTED.get() {
        Some(Planted::AnswerBeforeSync) => name == "sync data",
        // Until the file has its name.
        Some(Planted::NameBeforeContent) => {
            name == "sync all" && path.extension().is_some_and(|suffix| suffix == "unfinished") && is_path_there
        }
        Some(Planted::NameNotSynced) => name == "sync directory",
        Some(Planted::ListedBeforeBegun) => name == "sync directory" && path.ends_with(journal::DIRECTORY),
        Some(Planted::ListedWithoutTree) => name == "sync all" && path.ends_with(tree::FILE),
        _ => false,
    }
}

/// Whether the fault is that the engine takes this write for done, whatever its outcome.
pub(super) fn counts_as_written(call: Call<'_>) -> bool {
    let is_of_journal = call.path.parent().is_some_and(|directory| directory.ends_with(journal::DIRECTORY));
    is_planted(Planted::FailedWriteCounts) && is_of_journal
}
