//! The list of the journal's files.
//!
//! The names in the journal's directory show neither whether a file is missing nor whether the last one was ever used. So the
//! list is a file beside the directory, `journal.json`. A file belongs to the journal while it is listed.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    disk::{self, Disk},
    error::JournalError,
    line::Lines,
    whole_file::{self, if_there},
};

/// The journal's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileList {
    /// The numbers of the files' first entries, ascending. There is at least one file. Entries are appended to the last.
    pub(super) files: Vec<u64>,
    /// The entry up to which the tree is on the disk. Without it: everything before the last file of the list, however many
    /// files were begun later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) in_tree: Option<u64>,
    pub(super) lines: Lines,
}

impl FileList {
    pub(super) fn of(files: Vec<u64>) -> Self {
        Self { files, in_tree: None, lines: Lines::default() }
    }

    /// Reads the list of the journal in a directory, if it has one.
    pub(super) fn read(disk: &dyn Disk, directory: &Path) -> Result<Option<Self>, JournalError> {
        let path = path_of(directory);
        let Some(json) = if_there(disk::read(disk, &path))? else { return Ok(None) };
        let list = serde_json::from_slice::<Self>(&json).ok();
        let list = list.filter(|Self { files, .. }| {
            files.is_sorted_by(|one, next| one < next) && files.first().is_some_and(|first| *first > 0)
        });
        list.map(Some).ok_or(JournalError::Damaged { path, offset: 0 })
    }

    /// Writes the list of the journal in a directory, durably.
    pub(super) fn write(&self, disk: &dyn Disk, directory: &Path) -> io::Result<()> {
        whole_file::write(disk, &path_of(directory), &serde_json::to_vec(self)?)
    }

    /// The lines of a journal that is opened and ends with this change. If none is known, one begins.
    pub(super) fn lines(listed: Option<&Self>, disk: &dyn Disk, last: u64) -> Lines {
        let known = listed.map(|list| list.lines.clone()).filter(|lines| !lines.is_empty());
        known.unwrap_or_else(|| Lines::default().begin(disk.new_id(), last))
    }

    pub(super) fn has(&self, first: u64) -> bool {
        self.files.binary_search(&first).is_ok()
    }

    /// The entry up to which the tree is on the disk.
    pub(super) fn in_tree(&self) -> u64 {
        self.in_tree.unwrap_or(self.active() - 1)
    }

    /// The file to which entries are appended.
    pub(super) fn active(&self) -> u64 {
        self.files.last().copied().unwrap_or(1)
    }
}

/// `journal.json` beside `journal`.
fn path_of(directory: &Path) -> PathBuf {
    directory.with_extension("json")
}
