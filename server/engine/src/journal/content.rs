//! The content of the journal's last file: entries, then zeros or what a crash left of one more entry.

use std::{io, ops::Range};

use super::{
    entry::{EMPTY_BYTES, ENTRY_HEAD_BYTES, Each, Head, is_entry_behind, is_zero_from, read_entries},
    files::JournalFile,
};
use crate::{
    disk::{Disk, DiskFile, Open},
    error::JournalError,
    whole_file::if_there,
};

pub(super) struct Content {
    pub(super) file: JournalFile,
    bytes: Vec<u8>,
    head: Head,
    /// Where the last whole entry begins. `end` is where it ends.
    start: u64,
    pub(super) end: u64,
    /// The number of the last entry. In a file without entries, the number before its first.
    pub(super) last: u64,
}

impl Content {
    pub(super) fn of(disk: &dyn Disk, file: JournalFile) -> Result<Self, JournalError> {
        let (bytes, mut last) = (file.read(disk)?, file.first - 1);
        // A file's head is on the disk before the file has its name.
        let head = Head::of(&bytes).ok_or_else(|| match bytes.len() as u64 {
            ..EMPTY_BYTES => file.cut(&bytes, EMPTY_BYTES, last),
            _ => JournalError::Damaged { path: file.path.clone(), offset: 0 },
        })?;
        let Range { start, end } = read_entries(&bytes, &file.path, &mut last, u64::MAX, &mut |_, _| Ok(()))?;
        Ok(Self { file, bytes, head, start, end, last })
    }

    /// Passes the entries after number `after` to `each`.
    pub(super) fn read(&self, last: &mut u64, after: u64, each: &mut Each<'_>) -> Result<(), JournalError> {
        if self.last < self.file.first {
            return Ok(());
        }
        read_entries(&self.bytes, &self.file.path, last, after, each).map(drop)
    }

    /// Whether a crash cut an entry short, after the last whole one.
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

    /// Returns an error if entries after the last one are missing. Then the file was cut off, the tree has had entry
    /// `applied`, or a file that was begun later starts too late. A file is begun only when everything before it is durable,
    /// so in the third case the last entry here is damaged, not cut short.
    pub(super) fn refuse_loss(&self, applied: u64, begun: &[JournalFile]) -> Result<(), JournalError> {
        let last = self.last;
        if self.head.is_cut(&self.bytes, self.end) {
            return Err(self.file.cut(&self.bytes, self.head.length, last));
        }
        if applied > last {
            return Err(JournalError::Behind { path: self.file.path.clone(), last, applied });
        }
        match begun.iter().find(|next| next.first > last + 1) {
            Some(next) => Err(JournalError::Gap { path: next.path.clone(), after: last, found: next.first }),
            None => Ok(()),
        }
    }

    /// Makes the head and the last entry durable, if the file is not compressed. A killed process may not have synced them.
    /// If its sync failed, the kernel may wrongly count them as written: they can be read here, but no later sync would write
    /// them. So this writes them again. It also writes the next few bytes, which may be zeros that replaced an entry that was
    /// never acknowledged.
    pub(super) fn write_last_again(&self, disk: &dyn Disk) -> io::Result<()> {
        if planted!(LastEntryNotSynced) {
            return Ok(());
        }
        let Some(file) = if_there(disk.open(&self.file.path, Open::Write))? else { return Ok(()) };
        let start = usize::try_from(self.start).map_err(io::Error::other)?;
        let end = usize::try_from(self.end).map_err(io::Error::other)? + ENTRY_HEAD_BYTES;
        if let Some(entry) = self.bytes.get(start..end.min(self.bytes.len())) {
            file.write_all_at(entry, self.start)?;
        }
        file.write_all_at(&Head::bytes(self.head.length), 0)?;
        file.sync_all()
    }

    /// Leaves only zeros after the last entry, durably, if the file is not compressed. Returns where the zeros end that are
    /// certainly on the disk. The file gets no shorter, because a start would consider that a loss.
    ///
    /// Zeros that can be read are written again: if their sync failed, the disk may still have the entry that they replaced.
    pub(super) fn end_well(&self, disk: &dyn Disk) -> io::Result<u64> {
        let zeros_end = self.head.length.max(self.end);
        let Some(file) = if_there(disk.open(&self.file.path, Open::Write))? else { return Ok(zeros_end) };
        if (self.bytes.len() as u64) < zeros_end {
            let path = self.file.path.display();
            tracing::warn!(%path, "a journal file was cut off behind its last entry; no change is missing");
            file.set_length(zeros_end)?;
        }
        blank(&*file, self.end, self.bytes.len() as u64)?;
        Ok(zeros_end)
    }
}

/// Writes zeros from an offset to another, durably.
pub(super) fn blank(file: &dyn DiskFile, start: u64, end: u64) -> io::Result<()> {
    let zeros = usize::try_from(end.saturating_sub(start)).map_err(io::Error::other)?;
    file.write_all_at(&vec![0; zeros], start)?;
    file.sync_all()
}
