//! Appends to the journal.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    content::blank,
    entry::{EMPTY_BYTES, Head, encode},
    file_list::FileList,
    files::{begin_file, file_in, files_in},
};
use crate::{
    disk::{self, Disk, DiskFile, Identity},
    error::{AppendError, JournalError},
    whole_file,
    writes::Writes,
};

/// How many zeros are written ahead of the entries at a time, at most.
const AHEAD_BYTES: usize = 1024 * 1024;
/// The suffix of a file that was cut off while it was in use. The tree has its entries.
const CUT: &str = "cut";

/// The journal's last file, open for appending.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The journal's files. All but the last are closed.
    pub(crate) list: FileList,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Identifies the open file, even if its name changes.
    identity: Identity,
    /// Where the last entry ends.
    pub(crate) length: u64,
    /// Where the zeros after the last entry end, which is the file's length. That length is on the disk, and the file's head
    /// has it.
    pub(super) allocated: u64,
    last: u64,
    pub(super) ahead: usize,
    buffer: Vec<u8>,
}

impl Journal {
    /// Begins the journal of a new store.
    pub(crate) fn create(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Self, JournalError> {
        whole_file::create_directory(&**disk, directory)?;
        let file = begin_file(&**disk, directory, 1)?;
        let list = FileList { lines: FileList::lines(None, &**disk, 0), ..FileList::of(vec![1]) };
        list.write(&**disk, directory)?;
        Ok(Self::of_file(disk, directory, list, file, 0)?)
    }

    /// The journal with this open last file, which has no entries.
    pub(super) fn of_file(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        list: FileList,
        file: Box<dyn DiskFile>,
        last: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            path: file_in(directory, list.active()),
            list,
            identity: file.identity()?,
            file,
            length: EMPTY_BYTES,
            allocated: EMPTY_BYTES,
            last,
            ahead: AHEAD_BYTES,
            buffer: Vec::new(),
        })
    }

    /// Sets the usual length of a file. It limits how many zeros are written at a time.
    pub(crate) fn set_file_bytes(&mut self, bytes: u64) {
        self.ahead = usize::try_from(bytes).unwrap_or(AHEAD_BYTES).min(AHEAD_BYTES);
    }

    /// Appends a batch, syncs it, and returns its number. When this returns `Ok`, no crash can undo it.
    ///
    /// # Errors
    /// [`AppendError::NotWritten`] leaves the journal as it was: the caller may try again later. After
    /// [`AppendError::NotSynced`] nobody knows what the file contains: the process must stop and read it again. After
    /// [`AppendError::Gone`] the file gets no more entries, and is renamed so that no start reads it.
    pub(crate) fn append(&mut self, writes: &Writes) -> Result<u64, AppendError> {
        if self.file.length().is_ok_and(|length| length < self.allocated) {
            let _ = whole_file::rename(&*self.disk, &self.path, &whole_file::beside(&self.path, CUT));
            return Err(AppendError::Gone { path: self.path.clone() });
        }
        let number = self.last + 1;
        encode(&mut self.buffer, number, writes).map_err(AppendError::NotWritten)?;
        if let Err(error) = self.write_buffer() {
            self.cut().map_err(AppendError::NotSynced)?;
            return Err(AppendError::NotWritten(error));
        }
        let not_synced = if planted!(FailedSyncGoesOn) { AppendError::NotWritten } else { AppendError::NotSynced };
        self.file.sync_data().map_err(not_synced)?;
        if !self.has_its_name() {
            // The entry is not acknowledged, and another entry gets its number, because somebody may put the file back.
            self.cut().map_err(AppendError::NotSynced)?;
            return Err(AppendError::Gone { path: self.path.clone() });
        }
        self.length += self.buffer.len() as u64;
        self.last = number;
        Ok(number)
    }

    /// Whether a start would open this same file.
    fn has_its_name(&self) -> bool {
        self.disk.identity(&self.path).is_ok_and(|found| found == self.identity)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let end = self.length + self.buffer.len() as u64;
        if end > self.allocated {
            let needed = usize::try_from(end - self.allocated).unwrap_or(usize::MAX);
            self.file.write_all_at(&vec![0; needed.saturating_add(self.ahead)], self.allocated)?;
            self.file.sync_all()?;
            let allocated = end + self.ahead as u64;
            // The sync of the entry also makes this durable. No entry in these zeros is acknowledged before.
            self.file.write_all_at(&Head::bytes(allocated), 0)?;
            self.allocated = allocated;
        }
        self.file.write_all_at(&self.buffer, self.length)
    }

    /// Restores the zeros after the last entry, because a failed entry may have overwritten some. The next file may be begun
    /// before anything else is written to this one, and a closed file without zeros at its end counts as damaged.
    fn cut(&mut self) -> io::Result<()> {
        let overwritten = disk::read_from(&*self.file, self.length, self.buffer.len())?;
        let filled = overwritten.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        // A full disk may have no room even for zeros. Then there is nothing to restore.
        if filled > 0 { blank(&*self.file, self.length, self.length + filled as u64) } else { Ok(()) }
    }

    /// The entry up to which the tree is on the disk, according to the list.
    pub(crate) fn in_tree(&self) -> u64 {
        self.list.in_tree()
    }

    /// Records in the list that the tree has everything up to an entry on the disk. Then a start applies only later entries.
    pub(crate) fn set_in_tree(&mut self, number: u64) -> io::Result<()> {
        self.set_list(FileList { in_tree: Some(number), ..self.list.clone() })
    }

    pub(crate) fn begin_line(&mut self) -> io::Result<()> {
        let lines = self.list.lines.clone().begin(self.disk.new_id(), self.last);
        self.set_list(FileList { lines, ..self.list.clone() })
    }

    fn set_list(&mut self, list: FileList) -> io::Result<()> {
        list.write(&*self.disk, &self.directory)?;
        self.list = list;
        Ok(())
    }

    /// Begins a new file. Removes earlier files without entries that the tree or a backup, after number `needed_after`, still
    /// needs. After an error the present file stays in use.
    pub(crate) fn rotate(&mut self, needed_after: u64) -> Result<(), JournalError> {
        let first = self.last + 1;
        let file = begin_file(&*self.disk, &self.directory, first)?;
        if self.list.active() == first {
            // The present file has no entries: the new one takes its name, which is already listed.
            *self = self.go_on_in(self.list.clone(), file)?;
            return Ok(());
        }
        let in_tree = self.in_tree();
        let mut list = FileList { in_tree: Some(in_tree), ..self.list.clone() };
        list.files.push(first);
        let superseded = list.files.iter().skip(1).take_while(|next| **next <= needed_after.min(in_tree) + 1).count();
        list.files.drain(..superseded);
        if planted!(RemovedBeforeListed) {
            remove_before(&*self.disk, &self.directory, &list)?;
        }
        let next = self.go_on_in(list, file)?;
        if let Err(error) = next.list.write(&*self.disk, &self.directory) {
            if FileList::read(&*self.disk, &self.directory)?.as_ref() != Some(&next.list) {
                let _ = self.disk.remove_file(&next.path);
                return Err(error.into());
            }
            // The new list has its name, and only a power cut decides which list a start finds. With either list the start
            // continues the new file, as long as no file of the old list is removed.
            tracing::warn!(%error, "the list of journal files could not be synced");
            *self = next;
            return Ok(());
        }
        *self = next;
        if let Err(error) = remove_before(&*self.disk, &self.directory, &self.list) {
            tracing::warn!(%error, "old journal files could not be removed; trying again when the next file begins");
        }
        Ok(())
    }

    /// The same journal with another last file, which has no entries yet.
    fn go_on_in(&self, list: FileList, file: Box<dyn DiskFile>) -> io::Result<Self> {
        Ok(Self { ahead: self.ahead, ..Self::of_file(&self.disk, &self.directory, list, file, self.last)? })
    }
}

