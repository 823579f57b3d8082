//! The journal: an append-only file of committed batches, synced before anyone is told of them.
//!
//! sled 0.34.7 does not sync what it calls flushed (`sync_file_range` neither waits for the drive nor covers the
//! file's metadata), so a power cut could take back what was acknowledged. The journal is what durability rests on:
//! a batch is appended here and synced with `fdatasync`, only then shown and answered, and applied to sled after
//! that. What a reader finds is therefore durable, and after a crash the end of the journal that sled had not yet
//! written is applied again.
//!
//! A file is `PAYJRNL1` and then entries: length and CRC-32 of what follows (4 bytes each), the entry's number (8), and
//! its writes. All numbers are little-endian. Numbers count from 1 without a gap, across files; a file is named for
//! its first. An entry that the crash cut short is the end of the journal: nobody was told of it. Since an entry is begun
//! only when the one before is synced, nothing can stand behind one that was cut short: where a whole entry does, the one
//! before it was whole once and is damaged, and the journal is refused.
//!
//! Ahead of the last entry a file holds zeros, which are no entry. Where the file need not grow, a sync has only the
//! entry to write and not the file's new length as well.
//!
//! A file gets its name when its first bytes are on the disk (`whole_file`), and belongs to the journal when it is listed
//! beside the directory (`file_list`). So a file that was begun in vain, on a full disk say, hides none that is in use, and a
//! file that is missing is missed.
//!
//! A new file is begun only when sled has been synced. So whatever a power cut did to sled's file since then, the last
//! journal file has it all, and at each start all of that file is applied again: a crash can leave a part of a batch in
//! sled, and a power cut the number of the last batch without the rest of it. Earlier files are kept,
//! compressed (`archive`), until a scheduled backup holds what they hold: all of them together make the store anew.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{archive, file_list::FileList, whole_file};

/// What a batch writes: each key's new value, or `None` where it is removed.
pub(super) type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The writes under keys with this beginning, in their order.
pub(super) fn under<'w>(
    writes: &'w Writes,
    prefix: &'w [u8],
) -> impl Iterator<Item = (&'w Vec<u8>, &'w Option<Vec<u8>>)> {
    writes.range(prefix.to_vec()..).take_while(move |(key, _)| key.starts_with(prefix))
}

const MAGIC: &[u8; 8] = b"PAYJRNL1";
const ENTRY_HEAD_BYTES: usize = 8;
const SUFFIX: &str = ".journal";
/// When a file is this long, a new one is begun, and those that nobody needs any more are removed.
const ROTATE_AT_BYTES: u64 = 32 * 1024 * 1024;
/// How many zeros are written at a time ahead of the entries.
const AHEAD_BYTES: usize = 1024 * 1024;

/// The journal's last file, open for appending.
pub(super) struct Journal {
    directory: PathBuf,
    list: FileList,
    path: PathBuf,
    file: File,
    /// Where the last entry ends.
    length: u64,
    /// Where the zeros after it end, and the file.
    allocated: u64,
    last: u64,
    /// The length at which a new file is due.
    rotate_at: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Begins the journal of a new store.
    pub(super) fn create(directory: &Path) -> Result<Self, JournalError> {
        fs::create_dir_all(directory)?;
        let (path, file) = begin_file(directory, 1)?;
        let list = FileList::of([1]);
        list.write(directory)?;
        Ok(Self::of_file(directory, list, path, file, 0))
    }

