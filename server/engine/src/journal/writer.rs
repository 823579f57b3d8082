//! Appends to the journal.
//!
//! Ahead of the last entry a file holds zeros. Where the file need not grow, a sync has only the entry to write and not the
//! file's new length as well.

use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    entry::{MAGIC, encode},
    file_list::FileList,
    files::{ROTATE_AT_BYTES, begin_file, files_in},
    opening::{self, Opened},
};
use crate::{
    error::{AppendError, JournalError},
    whole_file::{self, sync_directory},
    writes::Writes,
};

/// How many zeros are written at a time ahead of the entries.
const AHEAD_BYTES: usize = 1024 * 1024;

/// The journal's last file, open for appending.
pub(crate) struct Journal {
    directory: PathBuf,
    list: FileList,
    path: PathBuf,
    file: File,
    /// What tells the open file from every other, whatever their names.
    identity: Option<(u64, u64)>,
    /// Where the last entry ends.
    length: u64,
    /// Where the zeros after it end, and the file.
    allocated: u64,
    last: u64,
    /// How long files become.
    file_bytes: u64,
    /// The length at which a new file is due.
    rotate_at: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Begins the journal of a new store.
    pub(crate) fn create(directory: &Path) -> Result<Self, JournalError> {
        whole_file::create_directory(directory)?;
        let (path, file) = begin_file(directory, 1)?;
        let list = FileList::of([1]);
        list.write(directory)?;
        Ok(Self::of_file(directory, list, path, file, 0))
    }

