//! Creates files that get their names when they are whole, and directories.
//!
//! A crash, a full disk or a lack of descriptors can leave a file half written, and a start would read it as whole. So each
//! file is written and synced under another name, and then renamed.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use crate::disk::{Disk, DiskFile, Open, Sequential};

pub(crate) type Filling<'f> = Sequential<&'f dyn DiskFile>;

/// The suffix of a file that is not whole yet. Code that lists a directory skips it.
const UNFINISHED: &str = "unfinished";

/// Creates a file with the content that `fill` writes. Returns it open for reading and writing. When this returns `Ok`, the
/// file and its name are on the disk.
///
/// # Errors
/// If the file could not be written or synced, its name does not exist. If only its name could not be synced, the file is
/// whole, and a power cut decides whether it stays.
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
        // The disk may be full. The next try truncates this file anyway.
        let _ = disk.remove_file(&unfinished);
    }
    let file = made?;
    sync_parent(disk, path)?;
    Ok(file)
}

/// Creates a file with these bytes.
pub(crate) fn write(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(disk, path, |file| io::Write::write_all(file, bytes)).map(drop)
}

/// Creates a directory that only its owner may read, unless it exists. Makes its name durable, and the names of all parents
/// that it creates.
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

/// The outcome of a call on a path; `None` if nothing has that path.
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
    fn removing_a_directory_removes_its_files_accepts_a_missing_one_and_spares_a_file() {
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