fn remove_before(disk: &dyn Disk, directory: &Path, list: &FileList) -> io::Result<()> {
    let oldest = list.files.first().copied().unwrap_or(0);
    for file in files_in(disk, directory)?.iter().filter(|file| file.first < oldest) {
        file.remove(disk)?;
    }
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::tests::{batch, entries_after, new_journal, three_entries},
        *,
    };
    use crate::disk::SystemDisk;

    #[test]
    fn zeros_are_not_read_as_an_entry_and_a_torn_entry_among_them_is_dropped() {
        let (_held, directory, mut journal) = new_journal();
        let open = || Journal::open(&SystemDisk::shared(), &directory, 0, |_, _| Ok(())).unwrap();
        journal.append(&batch("a", Some("1"))).unwrap();
        let (length, allocated) = (journal.length, journal.allocated);
        let path = file_in(&directory, 1);
        assert_eq!(fs::metadata(&path).unwrap().len(), allocated);
        assert!(allocated > length + 1_000_000);

        // New entries replace zeros, so the file does not grow.
        let mut journal = open();
        journal.append(&batch("b", Some("2"))).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), allocated);
        let end = journal.length;
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 2);

        // The middle of an entry reached the disk, but its beginning did not.
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(end).unwrap() + 600] = 7;
        fs::write(&path, &bytes).unwrap();
        let mut journal = open();
        assert_eq!(fs::metadata(&path).unwrap().len(), allocated);
        journal.append(&batch("c", Some("3"))).unwrap();
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 3);

        // This entry is longer than all the zeros.
        let mut journal = open();
        let long = "x".repeat(3 * AHEAD_BYTES);
        journal.append(&batch("long", Some(&long))).unwrap();
        journal.append(&batch("d", Some("4"))).unwrap();
        let entries = entries_after(&directory, 3).unwrap();
        assert_eq!(entries[3..], [(4, batch("long", Some(&long))), (5, batch("d", Some("4")))]);
    }

    #[test]
    fn after_a_rotation_numbers_continue_and_old_files_are_removed() {
        let (_held, directory, _) = three_entries();
        let mut journal = Journal::open(&SystemDisk::shared(), &directory, 3, |_, _| Ok(())).unwrap();
        journal.rotate(u64::MAX).unwrap();
        assert_eq!(journal.append(&batch("d", Some("4"))).unwrap(), 4);
        assert_eq!(files_in(&SystemDisk, &directory).unwrap().len(), 2, "the tree may need the old one");
        assert_eq!(entries_after(&directory, 4).unwrap().len(), 4);
        journal.set_in_tree(3).unwrap();
        journal.rotate(u64::MAX).unwrap();
        drop(journal);
        assert_eq!(files_in(&SystemDisk, &directory).unwrap().len(), 2);
        assert_eq!(entries_after(&directory, 3).unwrap(), [(4, batch("d", Some("4")))]);
    }

    #[test]
    fn a_rotation_that_cannot_remove_an_old_file_still_uses_the_new_one() {
        let (_held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        journal.rotate(0).unwrap();
        journal.append(&batch("b", Some("2"))).unwrap();
        // A directory in its place cannot be removed as a file.
        let old = file_in(&directory, 1);
        fs::remove_file(&old).unwrap();
        fs::create_dir(&old).unwrap();
        journal.set_in_tree(2).unwrap();
        journal.rotate(u64::MAX).unwrap();
        assert_eq!((&*journal.list.files, journal.length), (&[3][..], EMPTY_BYTES));
        assert_eq!(journal.append(&batch("c", Some("3"))).unwrap(), 3);
        fs::remove_dir(&old).unwrap();
        assert_eq!(entries_after(&directory, 2).unwrap(), [(3, batch("c", Some("3")))]);
    }

    #[test]
    fn a_rotation_that_fails_at_any_step_keeps_all_entries() {
        // A directory with this name makes the call fail that would create the file.
        for in_the_way in ["journal/00000000000000000002.journal.unfinished", "journal.json.unfinished", "journal.json"]
        {
            let (held, directory, mut journal) = new_journal();
            journal.append(&batch("a", Some("1"))).unwrap();
            let blocked = held.path().join(in_the_way);
            let list = fs::read(held.path().join("journal.json")).unwrap();
            let _ = fs::remove_file(&blocked);
            fs::create_dir(&blocked).unwrap();
            fs::write(blocked.join("full"), "").unwrap();
            journal.rotate(0).unwrap_err();
            assert_eq!(journal.list.files, [1]);
            journal.append(&batch("b", Some("2"))).unwrap();
            fs::remove_dir_all(&blocked).unwrap();
            fs::write(held.path().join("journal.json"), &list).unwrap();
            assert_eq!(entries_after(&directory, 0).unwrap().len(), 2, "{in_the_way}");
            journal.rotate(0).unwrap();
            journal.append(&batch("c", Some("3"))).unwrap();
            assert_eq!(entries_after(&directory, 0).unwrap().len(), 3, "{in_the_way}");
        }
    }

    #[test]
    fn a_rotation_of_a_file_without_entries_lists_the_file_once() {
        let (_held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        journal.rotate(0).unwrap();
        fs::remove_file(&journal.path).unwrap();
        assert!(matches!(journal.append(&batch("b", Some("2"))), Err(AppendError::Gone { .. })));
        journal.rotate(0).unwrap();
        assert_eq!(journal.list.files, [1, 2]);
        assert_eq!(journal.append(&batch("b", Some("2"))).unwrap(), 2);
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 2);
    }

    #[test]
    fn a_file_cut_off_in_use_gets_no_more_entries_and_is_renamed() {
        let (_held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        fs::File::options().write(true).open(&journal.path).unwrap().set_len(journal.length).unwrap();
        assert!(matches!(journal.append(&batch("b", Some("2"))), Err(AppendError::Gone { .. })));
        journal.set_in_tree(1).unwrap();
        journal.rotate(0).unwrap();
        drop(journal);
        let mut journal = Journal::open(&SystemDisk::shared(), &directory, 1, |_, _| Ok(())).unwrap();
        assert_eq!(journal.append(&batch("b", Some("2"))).unwrap(), 2);
        assert!(directory.join("00000000000000000001.journal.cut").exists());
    }

    #[test]
    fn an_entry_in_a_file_that_lost_its_name_is_not_acknowledged() {
        let (_held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        let away = directory.join("away");
        fs::rename(&journal.path, &away).unwrap();
        assert!(matches!(journal.append(&batch("b", Some("2"))), Err(AppendError::Gone { .. })));
        fs::copy(&away, &journal.path).unwrap();
        assert!(matches!(journal.append(&batch("b", Some("2"))), Err(AppendError::Gone { .. })), "another file");
        fs::rename(&away, &journal.path).unwrap();
        assert_eq!(journal.append(&batch("b", Some("2"))).unwrap(), 2);
    }
}
