//! What a start does with the journal in a directory.
//!
//! A new file is begun only at a checkpoint, when the tree has been synced. So whatever a power cut did to the tree since then,
//! the last journal file has everything, and each start applies all of that file again: a crash can leave a part of a batch
//! in the tree, and a power cut the number of the last batch without the rest of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use super::{
    archive,
    entry::{MAGIC, is_blank, is_zero_from, read_entries, refuse_damage},
    file_list::FileList,
    files::{JournalFile, Parts, begin_file, belonging, files_in, files_still_needed},
};
use crate::{error::JournalError, writes::Writes};

/// The file that the journal goes on in, at the place where the next entry will stand.
pub(super) struct Opened {
    pub(super) list: FileList,
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Where the last entry ends.
    pub(super) length: u64,
    /// Where the file ends.
    pub(super) allocated: u64,
    /// The number of the last entry, in this file or the one before.
    pub(super) last: u64,
}

/// As [`Journal::open`](super::Journal::open).
pub(super) fn open(
    directory: &Path,
    applied: u64,
    replay: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<Opened, JournalError> {
    let there = files_in(directory)?;
    let listed = FileList::read(directory)?;
    let files = match &listed {
        Some(list) => belonging(there.clone(), list, directory)?,
        // A version before lists wrote it; what is there is all that is known.
        None => there.clone(),
    };
    if let Some(active) = files.last().filter(|active| !active.is_there()) {
        return Err(active.gone());
    }
    let files = Parts::of(files, directory, applied)?;
    let ending = Ending::of(&files.current)?;
    files.replay(&ending, applied, replay)?;
    let opened = files.go_on(&ending, directory)?;
    if listed.as_ref() != Some(&opened.list) {
        opened.list.write(directory)?;
    }
    remove_unused(&there, &opened.list)?;
    Ok(opened)
}

impl Parts {
    /// The file that was begun after this entry, at a checkpoint, and not yet used.
    fn begun_after(&self, last: u64) -> Option<&JournalFile> {
        self.unused.iter().find(|file| file.first == last + 1 && file.first > self.current.first)
    }

    /// Hands over the entries that the tree may not have.
    fn replay(
        &self,
        ending: &Ending,
        applied: u64,
        replay: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let synced = self.begun_after(ending.last).unwrap_or(&self.current).first - 1;
        let after = applied.min(synced);
        let needed = self.ended_after(after)?;
        let oldest = needed.first().unwrap_or(&self.current);
        if oldest.first > after + 1 {
            return Err(JournalError::Gap { path: oldest.path.clone(), after, found: oldest.first });
        }
        let mut read = oldest.first - 1;
        for file in &needed {
            file.read_whole(&mut read, after, replay)?;
        }
        if !is_blank(&ending.bytes) {
            read_entries(&ending.bytes, &self.current.path, &mut read, after, replay)?;
        }
        if ending.last < applied {
            return Err(JournalError::Behind { path: self.current.path.clone(), last: ending.last, applied });
        }
        Ok(())
    }

    /// The files before the current one that have entries after this one. They must be there.
    fn ended_after(&self, after: u64) -> Result<Vec<JournalFile>, JournalError> {
        let needed = files_still_needed(self.ended.clone(), after, self.current.first);
        for missing in self.ended.iter().filter(|file| !file.is_there()) {
            if needed.iter().any(|file| file.first == missing.first) {
                return Err(missing.gone());
            }
            tracing::error!("{}", JournalError::Superseded { path: missing.path.clone() });
        }
        Ok(needed)
    }

    /// Opens the file that the next entry will stand in: the one that was begun for it, a new one where the current one is
    /// compressed, or the current one.
    fn go_on(&self, ending: &Ending, directory: &Path) -> Result<Opened, JournalError> {
        let last = ending.last;
        let mut firsts: Vec<_> = self.ended.iter().chain([&self.current]).map(|file| file.first).collect();
        let empty = MAGIC.len() as u64;
        let (path, mut file, length, allocated) = if let Some(next) = self.begun_after(last) {
            self.current.cut_at(ending.end, &ending.bytes)?;
            firsts.push(next.first);
            (next.path.clone(), open_file(&next.path)?, empty, empty)
        } else if archive::is_one(&self.current.path) {
            let (path, file) = begin_file(directory, last + 1)?;
            firsts.push(last + 1);
            (path, file, empty, empty)
        } else {
            let allocated = self.current.cut_at(ending.end, &ending.bytes)?;
            (self.current.path.clone(), open_file(&self.current.path)?, ending.end, allocated)
        };
        file.seek(SeekFrom::Start(length))?;
        Ok(Opened { list: FileList::of(firsts), path, file, length, allocated, last })
    }
}

/// Where the entries of the current file end.
struct Ending {
    /// All of the file.
    bytes: Vec<u8>,
    end: u64,
    /// The number of the last entry.
    last: u64,
}

impl Ending {
    fn of(current: &JournalFile) -> Result<Self, JournalError> {
        // A process that was killed may not have synced its last entry. From here on the entry counts: the tree gets it,
        // readers see it, and others are written behind it.
        current.sync()?;
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
        Ok(Self { bytes, end, last })
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

fn remove_unused(there: &[JournalFile], list: &FileList) -> io::Result<()> {
    for file in there {
        if !list.has(file.first) && file.is_unused()? {
            tracing::warn!(path = %file.path.display(), "a journal file that was begun and never used is removed");
            file.remove()?;
        }
    }
    Ok(())
}
