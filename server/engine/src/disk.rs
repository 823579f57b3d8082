//! The interface between the engine and its file system.
//!
//! Every call of the engine on a file or a directory goes through [`Disk`] and [`DiskFile`]. [`SystemDisk`] passes each to
//! the operating system. Only sled opens its files by itself ([`Platform`](crate::platform::Platform)).

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, TryLockError},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read, Write},
    ops::Deref,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};

use crate::file_error::named;

/// The calls on paths. A call without a comment does what the system call of the same name does.
pub(crate) trait Disk: Send + Sync + 'static {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The identity of the file that a path names. Does not follow a symbolic link.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
    /// The absolute path without symbolic links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>>;
    /// Creates a directory that only its owner may read, and its parents, unless they exist.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with everything in it.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// How many more bytes fit in files of a directory.
    fn free(&self, directory: &Path) -> io::Result<u64>;
    /// A number that is unique.
    fn new_id(&self) -> u64;
}

pub(crate) trait DiskFile: Send + Sync {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes. After an error, some of them may be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Allocates blocks without changing the length. Does nothing on file systems that cannot.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    fn set_length(&self, length: u64) -> io::Result<()>;
    fn length(&self) -> io::Result<u64>;
    fn identity(&self) -> io::Result<Identity>;
    fn sync_data(&self) -> io::Result<()>;
    fn sync_all(&self) -> io::Result<()>;
    /// Takes the file's lock for as long as the file is open. Returns false if another open file has it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Releases the lock. Closing the file may not release it: a child process has a copy of the file until it runs its
    /// program.
    fn unlock(&self) -> io::Result<()>;
}

/// How a file is opened. All ways except `Read` can read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Read,
    /// The file must exist.
    Write,
    /// The file is created unless it exists.
    Create,
    /// The file must not exist.
    CreateNew,
    /// The file is created, or emptied.
    Truncate,
}

/// A file's device and its number there, which tell whether two names are of the same file.
pub(crate) type Identity = (u64, u64);

pub(crate) struct Listed {
    pub(crate) name: OsString,
    pub(crate) is_file: bool,
}

pub(crate) struct SystemDisk;

impl SystemDisk {
    #[cfg(test)]
    pub(crate) fn shared() -> std::sync::Arc<dyn Disk> {
        std::sync::Arc::new(Self)
    }
}

impl Disk for SystemDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut options = File::options();
        options.read(true).write(how != Open::Read);
        match how {
            Open::Read | Open::Write => &mut options,
            Open::Create => options.create(true),
            Open::CreateNew => options.create_new(true),
            Open::Truncate => options.create(true).truncate(true),
        };
        Ok(Box::new(SystemFile { file: named(path, options.open(path))?, path: path.into() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        named(path, path.try_exists())
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        named(path, fs::symlink_metadata(path)).map(|found| identity(&found))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        named(path, path.canonicalize())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        let listed =
            |entry: fs::DirEntry| Ok(Listed { name: entry.file_name(), is_file: entry.file_type()?.is_file() });
        named(directory, fs::read_dir(directory).and_then(|entries| entries.map(|entry| listed(entry?)).collect()))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        named(path, DirBuilder::new().recursive(true).mode(0o700).create(path))
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        named(path, File::open(path).and_then(|directory| directory.sync_all()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        named(to, fs::rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        named(path, fs::remove_file(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        named(path, fs::remove_dir_all(path))
    }

    fn free(&self, directory: &Path) -> io::Result<u64> {
        let found = statvfs(directory)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn new_id(&self) -> u64 {
        // A hasher has random keys.
        RandomState::new().build_hasher().finish()
    }
}

/// A file of the operating system, and the path that it was opened by.
struct SystemFile {
    file: File,
    path: Box<Path>,
}

impl DiskFile for SystemFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        named(&self.path, self.file.read_at(bytes, offset))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        named(&self.path, self.file.write_all_at(bytes, offset))
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, length) {
            Err(error) if error != Errno::OPNOTSUPP => named(&self.path, Err(error.into())),
            _ => Ok(()),
        }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        named(&self.path, self.file.set_len(length))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(named(&self.path, self.file.metadata())?.len())
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity(&named(&self.path, self.file.metadata())?))
    }

    fn sync_data(&self) -> io::Result<()> {
        named(&self.path, self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        named(&self.path, self.file.sync_all())
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => named(&self.path, Err(error)),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        named(&self.path, self.file.unlock())
    }
}

fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// A file that is read or written from its beginning.
pub(crate) struct Sequential<F> {
    pub(crate) file: F,
    offset: u64,
}

impl<F> Sequential<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { file, offset: 0 }
    }
}

impl<F: Deref<Target: DiskFile>> Read for Sequential<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl<F: Deref<Target: DiskFile>> Write for Sequential<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a whole file. Bytes that are appended during the call may be missing.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Open::Read)?;
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    read_from(&*file, 0, length)
}

/// Reads at most `length` bytes of a file, from an offset.
pub(crate) fn read_from(file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut filled) = (vec![0; length], 0);
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_and_its_symbolic_links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        SystemDisk.create_directory(&real).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(SystemDisk.canonical(&link).unwrap(), real);
    }

    #[test]
    fn only_an_existing_directory_is_synced() {
        let directory = tempfile::tempdir().unwrap();
        SystemDisk.sync_directory(directory.path()).unwrap();
        let missing = SystemDisk.sync_directory(&directory.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_one_open_file_has_the_lock() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || SystemDisk.open(file.path(), Open::Write).unwrap();
        let (first, second) = (open(), open());
        assert!(first.try_lock().unwrap());
        assert!(!second.try_lock().unwrap());
        first.unlock().unwrap();
        assert!(second.try_lock().unwrap());
    }

    #[test]
    fn blocks_cannot_be_allocated_in_a_file_that_is_open_for_reading() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let allocated = SystemDisk.open(file.path(), Open::Read).unwrap().allocate(0, 4096);
        assert_eq!(crate::system_error(&allocated.unwrap_err()), Some(Errno::BADF.raw_os_error()));
        SystemDisk.open(file.path(), Open::Write).unwrap().allocate(0, 4096).unwrap();
    }
}