    /// Opens the journal in a directory and hands over, in order, every entry that came since sled was last synced, and any
    /// before that after number `applied`, the last that sled says it holds.
    ///
    /// # Errors
    /// [`JournalError::Gone`] where a file is missing that sled may need. One that sled no longer needs is only logged: the
    /// journal alone can then not make the store anew.
    pub(super) fn open(
        directory: &Path,
        applied: u64,
        mut replay: impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<Self, JournalError> {
        let there = files_in(directory)?;
        let listed = FileList::read(directory)?;
        let files = match &listed {
            Some(list) => belonging(there.clone(), list, directory)?,
            // A version before lists wrote it; what is there is all that is known.
            None => there.clone(),
        };
        let (mut used, unused) = without_unused(files)?;
        let Some(mut current) = used.pop() else {
            return Err(JournalError::Missing { directory: directory.to_owned() });
        };
        if !current.is_there() {
            // sled has all that it held if a next one was begun.
            let Some(next) = unused.iter().find(|file| (current.first + 1..=applied + 1).contains(&file.first)) else {
                return Err(JournalError::Gone { path: current.path });
            };
            used.push(std::mem::replace(&mut current, next.clone()));
        }
        let bytes = current.read()?;
        let mut last = current.first - 1;
        let end = match is_blank(&bytes) {
            true => MAGIC.len() as u64,
            false => read_entries(&bytes, &current.path, &mut last, u64::MAX, &mut |_, _| Ok(()))?,
        };
        if !is_zero_from(&bytes, end) {
            refuse_damage(&bytes, &current.path, end, last)?;
            tracing::warn!("the last journal entry was cut short by a crash; nobody was told of it, it is dropped");
        }
        // Begun when sled was synced, and not yet used.
        let next = unused.iter().find(|file| file.first == last + 1);
        let synced = next.unwrap_or(&current).first - 1;
        let after = applied.min(synced);

        let needed = files_still_needed(used.clone(), after, current.first);
        for missing in used.iter().filter(|file| !file.is_there()) {
            if needed.iter().any(|file| file.first == missing.first) {
                return Err(JournalError::Gone { path: missing.path.clone() });
            }
            tracing::error!(path = %missing.path.display(), "a journal file is missing: the journal alone can no longer \
                make this store anew; take a backup now");
        }
        let mut read = match needed.first() {
            Some(first) => first.first - 1,
            None => current.first - 1,
        };
        if read > after {
            let path = needed.first().unwrap_or(&current).path.clone();
            return Err(JournalError::Gap { path, after, found: read + 1 });
        }
        for file in &needed {
            file.read_whole(&mut read, after, &mut replay)?;
        }
        if !is_blank(&bytes) {
            read_entries(&bytes, &current.path, &mut read, after, &mut replay)?;
        }
        if last < applied {
            return Err(JournalError::Behind { path: current.path, last, applied });
        }

        let kept = used.iter().map(|file| file.first);
        let mut journal = if let Some(next) = next {
            current.cut_at(end, &bytes)?;
            let file = OpenOptions::new().read(true).write(true).open(&next.path)?;
            let list = FileList::of(kept.chain([current.first, next.first]));
            Self::of_file(directory, list, next.path.clone(), file, last)
        } else if archive::is_one(&current.path) {
            let (path, file) = begin_file(directory, last + 1)?;
            let list = FileList::of(kept.chain([current.first, last + 1]));
            Self::of_file(directory, list, path, file, last)
        } else {
            let allocated = current.cut_at(end, &bytes)?;
            let file = OpenOptions::new().read(true).write(true).open(&current.path)?;
            let list = FileList::of(kept.chain([current.first]));
            let journal = Self::of_file(directory, list, current.path, file, last);
            Self { length: end, allocated, ..journal }
        };
        journal.file.seek(SeekFrom::Start(journal.length))?;
        if listed.as_ref() != Some(&journal.list) {
            journal.list.write(directory)?;
        }
        for file in &there {
            if !journal.list.has(file.first) && file.is_unused()? {
                tracing::warn!(path = %file.path.display(), "a journal file that was begun and never used is removed");
                file.remove()?;
            }
        }
        Ok(journal)
    }

    /// A file without entries.
    fn of_file(directory: &Path, list: FileList, path: PathBuf, file: File, last: u64) -> Self {
        let length = MAGIC.len() as u64;
        let (directory, rotate_at) = (directory.to_owned(), ROTATE_AT_BYTES);
        Self { directory, list, path, file, length, allocated: length, last, rotate_at, buffer: Vec::new() }
    }

    /// The number of the first entry that the open file has or will have: earlier files are closed.
    pub(super) fn active(&self) -> u64 {
        self.list.active()
    }

    /// Appends a batch and syncs it; returns its number. When this returns `Ok` no crash can undo it.
    ///
    /// # Errors
    /// [`AppendError::NotWritten`] leaves the journal as it was: the batch may be tried again later. After
    /// [`AppendError::NotSynced`] nobody knows what the file holds: the process must stop and read it anew. After
    /// [`AppendError::Gone`] the batch is written where no start would find it.
    pub(super) fn append(&mut self, writes: &Writes) -> Result<u64, AppendError> {
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
            return Err(AppendError::Gone { path: self.path.clone() });
        }
        self.length += self.buffer.len() as u64;
        self.last = number;
        Ok(number)
    }

