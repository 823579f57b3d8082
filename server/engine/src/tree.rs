//! The tree: ordered bytes on the disk, stored by sled.
//!
//! sled 0.34.7 does not sync when it flushes (`sync_file_range` neither waits for the drive nor covers the file's metadata).
//! It never opens a directory in which its own start crashed, and panics on some kinds of damage. So a start removes what a
//! crash left before sled opens the directory, the applier syncs sled's files, and durability rests on the journal.

use std::{
    io,
    ops::Bound,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    compression,
    disk::{Disk, DiskFile, Open},
    entries::{Entry, KeyRange},
    error::{OpenError, TreeError},
    layout::Layout,
    platform::Platform,
    store::Store,
    whole_file::{self, if_there},
    writes::{APPLIED, FORMAT, Writes, number},
};

/// The name of the tree's directory in a database's directory. A directory without it contains no database.
pub const DIRECTORY: &str = "sled";
/// The file in the tree's directory that holds the values.
pub(crate) const FILE: &str = "db";
/// Pages too large for [`FILE`] have their own files in this directory.
const LARGE_PAGES: &str = "blobs";
/// How long to wait for the lock of a tree that this process has just closed. sled's threads hold it a moment longer.
const LOCK_WAIT: Duration = Duration::from_secs(4);

#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) layout: Arc<dyn Layout>,
}

impl Tree {
    /// Opens the tree in a directory, or creates an empty one.
    pub(crate) fn open(disk: &dyn Platform, directory: &Path, layout: &Arc<dyn Layout>) -> Result<Self, OpenError> {
        if !disk.exists(directory)? {
            let (making, ()) = prepare(disk, directory, layout, |_| Ok::<_, OpenError>(()))?;
            whole_file::rename(disk, &making, directory)?;
        }
        remove_unfinished_snapshots(disk, directory)?;
        let tree = Self::open_when_unlocked(disk, directory, layout)?;
        sync_files(disk, directory)?;
        // A killed start may have renamed it without a sync, and nothing may reach the disk before that name.
        whole_file::sync_parent(disk, directory)?;
        // A power cut can lose the first writes and keep later ones.
        if !tree.store.is_empty() && tree.get(FORMAT)?.is_none() {
            return Err(OpenError::damaged(directory, "its records have no format"));
        }
        Ok(tree)
    }

    fn open_when_unlocked(disk: &dyn Platform, directory: &Path, layout: &Arc<dyn Layout>) -> Result<Self, OpenError> {
        let begun = Instant::now();
        let store = loop {
            match disk.open_store(directory) {
                Err(OpenError::InUse { .. }) if begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(2)),
                opened => break opened?,
            }
        };
        Ok(Self { store, layout: Arc::clone(layout) })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        self.store.get(key)?.map(|stored| value(&*self.layout, key, &stored)).transpose()
    }

    /// One of the engine's own numbers; 0 if the tree is empty.
    pub(crate) fn number<T: FromStr + Default>(&self, key: &[u8]) -> Result<T, TreeError> {
        Ok(self.get(key)?.and_then(|value| number(&value)).unwrap_or_default())
    }

    /// The entries of a range, as [`Store::range`] has them.
    pub(crate) fn range(&self, keys: KeyRange, is_reversed: bool) -> impl Iterator<Item = Result<Entry, TreeError>> {
        self.store.range(keys, is_reversed).map(|entry| {
            let (key, stored) = entry?;
            Ok((key.to_vec(), value(&*self.layout, &key, &stored)?))
        })
    }

    /// All entries as they are stored. Some values are compressed.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Result<Entry, TreeError>> {
        let all = self.store.range((Bound::Unbounded, Bound::Unbounded), false);
        all.map(|entry| entry.map(|(key, stored)| (key.to_vec(), stored.to_vec())))
    }

    /// Puts entries that were [`stored`](Self::stored) in a tree of the same layout.
    pub(crate) fn apply_stored(&self, mut writes: Writes) -> Result<(), TreeError> {
        for (key, stored) in &mut writes {
            if let Some(stored) = stored {
                *stored = value(&*self.layout, key, stored)?;
            }
        }
        self.apply(&writes)
    }

    /// Applies writes. The journal makes them atomic: after a crash during them, they are applied again. sled's own batches
    /// are atomic too, but each seals a buffer, wakes all of sled's threads to write it, and blocks readers.
    pub(crate) fn apply(&self, writes: &Writes) -> Result<(), TreeError> {
        self.in_order(writes).into_iter().try_for_each(|(key, value)| self.apply_one(key, value))
    }

    /// The writes in the order in which they are applied: by the layout's order, then by key.
    pub(crate) fn in_order<'w>(&self, writes: &'w Writes) -> Vec<(&'w [u8], Option<&'w [u8]>)> {
        let mut writes: Vec<_> = writes.iter().map(|(key, value)| (&**key, value.as_deref())).collect();
        // The number of the last batch comes last.
        writes.sort_by_cached_key(|(key, value)| (*key == APPLIED, self.layout.apply_order(key, value.is_some())));
        writes
    }

    pub(crate) fn apply_one(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), TreeError> {
        match value {
            Some(value) if self.layout.compresses(key) => self.store.write(key, Some(&compression::compress(value))),
            value => self.store.write(key, value),
        }
    }
}

fn value(layout: &dyn Layout, key: &[u8], stored: &[u8]) -> Result<Vec<u8>, TreeError> {
    match layout.compresses(key) {
        true => compression::decompress(stored).map_err(|what| TreeError::damaged(key, what)),
        false => Ok(stored.to_vec()),
    }
}

