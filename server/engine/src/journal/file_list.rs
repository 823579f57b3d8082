//! Which files the journal consists of.
//!
//! The names in the journal's directory do not tell whether one is missing, nor whether the last was ever used. So the list
//! stands beside the directory, in `journal.json`, and survives it. A file belongs to the journal from the moment it is
//! listed until it is no longer.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{error::JournalError, whole_file};

/// The journal's files by the numbers of their first entries, ascending. The last is the one that is appended to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileList {
    files: Vec<u64>,
}

impl FileList {
    /// A list of at least one.
    pub(super) fn of(firsts: impl IntoIterator<Item = u64>) -> Self {
        Self { files: firsts.into_iter().collect() }
    }

    /// The list of the journal in a directory, if one was ever written.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>, JournalError> {
        let path = beside(directory);
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let list = serde_json::from_slice::<Self>(&json).ok();
        let list = list.filter(|list| {
            let ascends = list.files.is_sorted_by(|one, next| one < next);
            ascends && list.files.first().is_some_and(|first| *first > 0)
        });
        list.map(Some).ok_or(JournalError::Damaged { path, offset: 0 })
    }

    /// Makes it the list of the journal in a directory, durably.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        whole_file::write(&beside(directory), &serde_json::to_vec(self)?)
    }

    /// A file of later entries than the others.
    pub(super) fn begin(&mut self, first: u64) {
        self.files.push(first);
    }

    /// Takes off the files that hold nothing after an entry.
    pub(super) fn drop_up_to(&mut self, needed_after: u64) {
        let ended = self.files.iter().skip(1).take_while(|next| **next <= needed_after + 1).count();
        self.files.drain(..ended);
    }

    pub(super) fn firsts(&self) -> impl Iterator<Item = u64> {
        self.files.iter().copied()
    }

    pub(super) fn has(&self, first: u64) -> bool {
        self.files.binary_search(&first).is_ok()
    }

    pub(super) fn oldest(&self) -> u64 {
        self.files.first().copied().unwrap_or(1)
    }

    /// The file that is appended to.
    pub(super) fn active(&self) -> u64 {
        self.files.last().copied().unwrap_or(1)
    }
}

/// `journal.json` of `journal`.
fn beside(directory: &Path) -> PathBuf {
    directory.with_extension("json")
}