    /// Whether the file that is open is the one that a start would open.
    fn has_its_name(&self) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let named = fs::symlink_metadata(&self.path).map(identity);
        named.is_ok_and(|named| self.file.metadata().is_ok_and(|open| identity(open) == named))
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
    pub(super) fn is_long(&self) -> bool {
        self.length > self.rotate_at
    }

    /// Begins a new file and removes those of the earlier ones that hold nothing after entry `needed_after`. Only when
    /// everything so far is durable elsewhere. Where that fails the present file goes on, and it is tried again when
    /// that has grown as much once more.
    pub(super) fn rotate(&mut self, needed_after: u64) -> Result<(), JournalError> {
        self.rotate_at = self.length + ROTATE_AT_BYTES;
        let first = self.last + 1;
        let (path, file) = begin_file(&self.directory, first)?;
        let mut list = self.list.clone();
        list.begin(first);
        list.drop_up_to(needed_after.min(self.last));
        // From here on it is the one that a start goes on with. Where this fails, a start may find it listed and without an
        // entry, and goes on with the one before.
        list.write(&self.directory)?;
        let oldest = list.oldest();
        *self = Self::of_file(&self.directory, list, path, file, self.last);
        self.file.seek(SeekFrom::Start(self.length))?;
        for file in files_in(&self.directory)?.iter().filter(|file| file.first < oldest) {
            file.remove()?;
        }
        sync_directory(&self.directory)?;
        Ok(())
    }
}

/// A journal that is written as a copy of others: files like those of [`Journal`], of about the same length.
pub(super) struct Copy {
    directory: PathBuf,
    list: FileList,
    pieces: Pieces,
}

impl Copy {
    /// Begins in an empty directory.
    pub(super) fn create(directory: &Path, first: u64) -> io::Result<Self> {
        let pieces = Pieces::create(&file_in(directory, first), first)?;
        Ok(Self { directory: directory.to_owned(), list: FileList::of([first]), pieces })
    }

    pub(super) fn append(&mut self, writes: &Writes) -> io::Result<()> {
        if self.pieces.length > ROTATE_AT_BYTES {
            self.begin_next()?;
        }
        self.pieces.append(writes)
    }

    /// Ends with an empty file, so that the first start has nothing to apply.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.pieces.length > MAGIC.len() as u64 {
            self.begin_next()?;
        }
        self.pieces.finish()?;
        self.list.write(&self.directory)
    }

    fn begin_next(&mut self) -> io::Result<()> {
        let first = self.pieces.last + 1;
        let next = Pieces::create(&file_in(&self.directory, first), first)?;
        self.list.begin(first);
        std::mem::replace(&mut self.pieces, next).finish().map(drop)
    }
}

/// A file in the journal's own form that is written once: no zeros ahead, one sync at the end.
pub(super) struct Pieces {
    file: io::BufWriter<File>,
    length: u64,
    last: u64,
    buffer: Vec<u8>,
}

impl Pieces {
    /// Begins a file whose first entry will have this number.
    pub(super) fn create(path: &Path, first: u64) -> io::Result<Self> {
        let mut file = io::BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?);
        file.write_all(MAGIC)?;
        Ok(Self { file, length: MAGIC.len() as u64, last: first - 1, buffer: Vec::new() })
    }

    pub(super) fn append(&mut self, writes: &Writes) -> io::Result<()> {
        encode(&mut self.buffer, self.last + 1, writes)?;
        self.file.write_all(&self.buffer)?;
        self.length += self.buffer.len() as u64;
        self.last += 1;
        Ok(())
    }

    /// Syncs the file and returns the number of its last entry.
    pub(super) fn finish(self) -> io::Result<u64> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(self.last)
    }
}

/// Reads a file of [`Pieces`] numbered from 1; returns how many there were. It may not have been cut short.
pub(super) fn read_pieces(
    path: &Path,
    mut each: impl FnMut(Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let mut last = 0;
    let bytes = fs::read(path)?;
    let end = read_entries(&bytes, path, &mut last, 0, &mut |_, writes| each(writes))?;
    if end != bytes.len() as u64 {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: end });
    }
    Ok(last)
}