/// The file with the tree's values, which the engine opens beside sled for the syncs that sled omits.
pub(crate) struct TreeFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    pub(crate) file: Box<dyn DiskFile>,
}

impl TreeFile {
    pub(crate) fn open(disk: &Arc<dyn Disk>, directory: &Path) -> io::Result<Self> {
        let file = disk.open(&directory.join(FILE), Open::Write)?;
        Ok(Self { disk: Arc::clone(disk), directory: directory.to_owned(), file })
    }

    /// Makes the bytes durable that a [`flush`](Store::flush) wrote.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync_flushed(&*self.disk, &self.directory, &*self.file)
    }
}

/// Creates and fills a tree in the returned directory. The caller renames it.
pub(crate) fn prepare<T, E: From<OpenError>>(
    disk: &dyn Platform,
    directory: &Path,
    layout: &Arc<dyn Layout>,
    fill: impl FnOnce(&Tree) -> Result<T, E>,
) -> Result<(PathBuf, T), E> {
    let making = whole_file::beside(directory, "making");
    whole_file::remove_directory(disk, &making).map_err(OpenError::Io)?;
    let tree = Tree::open_when_unlocked(disk, &making, layout)?;
    let filled = fill(&tree)?;
    tree.store.flush().map_err(OpenError::Tree)?;
    drop(tree);
    sync_closed(disk, &making).map_err(OpenError::Io)?;
    Ok((making, filled))
}

/// Syncs a closed tree once sled has released its lock: sled's threads still write after the last handle is dropped.
pub(crate) fn sync_closed(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let file = disk.open(&directory.join(FILE), Open::Write)?;
    let begun = Instant::now();
    while !file.try_lock()? {
        if begun.elapsed() >= LOCK_WAIT {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    sync_flushed(disk, directory, &*file)?;
    sync_files(disk, directory)
}

fn sync_flushed(disk: &dyn Disk, directory: &Path, file: &dyn DiskFile) -> io::Result<()> {
    let large_pages = directory.join(LARGE_PAGES);
    if disk.exists(&large_pages)? {
        sync_files(disk, &large_pages)?;
    }
    file.sync_all()
}

/// Removes unfinished snapshots. A crash during a start leaves a snapshot under its working name. sled 0.34.7 would then
/// treat it as the newest, and refuse it forever if it is torn. sled uses a snapshot only after its rename, so nothing is
/// lost.
fn remove_unfinished_snapshots(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for listed in disk.list(directory)? {
        let name = listed.name.to_str().unwrap_or_default();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            tracing::warn!(snapshot = name, "a crash during start-up left an unfinished snapshot; it is removed");
            disk.remove_file(&directory.join(name))?;
        }
    }
    Ok(())
}

/// Syncs the files of a directory and their names: sled syncs neither its settings nor names.
fn sync_files(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for listed in disk.list(directory)?.into_iter().filter(|listed| listed.is_file) {
        // sled may remove the files of large pages at any time.
        if let Some(file) = if_there(disk.open(&directory.join(listed.name), Open::Read))? {
            file.sync_all()?;
        }
    }
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{disk::SystemDisk, layout::tests::Plain};

    #[test]
    fn a_tree_with_records_but_no_format_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tree");
        let open = || Tree::open(&SystemDisk, &path, &Plain::shared());
        let write = |key: &[u8], value: Option<&[u8]>| {
            let tree = open().unwrap();
            tree.apply(&Writes::from([(key.to_vec(), value.map(<[u8]>::to_vec))])).unwrap();
        };
        write(FORMAT, Some(b"1"));
        write(b"a", Some(b"1"));
        assert_eq!(open().unwrap().get(b"a").unwrap().unwrap(), b"1");
        write(FORMAT, None);
        let Err(OpenError::Damaged { directory, what }) = open() else { panic!("the tree was opened") };
        assert_eq!((directory, what), (path, "its records have no format".to_owned()));
    }

    #[test]
    fn the_number_of_the_last_batch_is_applied_last() {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree::open(&SystemDisk, &directory.path().join("tree"), &Plain::shared()).unwrap();
        let writes = Writes::from([APPLIED, b"a", b"z"].map(|key| (key.to_vec(), Some(b"1".to_vec()))));
        let keys: Vec<_> = tree.in_order(&writes).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [b"a", b"z", APPLIED]);
    }

    #[test]
    fn an_opening_waits_for_a_closing_tree_and_removes_unfinished_snapshots() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tree");
        let tree = Tree::open(&SystemDisk, &path, &Plain::shared()).unwrap();
        let unfinished = path.join("snap.0000000000000001.generating");
        std::fs::write(&unfinished, "torn").unwrap();
        let closing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(tree);
        });
        Tree::open(&SystemDisk, &path, &Plain::shared()).unwrap();
        assert!(closing.is_finished());
        assert!(!unfinished.exists());
    }

    #[test]
    fn a_closed_trees_files_are_synced_once_their_lock_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tree");
        drop(Tree::open(&SystemDisk, &path, &Plain::shared()).unwrap());
        sync_closed(&SystemDisk, &path).unwrap();
        let other = SystemDisk.open(&path.join(FILE), Open::Write).unwrap();
        assert!(other.try_lock().unwrap());
        let holding = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(other);
        });
        sync_closed(&SystemDisk, &path).unwrap();
        assert!(holding.is_finished());
    }
}
