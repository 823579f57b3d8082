//! What the journal's last file holds: entries, then zeros or what a crash left of one more entry.

use std::io;

use super::{
    entry::{EMPTY_BYTES, MAGIC, is_blank, is_entry_behind, is_zero_from, read_entries},
    files::JournalFile,
};
use crate::{
    disk::{Disk, Open},
    error::JournalError,
    whole_file::if_there,
    writes::Writes,
};

/// The content of a file, and where its entries end.
pub(super) struct Content<'f> {
    file: &'f JournalFile,
    bytes: Vec<u8>,
    /// Where the last whole entry begins, and ends.
    start: u64,
    pub(super) end: u64,
    /// The number of the last entry, or of the one before the file if it has none.
    pub(super) last: u64,
}

impl<'f> Content<'f> {
    pub(super) fn of(disk: &dyn Disk, file: &'f JournalFile) -> Result<Self, JournalError> {
        let mut content =
            Self { file, bytes: file.read(disk)?, start: EMPTY_BYTES, end: EMPTY_BYTES, last: file.first - 1 };
        if !is_blank(&content.bytes) {
            let Self { bytes, last, .. } = &mut content;
            let found = read_entries(bytes, &file.path, last, u64::MAX, &mut |_, _| Ok(()))?;
            (content.start, content.end) = (found.start, found.end);
        }
        Ok(content)
    }

    /// Passes the entries after number `after` to `each`.
    pub(super) fn read(
        &self,
        last: &mut u64,
        after: u64,
        each: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if self.last < self.file.first {
            return Ok(());
        }
        read_entries(&self.bytes, &self.file.path, last, after, each).map(drop)
    }

    /// Whether a crash cut an entry short after the last whole one.
    pub(super) fn is_torn(&self) -> bool {
        !is_zero_from(&self.bytes, self.end)
    }

    /// Returns an error if a whole entry follows an unreadable one.
    pub(super) fn refuse_damage(&self) -> Result<(), JournalError> {
        match is_entry_behind(&self.bytes, self.end, self.last) {
            true => Err(JournalError::Damaged { path: self.file.path.clone(), offset: self.end }),
            false => Ok(()),
        }
    }

    /// Returns an error if a file was begun after entries that this one lacks, the last one with entries. A file is begun only
    /// when everything before it is durable, so the last entry here is damaged and not cut short.
    pub(super) fn refuse_gap(&self, begun: &[JournalFile]) -> Result<(), JournalError> {
        match begun.iter().find(|next| next.first > self.last + 1) {
            Some(JournalFile { first, path }) => {
                Err(JournalError::Gap { path: path.clone(), after: self.last, found: *first })
            }
            None => Ok(()),
        }
    }

    /// Makes the last entry durable, if the file is not compressed. A process that was killed may not have synced it. If its
    /// sync failed, the kernel may have taken it for written, and it is read here although no later sync would write it. So
    /// it is written again.
    pub(super) fn write_last_again(&self, disk: &dyn Disk) -> io::Result<()> {
        if planted!(LastEntryNotSynced) {
            return Ok(());
        }
        let Some(file) = if_there(disk.open(&self.file.path, Open::Write))? else { return Ok(()) };
        let range = usize::try_from(self.start).ok().zip(usize::try_from(self.end).ok());
        if let Some(entry) = range.and_then(|(start, end)| self.bytes.get(start..end)) {
            file.write_all_at(entry, self.start)?;
        }
        file.sync_all()
    }

    /// Cuts the file after its last entry unless only zeros follow it. Returns the length of the file.
    pub(super) fn cut(&self, disk: &dyn Disk) -> io::Result<u64> {
        let has_magic = self.bytes.starts_with(MAGIC);
        if has_magic && !self.is_torn() {
            return Ok(self.bytes.len() as u64);
        }
        let file = disk.open(&self.file.path, Open::Write)?;
        if !has_magic {
            file.write_all_at(MAGIC, 0)?;
        }
        file.set_length(self.end)?;
        file.sync_all()?;
        Ok(self.end)
    }
}