/// Whether entries may have been written to the journal in a directory, which may be missing.
pub(super) fn is_begun(directory: &Path) -> Result<bool, JournalError> {
    if !directory.exists() {
        return Ok(FileList::read(directory)?.is_some());
    }
    for file in files_in(directory)? {
        if !file.is_unused()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Hands over, in order, the entries of a journal that come after number `after`, and changes nothing. Returns the last
/// entry's number. Somebody may be appending meanwhile; what came after the call may or may not be there.
pub(super) fn read(
    directory: &Path,
    after: u64,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    read_files(directory, after, &mut each).map(|(last, _)| last)
}

/// As [`read`], of a journal that nobody appends to. One that is damaged before its end is refused.
pub(super) fn read_closed(
    directory: &Path,
    after: u64,
    mut each: impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let (last, end) = read_files(directory, after, &mut each)?;
    if let Some((file, end)) = end {
        refuse_damage(&file.read()?, &file.path, end, last)?;
    }
    Ok(last)
}

/// What is wrong with the files of a journal that may be appended to meanwhile: each must be there and have all entries up
/// to where the next begins. All of them are read.
pub(super) fn faults(directory: &Path) -> Result<Vec<(PathBuf, JournalError)>, JournalError> {
    let listed = |directory| FileList::read(directory).map(|list| list.map(|list| list.firsts().collect::<Vec<_>>()));
    let files = match listed(directory)? {
        Some(firsts) => {
            firsts.into_iter().map(|first| JournalFile { first, path: file_in(directory, first) }).collect()
        }
        None => files_in(directory)?,
    };
    let (used, _) = without_unused(files)?;
    let mut faults = Vec::new();
    for (nth, file) in used.iter().enumerate() {
        let outcome = match used.get(nth + 1) {
            Some(next) => file.reaches(next.first),
            None => file.read().and_then(|bytes| match is_blank(&bytes) {
                true => Ok(()),
                false => {
                    read_entries(&bytes, &file.path, &mut (file.first - 1), u64::MAX, &mut |_, _| Ok(())).map(drop)
                }
            }),
        };
        let outcome = if file.is_there() { outcome } else { Err(JournalError::Gone { path: file.path.clone() }) };
        // What a backup made superfluous may go at any moment.
        if let Err(error) = outcome
            && listed(directory)?.is_none_or(|firsts| firsts.contains(&file.first))
        {
            faults.push((file.path.clone(), error));
        }
    }
    Ok(faults)
}

/// Returns the last entry's number, and where it ends.
fn read_files(
    directory: &Path,
    after: u64,
    each: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<(u64, Option<(JournalFile, u64)>), JournalError> {
    let (mut files, _) = without_unused(files_in(directory)?)?;
    let Some(current) = files.pop() else {
        return Err(JournalError::Missing { directory: directory.to_owned() });
    };
    let files = files_still_needed(files, after, current.first);
    let JournalFile { first, path, .. } = files.first().unwrap_or(&current);
    if *first > after + 1 {
        return Err(JournalError::Gap { path: path.clone(), after, found: *first });
    }
    let mut last = first - 1;
    for file in &files {
        file.read_whole(&mut last, after, each)?;
    }
    let bytes = current.read()?;
    let end = match is_blank(&bytes) {
        true => bytes.len() as u64,
        false => read_entries(&bytes, &current.path, &mut last, after, each)?,
    };
    Ok((last, Some((current, end))))
}

/// Without the files before one that begins with entry `next` whose entries all come up to `after`.
fn files_still_needed(files: Vec<JournalFile>, after: u64, next: u64) -> Vec<JournalFile> {
    let firsts: Vec<_> = files.iter().skip(1).map(|file| file.first).chain([next]).collect();
    let ended = firsts.iter().take(files.len()).take_while(|first| **first <= after + 1).count();
    files.into_iter().skip(ended).collect()
}

/// The files that belong to the journal: those listed, there or not, and later ones that have entries, which a version
/// before lists wrote.
fn belonging(there: Vec<JournalFile>, list: &FileList, directory: &Path) -> Result<Vec<JournalFile>, JournalError> {
    let mut files: BTreeMap<u64, JournalFile> =
        list.firsts().map(|first| (first, JournalFile { first, path: file_in(directory, first) })).collect();
    for file in there {
        if list.has(file.first) || (file.first > list.active() && !file.is_unused()?) {
            files.insert(file.first, file);
        }
    }
    let files: Vec<_> = files.into_values().collect();
    match files.last().filter(|active| !active.is_there()) {
        Some(active) => Err(JournalError::Gone { path: active.path.clone() }),
        None => Ok(files),
    }
}

/// The files that have entries, or the first if none has; and those that have none. A file without entries hides none of
/// those before it.
fn without_unused(files: Vec<JournalFile>) -> Result<(Vec<JournalFile>, Vec<JournalFile>), JournalError> {
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for file in files {
        if file.is_unused()? { unused.push(file) } else { used.push(file) }
    }
    if used.is_empty() && !unused.is_empty() {
        used.push(unused.remove(0));
    }
    Ok((used, unused))
}

/// The name of the file whose first entry has this number.
pub(super) fn file_in(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}{SUFFIX}"))
}

/// A file's bytes from an offset on.
fn rest_from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

/// Whether a file holds nothing but zeros from an offset on.
fn is_zero_from(bytes: &[u8], offset: u64) -> bool {
    rest_from(bytes, offset).iter().all(|byte| *byte == 0)
}

/// Whether a file has no entry, nor anything that might have been one: a part of its first bytes, and zeros.
fn is_blank(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(MAGIC.len())];
    (MAGIC.starts_with(head) || is_zero_from(head, 0)) && is_zero_from(bytes, MAGIC.len() as u64)
}

/// Refuses a file in which a whole entry stands somewhere behind `end`, where the last one that can be read ends.
fn refuse_damage(bytes: &[u8], path: &Path, end: u64, last: u64) -> Result<(), JournalError> {
    let rest = rest_from(bytes, end);
    // A later entry's number is larger, by one for each entry between, and an entry has 16 bytes at least. So what a
    // merchant's text happens to hold is not taken for one.
    let possible = last + 2..=last + 2 + rest.len() as u64 / 16;
    let is_entry = |start: usize| decode(&rest[start..]).is_some_and(|(number, ..)| possible.contains(&number));
    if (1..rest.len()).any(is_entry) {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: end });
    }
    Ok(())
}