    /// Opens the journal in a directory and hands over, in order, every entry since the last checkpoint, and any before
    /// that after number `applied`, the last that the tree says it holds.
    ///
    /// # Errors
    /// [`JournalError::Gone`] where a file is missing that the tree may need. One that it no longer needs is only logged: the
    /// journal alone can then not make the store anew.
    pub(crate) fn open(
        directory: &Path,
        applied: u64,
        mut replay: impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<Self, JournalError> {
        let Opened { list, path, file, length, allocated, last } = opening::open(directory, applied, &mut replay)?;
        let journal = Self::of_file(directory, list, path, file, last);
        Ok(Self { length, allocated, ..journal })
    }

    /// A file without entries.
    fn of_file(directory: &Path, list: FileList, path: PathBuf, file: File, last: u64) -> Self {
        let length = MAGIC.len() as u64;
        let (directory, identity) = (directory.to_owned(), file.metadata().ok().map(identity));
        let (file_bytes, rotate_at, buffer) = (ROTATE_AT_BYTES, ROTATE_AT_BYTES, Vec::new());
        Self { directory, list, path, file, identity, length, allocated: length, last, file_bytes, rotate_at, buffer }
    }

    /// With files of about this length.
    pub(crate) fn with_file_bytes(self, file_bytes: u64) -> Self {
        Self { file_bytes, rotate_at: file_bytes, ..self }
    }

    /// The files it consists of: all but the last are closed.
    pub(crate) fn list(&self) -> FileList {
        self.list.clone()
    }

    /// Appends a batch and syncs it; returns its number. When this returns `Ok` no crash can undo it.
    ///
    /// # Errors
    /// [`AppendError::NotWritten`] leaves the journal as it was: the batch may be tried again later. After
    /// [`AppendError::NotSynced`] nobody knows what the file holds: the process must stop and read it anew. After
    /// [`AppendError::Gone`] the journal is as it was, where no start would find it.
    pub(crate) fn append(&mut self, writes: &Writes) -> Result<u64, AppendError> {
        let number = self.last + 1;
        encode(&mut self.buffer, number, writes).map_err(AppendError::NotWritten)?;
        if let Err(error) = self.write_buffer() {
            // As it was, less the zeros: some of them may be written over.
            self.file.set_len(self.length).map_err(AppendError::NotSynced)?;
            self.file.seek(SeekFrom::Start(self.length)).map_err(AppendError::NotSynced)?;
            self.allocated = self.length;
            return Err(AppendError::NotWritten(error));
        }
        self.file.sync_data().map_err(AppendError::NotSynced)?;
        if !self.has_its_name() {
            // Nobody is told of this entry, and its number goes to another: the file may be put back.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.sync_all());
            let _ = self.file.seek(SeekFrom::Start(self.length));
            self.allocated = self.length;
            return Err(AppendError::Gone { path: self.path.clone() });
        }
        self.length += self.buffer.len() as u64;
        self.last = number;
        Ok(number)
    }

    /// Whether the file that is open is the one that a start would open.
    fn has_its_name(&self) -> bool {
        self.identity.is_some() && fs::symlink_metadata(&self.path).ok().map(identity) == self.identity
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let end = self.length + self.buffer.len() as u64;
        if end > self.allocated {
            self.file.seek(SeekFrom::Start(self.allocated))?;
            let needed = usize::try_from(end - self.allocated).unwrap_or(usize::MAX);
            self.file.write_all(&vec![0; needed.saturating_add(AHEAD_BYTES)])?;
            self.file.sync_all()?;
            self.allocated = end + AHEAD_BYTES as u64;
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        self.file.write_all(&self.buffer)
    }

    /// Whether it is time to [`rotate`](Self::rotate).
    pub(crate) fn is_long(&self) -> bool {
        self.length > self.rotate_at
    }

    /// Begins a new file and removes those of the earlier ones that hold nothing after entry `needed_after`. Only when
    /// everything so far is durable elsewhere. Where that fails the present file goes on, and it is tried again when
    /// that has grown as much once more.
    pub(crate) fn rotate(&mut self, needed_after: u64) -> Result<(), JournalError> {
        self.rotate_at = self.length + self.file_bytes;
        let first = self.last + 1;
        let (path, file) = begin_file(&self.directory, first)?;
        let mut list = self.list.clone();
        list.begin(first);
        list.drop_up_to(needed_after.min(self.last));
        // From here on it is the one that a start goes on with. Where this fails, a start may find it listed and without an
        // entry, and goes on with the one before.
        if let Err(error) = list.write(&self.directory) {
            // Whether a start finds the new list nobody knows; the file must stay if it does.
            if !FileList::read(&self.directory)?.is_some_and(|list| list.has(first)) {
                let _ = fs::remove_file(&path);
            }
            return Err(error.into());
        }
        let oldest = list.oldest();
        *self = Self::of_file(&self.directory, list, path, file, self.last).with_file_bytes(self.file_bytes);
        self.file.seek(SeekFrom::Start(self.length))?;
        for file in files_in(&self.directory)?.iter().filter(|file| file.first < oldest) {
            file.remove()?;
        }
        sync_directory(&self.directory)?;
        Ok(())
    }
}

fn identity(metadata: fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{batch, entries_after, new_journal, three_entries},
        *,
    };

    #[test]
    fn zeros_ahead_are_no_entry_and_what_a_crash_left_among_them_is_dropped() {
        let (_held, directory, mut journal) = new_journal();
        let open = || Journal::open(&directory, 0, |_, _| Ok(())).unwrap();
        journal.append(&batch("a", Some("1"))).unwrap();
        let (length, allocated) = (journal.length, journal.allocated);
        let path = files_in(&directory).unwrap().remove(0).path;
        assert_eq!(fs::metadata(&path).unwrap().len(), allocated);
        assert!(allocated > length + 1_000_000);

        // Appending goes on in the zeros, and the file does not grow.
        let mut journal = open();
        journal.append(&batch("b", Some("2"))).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), allocated);
        let end = journal.length;
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 2);

        // The middle of an entry reached the disk, its beginning did not.
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(end).unwrap() + 600] = 7;
        fs::write(&path, &bytes).unwrap();
        let mut journal = open();
        assert_eq!(fs::metadata(&path).unwrap().len(), end);
        journal.append(&batch("c", Some("3"))).unwrap();
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 3);

        // An entry longer than all the zeros.
        let mut journal = open();
        let long = "x".repeat(3 * AHEAD_BYTES);
        journal.append(&batch("long", Some(&long))).unwrap();
        journal.append(&batch("d", Some("4"))).unwrap();
        let entries = entries_after(&directory, 3).unwrap();
        assert_eq!(entries[3..], [(4, batch("long", Some(&long))), (5, batch("d", Some("4")))]);
    }

    #[test]
    fn after_a_rotation_numbers_go_on_and_the_old_files_are_gone() {
        let (_held, directory, _) = three_entries();
        let mut journal = Journal::open(&directory, 3, |_, _| Ok(())).unwrap();
        journal.rotate(u64::MAX).unwrap();
        assert_eq!(journal.append(&batch("d", Some("4"))).unwrap(), 4);
        drop(journal);
        assert_eq!(files_in(&directory).unwrap().len(), 1);
        assert_eq!(entries_after(&directory, 3).unwrap(), [(4, batch("d", Some("4")))]);
    }

    #[test]
    fn whatever_a_rotation_fails_at_the_journal_keeps_all_that_was_appended() {
        // A directory in the way of a name fails the call that would make it.
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
            assert_eq!(journal.list(), FileList::of([1]));
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
    fn what_is_appended_to_a_file_that_lost_its_name_is_not_acknowledged() {
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
