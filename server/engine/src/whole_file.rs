//! Files that get their names when they are whole, and directories.
//!
//! A crash, a full disk or a lack of descriptors can leave a file half filled, and a start would take it for a whole one. So
//! each file is filled and synced under another name, and then renamed.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use crate::disk::{Disk, DiskFile, Open, Sequential};

pub(crate) type Filling<'f> = Sequential<&'f dyn DiskFile>;

/// The suffix of a file that is not whole yet. Code that lists a directory passes over it.
const UNFINISHED: &str = "unfinished";

/// Makes a file that holds what `fill` writes, and returns it open for reading and writing. When this returns `Ok`, the file
/// and its name are on the disk.
///
/// # Errors
/// Where the file could not be filled or synced, its name does not exist. Where only its name could not be synced, the file
/// is whole, and a power cut decides whether it is there.
pub(crate) fn create(
    disk: &dyn Disk,
    path: &Path,
    fill: impl FnOnce(&mut Filling<'_>) -> io::Result<()>,
) -> io::Result<Box<dyn DiskFile>> {
    let unfinished = beside(path, UNFINISHED);
    let make = || -> io::Result<Box<dyn DiskFile>> {
        let file = disk.open(&unfinished, Open::Truncate)?;
        fill(&mut Sequential::new(&*file))?;
        file.sync_all()?;
        disk.rename(&unfinished, path)?;
        Ok(file)
    };
    let made = make();
    if made.is_err() {
        // The disk may be full; the next try truncates it in any case.
        let _ = disk.remove_file(&unfinished);
    }
    let file = made?;
    sync_parent(disk, path)?;
    Ok(file)
}

/// Makes a file that holds these bytes.
pub(crate) fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(disk, path, |file| io::Write::write_all(file, bytes)).map(drop)
}

/// Makes a directory that nobody else may read, unless it is there, and makes its name durable, and those of the directories
/// above that are made for it.
pub(crate) fn create_directory(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent != Path::new("") && !disk.exists(parent)? => create_directory(disk, parent)?,
        _ => {}
    }
    disk.create_directory(path)?;
    sync_parent(disk, path)
}

/// Makes the name of a file or directory durable (fsync(2): a file's own sync does not cover its name).
pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    // A relative path of one name has no parent.
    disk.canonical(path)?.parent().map_or(Ok(()), |parent| disk.sync_directory(parent))
}

pub(crate) fn rename(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    disk.rename(from, to)?;
    sync_parent(disk, to)
}

/// The outcome of a call on a path, or `None` if nothing has that path.
pub(crate) fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

pub(crate) fn remove_directory(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if_there(disk.remove_directory(path)).map(drop)
}

/// A path with a suffix after its last name: `tree.making` for `tree`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::disk::SystemDisk;

    #[test]
    fn a_file_that_cannot_be_filled_leaves_its_predecessor_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list");
        let full = |file: &mut Filling<'_>| {
            file.write_all(b"half of i")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        assert_eq!(create(&SystemDisk, &path, full).map(drop).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        write(&SystemDisk, &path, b"the first").unwrap();
        create(&SystemDisk, &path, full).map(drop).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"the first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        write(&SystemDisk, &path, b"the second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the second");
    }

    #[test]
    fn a_directory_is_removed_with_its_files_a_missing_one_is_none_and_a_file_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made");
        create_directory(&SystemDisk, &path).unwrap();
        write(&SystemDisk, &path.join("file"), b"text").unwrap();
        remove_directory(&SystemDisk, &path).unwrap();
        assert!(!path.exists());
        remove_directory(&SystemDisk, &path).unwrap();
        write(&SystemDisk, &path, b"text").unwrap();
        assert_eq!(remove_directory(&SystemDisk, &path).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }
}