/// One of the journal's files.
#[derive(Debug, Clone)]
pub(super) struct JournalFile {
    /// The number of its first entry.
    first: u64,
    pub(super) path: PathBuf,
}

impl JournalFile {
    /// The number of its first entry.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Whether it is there, compressed or not.
    fn is_there(&self) -> bool {
        self.path.exists() || archive::of(&self.path).exists()
    }

    /// Whether nothing was ever written to it: it holds nothing but zeros, after the first bytes of such a file or a part
    /// of them. A closed file is never so.
    fn is_unused(&self) -> io::Result<bool> {
        if archive::is_one(&self.path) {
            return Ok(false);
        }
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // It is missing, or was compressed a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; MAGIC.len() + ENTRY_HEAD_BYTES];
        let read = read_up_to(&mut file, &mut bytes)?;
        bytes.truncate(read);
        if is_blank(&bytes) {
            // Only zeros where its first entry would begin: all of it tells damage from a file never used.
            file.read_to_end(&mut bytes)?;
        }
        Ok(is_blank(&bytes))
    }

    /// Drops what stands after the last entry unless it is zeros. Returns how long the file is then.
    fn cut_at(&self, end: u64, bytes: &[u8]) -> io::Result<u64> {
        if is_zero_from(bytes, end) && bytes.starts_with(MAGIC) {
            return Ok(bytes.len() as u64);
        }
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        if !bytes.starts_with(MAGIC) {
            file.write_all(MAGIC)?;
        }
        file.set_len(end)?;
        file.sync_all()?;
        Ok(end)
    }

    /// Hands over the entries after number `after` of a file that was ended in good order: only the last one can have
    /// been cut short by a crash.
    fn read_whole(
        &self,
        last: &mut u64,
        after: u64,
        each: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let bytes = self.read()?;
        let end = read_entries(&bytes, &self.path, last, after, each)?;
        match is_zero_from(&bytes, end) {
            true => Ok(()),
            false => Err(JournalError::Damaged { path: self.path.clone(), offset: end }),
        }
    }

    /// Whether a closed file has all entries before the next file's first.
    fn reaches(&self, next: u64) -> Result<(), JournalError> {
        let mut last = self.first - 1;
        self.read_whole(&mut last, u64::MAX, &mut |_, _| Ok(()))?;
        if last + 1 == next {
            return Ok(());
        }
        Err(JournalError::Gap { path: self.path.clone(), after: last, found: next })
    }

