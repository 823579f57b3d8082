//! Opens a database. It has every acknowledged change, however the last process ended.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    applier::Applier,
    backup::Copier,
    database::{Closing, Database},
    disk::{Disk, Open, SystemDisk},
    error::{JournalError, OpenError},
    group_commit::{GroupCommit, Writer},
    journal::{self, Archivist, Journal, Retention},
    layout::Layout,
    lock::Lock,
    overlay::Overlay,
    platform::Platform,
    replay::Replay,
    reserve::Reserve,
    stop::{self, OnStop, Stop},
    tree::{self, Tree, TreeFile},
    whole_file,
    writes::{APPLIED, COMMITTED_AT, FORMAT, Writes, number, set_number},
};

/// A file that exists while a database is open. If a start finds it, the last shutdown was unclean.
const MARK: &str = "open";
/// The suffix of a replaced, damaged tree.
const DAMAGED: &str = "damaged";
/// The default size of the overlay. Half of it is a segment of sled.
const OVERLAY_BYTES: usize = 16 * 1024 * 1024;

/// The options for opening a database.
#[must_use]
pub struct Options {
    pub(crate) platform: Arc<dyn Platform>,
    directory: PathBuf,
    layout: Arc<dyn Layout>,
    clock: Box<dyn Fn() -> i64 + Send>,
    on_sync: Box<dyn Fn(usize, Duration) + Send>,
    on_stop: Box<OnStop>,
    journal_file_bytes: u64,
    overlay_bytes: usize,
}

impl Options {
    /// The default options for a database in this directory.
    pub fn new(directory: impl Into<PathBuf>, layout: impl Layout) -> Self {
        Self {
            platform: Arc::new(SystemDisk),
            directory: directory.into(),
            layout: Arc::new(layout),
            clock: Box::new(system_clock),
            on_sync: Box::new(|_, _| ()),
            on_stop: Box::new(stop::abort),
            journal_file_bytes: journal::FILE_BYTES,
            overlay_bytes: OVERLAY_BYTES,
        }
    }

    /// The length of a journal file at which the next one begins and the tree is synced; by default 32 MiB. A start after a
    /// crash applies up to two journal files again.
    pub fn journal_file_bytes(self, bytes: u64) -> Self {
        Self { journal_file_bytes: bytes, ..self }
    }

    /// How many bytes that are not yet in the tree the overlay may have; by default 16 MiB. The engine reserves at least as
    /// much of the disk for the tree, and more while more waits. If it cannot, commits fail.
    pub fn overlay_bytes(self, bytes: usize) -> Self {
        Self { overlay_bytes: bytes, ..self }
    }

