//! How a start continues the journal in a directory.
//!
//! The list of files says up to which entry the tree was synced. Each start applies all later entries again, because a
//! crash can leave part of a later batch in the tree. A power cut can even leave the number of the last batch without
//! the batch.

use std::{path::Path, sync::Arc};

use super::{
    content::Content,
    entry::EMPTY_BYTES,
    file_list::FileList,
    files::{JournalFile, begin_file, files_in},
    reader::Files,
    writer::Journal,
};
use crate::{
    disk::{Disk, Open},
    error::JournalError,
    writes::Writes,
};

impl Journal {
    /// Opens the journal in a directory. Passes to `replay`, in order, all entries after the tree's last sync and all entries
    /// after number `applied`, which is the last that the tree says it has.
    ///
    /// # Errors
    /// [`JournalError::Gone`] if a file is missing that the tree may need, [`JournalError::Cut`] if the last file may have
    /// lost entries. If a file is missing that the tree no longer needs, that is only logged: then the journal alone cannot
    /// rebuild the tree.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        applied: u64,
        mut replay: impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<Self, JournalError> {
        let shared = disk;
        let disk = &**shared;
        let files = Files::of(disk, directory, applied, None)?;
        let content = &files.current;
        let listed = FileList::read(disk, directory)?;
        // A crash just after a journal was begun may have left it without a list.
        let in_tree = listed.as_ref().map_or(content.file.first - 1, FileList::in_tree);
        content.refuse_damage()?;
        content.refuse_loss(applied.max(in_tree), &files.unused)?;
        // From here on the last entry counts: it is applied, readers see it, and further entries follow it.
        content.write_last_again(disk)?;
        if content.is_torn() {
            tracing::warn!("a crash cut the last journal entry short; it is dropped, its commits were not answered");
        }
        let last = content.last;
        // This file was begun but not used yet.
        let begun = files.unused.iter().find(|file| file.first == last + 1);
        let needed_after = if planted!(NumberTrusted) { applied } else { applied.min(in_tree) };
        files.read(disk, needed_after, &mut replay)?;
        for file in &files.closed {
            if !file.is_there(disk)? {
                tracing::error!("{}", JournalError::Superseded { path: file.path.clone() });
            }
        }

        let mut zeros_end = content.end_well(disk)?;
        let begun = begun.map(|begun| Content::of(disk, begun.clone())).transpose()?;
        if let Some(begun) = &begun {
            begun.write_last_again(disk)?;
            zeros_end = begun.end_well(disk)?;
        }
        let present = begun.as_ref().unwrap_or(content);
        let JournalFile { first, path } = &present.file;
        let (first, file, length, allocated) = match disk.exists(path)? {
            true => (*first, disk.open(path, Open::Write)?, present.end, zeros_end),
            // The last file is compressed, so begin another.
            false => (last + 1, begin_file(disk, directory, last + 1)?, EMPTY_BYTES, EMPTY_BYTES),
        };
        let mut list = FileList {
            files: files.closed.iter().map(|file| file.first).chain([content.file.first, first]).collect(),
            in_tree: Some(in_tree),
            lines: FileList::lines(listed.as_ref(), disk, last),
        };
        list.files.dedup();
        if listed.as_ref() != Some(&list) {
            list.write(disk, directory)?;
        }
        for file in files_in(disk, directory)? {
            if !list.has(file.first) && file.is_unused(disk)? {
                tracing::warn!(path = %file.path.display(), "removing a journal file that was begun and never used");
                file.remove(disk)?;
            }
        }
        let mut journal = Self::of_file(shared, directory, list, file, last)?;
        (journal.length, journal.allocated) = (length, allocated);
        Ok(journal)
    }
}