    /// Its bytes, whether or not it is compressed, or is being compressed at this moment.
    fn read(&self) -> Result<Vec<u8>, JournalError> {
        if archive::is_one(&self.path) {
            return archive::read(&self.path);
        }
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => archive::read(&archive::of(&self.path)),
            read => Ok(read?),
        }
    }

    /// Removes it in both its forms.
    fn remove(&self) -> io::Result<()> {
        for path in [&self.path, &archive::of(&self.path)] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The journal's files, oldest first.
pub(super) fn files_in(directory: &Path) -> io::Result<Vec<JournalFile>> {
    let mut files = BTreeMap::<u64, PathBuf>::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = name.strip_suffix(archive::SUFFIX).unwrap_or(name);
        if let Some(first) = stem.strip_suffix(SUFFIX).and_then(|digits| digits.parse().ok()) {
            // A crash between the two steps of compressing a file leaves both forms; they hold the same.
            let known = files.entry(first).or_insert_with(|| path.clone());
            if !archive::is_one(&path) {
                *known = path;
            }
        }
    }
    Ok(files.into_iter().map(|(first, path)| JournalFile { first, path }).collect())
}

/// Begins a file whose first entry will have this number. It has its name when it is whole.
fn begin_file(directory: &Path, first: u64) -> io::Result<(PathBuf, File)> {
    let path = file_in(directory, first);
    let file = whole_file::create(&path, |file| file.write_all(MAGIC))?;
    Ok((path, file))
}

/// Reads until the buffer is full or the file ends; returns how much.
fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let limit = buffer.len() as u64;
    let mut rest = &mut buffer[..];
    io::copy(&mut file.take(limit), &mut rest)?;
    let left = rest.len() as u64;
    usize::try_from(limit - left).map_err(io::Error::other)
}

/// Makes the names in a directory durable (fsync(2): a file's own sync does not cover its name).
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Reads a file's entries and hands over those after `applied`. Returns where the last whole entry ends.
fn read_entries(
    bytes: &[u8],
    path: &Path,
    last: &mut u64,
    applied: u64,
    replay: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let Some(entries) = bytes.strip_prefix(MAGIC) else {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: 0 });
    };
    let mut rest = entries;
    while let Some((number, writes, after)) = decode(rest) {
        if number != *last + 1 {
            return Err(JournalError::Gap { path: path.to_owned(), after: *last, found: number });
        }
        if number > applied {
            replay(number, writes)?;
        }
        *last = number;
        rest = after;
    }
    Ok((bytes.len() - rest.len()) as u64)
}

fn encode(buffer: &mut Vec<u8>, number: u64, writes: &Writes) -> io::Result<()> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a batch of more than 4 GiB");
    buffer.clear();
    buffer.extend_from_slice(&[0; ENTRY_HEAD_BYTES]);
    buffer.extend_from_slice(&number.to_le_bytes());
    for (key, value) in writes {
        buffer.extend_from_slice(&u32::try_from(key.len()).map_err(too_long)?.to_le_bytes());
        buffer.extend_from_slice(key);
        match value {
            Some(value) => {
                buffer.push(1);
                buffer.extend_from_slice(&u32::try_from(value.len()).map_err(too_long)?.to_le_bytes());
                buffer.extend_from_slice(value);
            }
            None => buffer.push(0),
        }
    }
    let length = u32::try_from(buffer.len() - ENTRY_HEAD_BYTES).map_err(too_long)?;
    let checksum = crc32fast::hash(&buffer[ENTRY_HEAD_BYTES..]);
    buffer[..4].copy_from_slice(&length.to_le_bytes());
    buffer[4..ENTRY_HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The next entry and what follows it, or `None` where no whole one stands.
fn decode(bytes: &[u8]) -> Option<(u64, Writes, &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    let (checksum, rest) = take_u32(rest)?;
    let (entry, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    if crc32fast::hash(entry) != checksum {
        return None;
    }
    let (number, mut rest) = entry.split_first_chunk::<8>()?;
    let mut writes = Writes::new();
    while !rest.is_empty() {
        let (key, tagged) = take_bytes(rest)?;
        let (tag, tail) = tagged.split_first()?;
        let (value, tail) = match tag {
            0 => (None, tail),
            _ => take_bytes(tail).map(|(value, tail)| (Some(value.to_vec()), tail))?,
        };
        writes.insert(key.to_vec(), value);
        rest = tail;
    }
    Some((u64::from_le_bytes(*number), writes, after))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(number, rest)| (u32::from_le_bytes(*number), rest))
}

fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// The journal cannot be read or begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("the journal cannot be read or written: {0}")]
    Io(#[from] io::Error),
    #[error("the journal {path} is damaged at byte {offset}; restore it from a backup", path = path.display())]
    Damaged { path: PathBuf, offset: u64 },
    #[error("the journal {path} goes on with entry {found} after {after}; a file is missing, restore it from a backup",
        path = path.display())]
    Gap { path: PathBuf, after: u64, found: u64 },
    #[error("the journal {path} ends at entry {last}, but the store already holds {applied}; restore it from a backup",
        path = path.display())]
    Behind { path: PathBuf, last: u64, applied: u64 },
    #[error("there is no journal in {directory}; put its files back, or name the directory that holds them", directory = directory.display())]
    Missing { directory: PathBuf },
    #[error("the journal file {path} is missing, and the store needs it; put it back, or restore from a backup",
        path = path.display())]
    Gone { path: PathBuf },
    #[error("an entry cannot be applied: {0}")]
    Apply(#[from] sled::Error),
}