    /// Reads the time, in milliseconds since 1970; by default the system's clock. The time may step.
    pub fn clock(self, clock: impl Fn() -> i64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Called after each batch with its number of changes and the time that writing and syncing took.
    pub fn on_sync(self, on_sync: impl Fn(usize, Duration) + Send + 'static) -> Self {
        Self { on_sync: Box::new(on_sync), ..self }
    }

    /// Called once when the engine cannot go on, for example after a failed sync. The arguments say what failed, and why. By
    /// default the process aborts with a message. If the function returns, every later commit fails with
    /// [`CommitError::Stopped`](crate::CommitError::Stopped).
    pub fn on_stop(self, on_stop: impl Fn(&'static str, &dyn Error) + Send + Sync + 'static) -> Self {
        Self { on_stop: Box::new(on_stop), ..self }
    }

    /// Opens the database, or creates one if the directory is missing or empty.
    ///
    /// # Errors
    /// If another process has it open, a later version wrote it, or it is damaged and its journal cannot rebuild it. Then
    /// nothing that a later opening needs has changed.
    pub fn open(self) -> Result<(Database, Closing), OpenError> {
        let disk: Arc<dyn Disk> = self.platform.clone();
        whole_file::create_directory(&*disk, &self.directory)?;
        // The tree's own lock would come too late: a start writes files before it opens the tree.
        let lock = Lock::take(&*self.platform, &self.directory)?;
        let paths = [tree::DIRECTORY, journal::DIRECTORY, MARK].map(|name| self.directory.join(name));
        let (overlay, journal) = self.recover(&disk, &paths)?;
        let [tree, journal_directory, mark] = paths;

        let retention = Arc::<Retention>::default();
        let stop = Arc::new(Stop { on_stop: self.on_stop, has_stopped: false.into() });
        let file = Arc::new(TreeFile::open(&disk, &tree)?);
        let (is_closing, has_threads) = (Arc::default(), self.platform.has_threads());
        let committed_at = overlay.get(COMMITTED_AT)?.and_then(|value| number(&value)).unwrap_or_default();
        let (archivist, archiving) =
            Archivist::start(Arc::clone(&disk), journal_directory.clone(), Arc::clone(&is_closing), has_threads)?;
        // The last run may have left closed files uncompressed.
        archivist.send(&journal.list);
        let (shared, stopping) = (Arc::clone(&file), Arc::clone(&stop));
        let (applier, applying) = Applier::start(overlay.clone(), shared, stopping, self.overlay_bytes, has_threads)?;
        let writer = Writer {
            archivist,
            applier,
            reserve: Reserve::new(file, self.overlay_bytes as u64 / 2),
            committed_at,
            overlay: overlay.clone(),
            journal,
            file_bytes: self.journal_file_bytes,
            next_file_at: self.journal_file_bytes,
            retention: Arc::clone(&retention),
            stop: Arc::clone(&stop),
            clock: self.clock,
            on_sync: self.on_sync,
            last_batch: 0,
        };
        let (group_commit, committing) = GroupCommit::start(writer, has_threads)?;
        let (of_copier, copied) = (Arc::clone(&disk), overlay.clone());
        let copier = Copier { disk: of_copier, overlay: copied, journal: journal_directory, retention, is_closing };
        let closing = Closing {
            threads: [committing, applying, archiving].into_iter().flatten().collect(),
            tree,
            mark,
            stop,
            disk,
            _lock: lock,
        };
        Ok((Database { overlay, copier, group_commit }, closing))
    }

    /// Recovers the tree and the journal up to the last acknowledged commit.
    fn recover(&self, shared: &Arc<dyn Disk>, paths: &[PathBuf; 3]) -> Result<(Overlay, Journal), OpenError> {
        let [tree_directory, journal_directory, mark] = paths;
        let disk = &*self.platform;
        finish_rebuilding(disk, tree_directory)?;
        let has_journal = disk.exists(journal_directory)?;
        if has_journal && !disk.exists(tree_directory)? {
            return Err(OpenError::Incomplete { missing: tree_directory.clone() });
        }
        let after_crash = disk.exists(mark)?;
        // A database that was never open has acknowledged nothing.
        let is_new = !after_crash && !journal::is_begun(disk, journal_directory)?;
        let tree = match Tree::open(disk, tree_directory, &self.layout) {
            Err(damaged @ OpenError::Damaged { .. }) if is_new => {
                let kept = put_aside(disk, tree_directory)?;
                tracing::warn!(%damaged, kept = %kept.display(), "a store that was never open is created again");
                Tree::open(disk, tree_directory, &self.layout)
            }
            // A power cut, even soon after a clean shutdown, can damage the tree. The journal can rebuild it.
            Err(damaged @ OpenError::Damaged { .. }) if has_journal => {
                self.rebuild(tree_directory, journal_directory, damaged)
            }
            opened => opened,
        }?;
        OpenError::refuse_later_format(tree.number(FORMAT)?, self.layout.format())?;
        let (mut replayed, mut replay) = (0_u64, Replay::new(&tree));
        let mut journal = if is_new && tree.store.is_empty() {
            Journal::create(shared, journal_directory)
        } else if has_journal {
            Journal::open(shared, journal_directory, tree.number(APPLIED)?, |number, writes| {
                replayed += 1;
                Ok(replay.add(number, writes)?)
            })
        } else {
            return Err(OpenError::Incomplete { missing: journal_directory.clone() });
        }?;
        replay.finish()?;
        journal.set_file_bytes(self.journal_file_bytes);
        if after_crash {
            tracing::warn!(
                replayed,
                "the store did not shut down cleanly; it was recovered from the journal, and interrupted work may be \
                 repeated"
            );
        }
        disk.open(mark, Open::Truncate)?;
        for made in [tree_directory, journal_directory, &self.directory] {
            disk.sync_directory(made)?;
        }
        if tree.store.is_empty() {
            // This goes through the journal, so that it is as durable as any change.
            let mut writes = Writes::new();
            set_number(&mut writes, FORMAT, self.layout.format());
            let number = journal.append(&writes).map_err(io::Error::other)?;
            set_number(&mut writes, APPLIED, number);
            tree.apply(&writes)?;
        }
        Ok((Overlay::new(tree.clone(), tree.number(APPLIED)?), journal))
    }

    /// Replaces a damaged tree by one built from the journal, if the journal has everything. Keeps the damaged one beside it.
    fn rebuild(&self, directory: &Path, journal: &Path, damaged: OpenError) -> Result<Tree, OpenError> {
        use JournalError::{Gap, Gone, Missing};
        tracing::warn!(%damaged, "the tree is damaged; the journal rebuilds it");
        let disk = &*self.platform;
        let (made, ()) = tree::prepare(disk, directory, &self.layout, |tree| {
            let mut replay = Replay::new(tree);
            // Otherwise an entry could get lost that the tree already has.
            let durable = journal::write_last_again(disk, journal);
            let read = durable.and_then(|()| {
                journal::read_closed(disk, journal, 0, None, |number, writes| Ok(replay.add(number, writes)?))
            });
            match read {
                Ok(_) => Ok(replay.finish()?),
                // Backups have the beginning, but only the operator knows where they are.
                Err(Gap { .. } | Gone { .. } | Missing { .. }) => Err(damaged),
                Err(error) => Err(error.into()),
            }
        })?;
        let kept = put_aside(disk, directory)?;
        whole_file::rename(disk, &made, directory)?;
        tracing::warn!(damaged = %kept.display(), "the tree was rebuilt from the journal, which had everything");
        Tree::open(disk, directory, &self.layout)
    }
}

fn put_aside(disk: &dyn Disk, directory: &Path) -> io::Result<PathBuf> {
    let kept = whole_file::beside(directory, DAMAGED);
    whole_file::remove_directory(disk, &kept)?;
    disk.rename(directory, &kept)?;
    Ok(kept)
}

/// Gives the damaged tree its name back, if a crash between the two renames of [`Options::rebuild`] left no tree.
fn finish_rebuilding(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let kept = whole_file::beside(directory, DAMAGED);
    if disk.exists(&kept)? && !disk.exists(directory)? { disk.rename(&kept, directory) } else { Ok(()) }
}

fn system_clock() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{layout::tests::Plain, view::View};

    #[test]
    fn by_default_commits_have_the_systems_time() {
        let now = || i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (database, closing) = Options::new(directory.path().join("data"), Plain).open().unwrap();
        let before = now();
        let put = |view: &mut View<'_>| {
            view.put("key", "value");
            Ok::<_, ()>(())
        };
        database.commit_blocking(put).unwrap();
        let committed: i64 = number(&database.overlay.get(COMMITTED_AT).unwrap().unwrap()).unwrap();
        assert!((before..=now()).contains(&committed), "{before} {committed}");
        drop(database);
        closing.wait();
    }

    #[test]
    fn after_a_crash_between_two_renames_the_damaged_tree_gets_its_name_back() {
        let directory = tempfile::tempdir().unwrap();
        let (tree, disk) = (directory.path().join("sled"), SystemDisk);
        finish_rebuilding(&disk, &tree).unwrap();
        fs::create_dir(&tree).unwrap();
        let kept = put_aside(&disk, &tree).unwrap();
        assert!(kept.exists() && !tree.exists());
        finish_rebuilding(&disk, &tree).unwrap();
        assert!(tree.exists() && !kept.exists());
        // The rebuilt tree exists, so the damaged one stays beside it.
        fs::create_dir(&kept).unwrap();
        finish_rebuilding(&disk, &tree).unwrap();
        assert!(tree.exists() && kept.exists());
    }
}
