//! The journal's files, and which of those in a directory belong to it.
//!
//! A file is named for its first entry. It gets its name when its first bytes are on the disk (`whole_file`), and belongs to
//! the journal when it is listed beside the directory (`file_list`). So a file that was begun in vain, on a full disk say,
//! hides none that is in use, and a file that is missing is missed.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use super::{
    archive,
    entry::{ENTRY_HEAD_BYTES, MAGIC, is_blank, is_zero_from, read_entries},
    file_list::FileList,
};
use crate::{error::JournalError, whole_file, writes::Writes};

const SUFFIX: &str = ".journal";
/// When a file is this long, a new one is begun, and those that nobody needs any more are removed.
pub(super) const ROTATE_AT_BYTES: u64 = 32 * 1024 * 1024;

/// One of the journal's files.
#[derive(Debug, Clone)]
pub(super) struct JournalFile {
    /// The number of its first entry.
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

impl JournalFile {
    /// That it is not there, and is needed.
    pub(super) fn gone(&self) -> JournalError {
        JournalError::Gone { path: self.path.clone(), first: self.first }
    }

    /// Whether it is there, compressed or not.
    pub(super) fn is_there(&self) -> bool {
        self.path.exists() || archive::of(&self.path).exists()
    }

    /// Whether nothing was ever written to it: it holds nothing but zeros, after the first bytes of such a file or a part
    /// of them. A closed file is never so.
    pub(super) fn is_unused(&self) -> io::Result<bool> {
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
    pub(super) fn cut_at(&self, end: u64, bytes: &[u8]) -> io::Result<u64> {
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
    pub(super) fn read_whole(
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
    pub(super) fn reaches(&self, next: u64) -> Result<(), JournalError> {
        let mut last = self.first - 1;
        self.read_whole(&mut last, u64::MAX, &mut |_, _| Ok(()))?;
        if last + 1 == next {
            return Ok(());
        }
        Err(JournalError::Gap { path: self.path.clone(), after: last, found: next })
    }

    /// Its bytes, whether or not it is compressed, or is being compressed at this moment.
    pub(super) fn read(&self) -> Result<Vec<u8>, JournalError> {
        if archive::is_one(&self.path) {
            return archive::read(&self.path);
        }
        match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => archive::read(&archive::of(&self.path)),
            read => Ok(read?),
        }
    }

    /// Makes durable what it holds. Once it is compressed it is durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.sync_all(),
        }
    }

    /// Removes it in both its forms.
    pub(super) fn remove(&self) -> io::Result<()> {
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

/// The files that are listed, there or not.
pub(super) fn listed_in(directory: &Path, list: &FileList) -> impl Iterator<Item = JournalFile> {
    list.firsts().map(|first| JournalFile { first, path: file_in(directory, first) })
}

/// The files that belong to the journal: those listed, there or not, and later ones that have entries, which a version
/// before lists wrote.
pub(super) fn belonging(
    there: Vec<JournalFile>,
    list: &FileList,
    directory: &Path,
) -> Result<Vec<JournalFile>, JournalError> {
    let mut files: BTreeMap<u64, JournalFile> = listed_in(directory, list).map(|file| (file.first, file)).collect();
    for file in there {
        if list.has(file.first) || (file.first > list.active() && !file.is_unused()?) {
            files.insert(file.first, file);
        }
    }
    Ok(files.into_values().collect())
}

/// The files that have entries, or the first if none has; and those that have none. A file without entries hides none of
/// those before it.
pub(super) fn without_unused(files: Vec<JournalFile>) -> Result<(Vec<JournalFile>, Vec<JournalFile>), JournalError> {
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for file in files {
        if file.is_unused()? { unused.push(file) } else { used.push(file) }
    }
    if used.is_empty() && !unused.is_empty() {
        used.push(unused.remove(0));
    }
    Ok((used, unused))
}

/// The files of a journal by their part in it.
pub(super) struct Parts {
    /// Those before the current one, there or not, oldest first.
    pub(super) ended: Vec<JournalFile>,
    /// The one that has the last entry.
    pub(super) current: JournalFile,
    /// Those without entries.
    pub(super) unused: Vec<JournalFile>,
}

impl Parts {
    /// Of files that whoever asks needs the entries after number `after` of.
    pub(super) fn of(files: Vec<JournalFile>, directory: &Path, after: u64) -> Result<Self, JournalError> {
        let (mut ended, unused) = without_unused(files)?;
        let Some(mut current) = ended.pop() else {
            return Err(JournalError::Missing { directory: directory.to_owned() });
        };
        if !current.is_there() {
            // Nothing of it is needed if a next one was begun after what is not needed.
            let Some(next) = unused.iter().find(|file| (current.first + 1..=after + 1).contains(&file.first)) else {
                return Err(current.gone());
            };
            ended.push(std::mem::replace(&mut current, next.clone()));
        }
        Ok(Self { ended, current, unused })
    }
}

/// Without the files before one that begins with entry `next` whose entries all come up to `after`.
pub(super) fn files_still_needed(files: Vec<JournalFile>, after: u64, next: u64) -> Vec<JournalFile> {
    let firsts: Vec<_> = files.iter().skip(1).map(|file| file.first).chain([next]).collect();
    let ended = firsts.iter().take(files.len()).take_while(|first| **first <= after + 1).count();
    files.into_iter().skip(ended).collect()
}

/// The name of the file whose first entry has this number.
pub(crate) fn file_in(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}{SUFFIX}"))
}

/// Begins a file whose first entry will have this number. It has its name when it is whole.
pub(super) fn begin_file(directory: &Path, first: u64) -> io::Result<(PathBuf, File)> {
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