/// A batch was not appended.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error("the batch could not be written: {0}")]
    NotWritten(#[source] io::Error),
    #[error("the journal could not be synced: {0}")]
    NotSynced(#[source] io::Error),
    #[error("the journal file {path} was removed or renamed while it was in use", path = path.display())]
    Gone { path: PathBuf },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(key: &str, value: Option<&str>) -> Writes {
        Writes::from([(key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()))])
    }

    /// A directory with an empty journal in it.
    fn new_journal() -> (tempfile::TempDir, PathBuf, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journal = Journal::create(&path).unwrap();
        (directory, path, journal)
    }

    fn entries_after(directory: &Path, applied: u64) -> Result<Vec<(u64, Writes)>, JournalError> {
        let mut entries = Vec::new();
        Journal::open(directory, applied, |number, writes| {
            entries.push((number, writes));
            Ok(())
        })?;
        Ok(entries)
    }

    fn three_entries() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let (held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        journal.append(&batch("b", None)).unwrap();
        journal.append(&batch("c", Some("3"))).unwrap();
        // Without the zeros, so that the tests below go over the entries only.
        journal.file.set_len(journal.length).unwrap();
        (held, directory, journal.path)
    }

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
    fn a_file_whose_first_bytes_never_reached_the_disk_is_begun_again_unless_entries_are_missing() {
        let (_held, directory, path) = three_entries();
        for never_written in [&[][..], &[0], &[0; 8], &[0; 5000], b"PAYJ"] {
            fs::write(&path, never_written).unwrap();
            assert_eq!(entries_after(&directory, 0).unwrap(), []);
            assert_eq!(fs::read(&path).unwrap(), MAGIC);
        }
        fs::write(&path, [0; 5000]).unwrap();
        assert!(matches!(entries_after(&directory, 3), Err(JournalError::Behind { last: 0, applied: 3, .. })));
    }

    #[test]
    fn what_was_appended_is_read_again_in_order() {
        let (_held, directory, _) = three_entries();
        let all = vec![(1, batch("a", Some("1"))), (2, batch("b", None)), (3, batch("c", Some("3")))];
        assert_eq!(entries_after(&directory, 0).unwrap(), all);
        // sled may not have all of what it says it holds.
        assert_eq!(entries_after(&directory, 2).unwrap(), all);
        assert_eq!(entries_after(&directory, 3).unwrap(), all);
    }

    #[test]
    fn cut_at_any_byte_it_keeps_every_whole_entry_and_can_be_appended_to() {
        let (_held, directory, path) = three_entries();
        let whole = fs::read(&path).unwrap();
        let mut kept = Vec::new();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let entries = entries_after(&directory, 0).unwrap();
            kept.push(entries.len());
            let mut journal = Journal::open(&directory, 0, |_, _| Ok(())).unwrap();
            journal.append(&batch("new", Some("x"))).unwrap();
            let entries = entries_after(&directory, 0).unwrap();
            assert_eq!(entries.len(), kept[length] + 1);
            assert_eq!(entries[kept[length]].1, batch("new", Some("x")));
        }
        assert!(kept.is_sorted());
        assert_eq!((kept[0], kept[whole.len() - 1]), (0, 2));
    }

    #[test]
    fn a_flipped_bit_is_never_read_as_an_entry_and_only_in_the_last_one_taken_for_a_crash() {
        let (_held, directory, path) = three_entries();
        let whole = fs::read(&path).unwrap();
        let entries = entries_after(&directory, 0).unwrap();
        let mut last = Vec::new();
        encode(&mut last, 3, &batch("c", Some("3"))).unwrap();
        let last_bytes = last.len();
        for bit in MAGIC.len() * 8..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            match entries_after(&directory, 0) {
                // Only the last entry can be one that a crash cut short.
                Ok(read) => assert_eq!(read, entries[..2], "bit {bit}"),
                Err(error) => assert!(matches!(error, JournalError::Damaged { .. }), "bit {bit}: {error}"),
            }
            let is_of_the_last = bit / 8 >= whole.len() - last_bytes;
            assert_eq!(entries_after(&directory, 0).is_ok(), is_of_the_last, "bit {bit}");
        }
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
    fn a_journal_that_does_not_reach_the_store_is_refused_by_name() {
        let (_held, directory, _) = three_entries();
        assert!(matches!(entries_after(&directory, 4), Err(JournalError::Behind { last: 3, applied: 4, .. })));
        let (_held, directory, mut journal) = new_journal();
        journal.last = 8;
        journal.rotate(8).unwrap();
        journal.append(&batch("d", Some("4"))).unwrap();
        assert!(matches!(entries_after(&directory, 4), Err(JournalError::Gap { after: 4, found: 9, .. })));
    }

    #[test]
    fn a_file_that_was_begun_in_vain_hides_none_that_is_in_use() {
        let (_held, directory, mut journal) = new_journal();
        journal.append(&batch("a", Some("1"))).unwrap();
        // The next file is there, whole, half or not at all written, and listed or not; the old one went on.
        let stray = file_in(&directory, 2);
        journal.append(&batch("b", Some("2"))).unwrap();
        journal.append(&batch("c", Some("3"))).unwrap();
        for list in [vec![1], vec![1, 2]] {
            for left in [&MAGIC[..], b"", b"PAY", &[0; 9000]] {
                fs::write(&stray, left).unwrap();
                FileList::of(list.clone()).write(&directory).unwrap();
                assert_eq!(entries_after(&directory, 0).unwrap().len(), 3);
                let mut read_again = 0;
                read(&directory, 0, |_, _| {
                    read_again += 1;
                    Ok(())
                })
                .unwrap();
                assert_eq!(read_again, 3);
                assert!(!stray.exists());
                assert_eq!(FileList::read(&directory).unwrap(), Some(FileList::of([1])));
            }
        }
        // One that begins where the last ends was made in good order, and is gone on with.
        fs::write(file_in(&directory, 4), MAGIC).unwrap();
        FileList::of([1, 4]).write(&directory).unwrap();
        let mut journal = Journal::open(&directory, 3, |_, _| Ok(())).unwrap();
        assert_eq!(journal.active(), 4);
        journal.append(&batch("d", Some("4"))).unwrap();
        assert_eq!(entries_after(&directory, 0).unwrap().len(), 4);
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
            assert_eq!(journal.active(), 1);
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
    fn a_listed_file_that_is_missing_is_named_and_refused_if_the_store_needs_it() {
        let (_held, directory, path) = three_entries();
        let mut journal = Journal::open(&directory, 3, |_, _| Ok(())).unwrap();
        journal.rotate(0).unwrap();
        journal.append(&batch("d", Some("4"))).unwrap();
        let active = journal.path.clone();
        drop(journal);
        fs::rename(&path, path.with_extension("away")).unwrap();
        // What sled holds it has no need of.
        assert_eq!(entries_after(&directory, 3).unwrap().len(), 1);
        assert!(matches!(entries_after(&directory, 2), Err(JournalError::Gone { path: gone }) if gone == path));
        fs::rename(path.with_extension("away"), &path).unwrap();
        assert_eq!(entries_after(&directory, 2).unwrap().len(), 2);
        fs::remove_file(&active).unwrap();
        assert!(matches!(entries_after(&directory, 4), Err(JournalError::Gone { path }) if path == active));
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
