//! Opens a database: whatever the last end was, everything acknowledged is there.

use std::{
    error::Error,
    fs::{self, DirBuilder, File, TryLockError},
    io::Write as _,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    applier::Applier,
    backup::{Copier, sync_parent},
    database::{Closing, Database},
    error::{JournalError, OpenError},
    group_commit::{GroupCommit, Writer},
    journal::{self, Archivist, Journal, Retention},
    layout::Layout,
    overlay::Overlay,
    replay::Replay,
    reserve::{RESERVE_BYTES, Reserve},
    stop::{self, OnStop, Stop},
    tree::{self, Tree, TreeFile},
    whole_file,
    writes::{APPLIED, COMMITTED_AT, FORMAT, Writes, number, set_number},
};

/// The file that an open database is locked by. Its text is the process's id.
const LOCK: &str = "lock";
/// A file that is there while a database is open: where it is found at the start, the last end was not in order.
const MARK: &str = "open";
/// The suffix of a tree that was made anew from the journal.
const DAMAGED: &str = "damaged";

/// How a database is opened.
pub struct Options {
    directory: PathBuf,
    layout: Arc<dyn Layout>,
    clock: Box<dyn Fn() -> i64 + Send>,
    on_sync: Box<dyn Fn(usize, Duration) + Send>,
    on_stop: Box<OnStop>,
    journal_file_bytes: Option<u64>,
    reserve_bytes: u64,
}

impl Options {
    /// A database in this directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, layout: impl Layout) -> Self {
        Self {
            directory: directory.into(),
            layout: Arc::new(layout),
            clock: Box::new(system_clock),
            on_sync: Box::new(|_, _| ()),
            on_stop: Box::new(stop::abort),
            journal_file_bytes: None,
            reserve_bytes: RESERVE_BYTES,
        }
    }

    /// How long a journal file becomes before the tree is synced and the next file begun; about 32 MiB unless given. A start
    /// after a crash applies up to two such files again.
    #[must_use]
    pub fn journal_file_bytes(self, bytes: u64) -> Self {
        Self { journal_file_bytes: Some(bytes), ..self }
    }

    /// How much of the disk is kept free for the tree, which cannot go on where it cannot write what was answered already;
    /// 64 MiB unless given. Commits fail when less than half of it can be kept.
    #[must_use]
    pub fn reserve_bytes(self, bytes: u64) -> Self {
        Self { reserve_bytes: bytes, ..self }
    }

    /// Reads the time, in milliseconds since 1970; the system's clock unless given. It may step.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> i64 + Send + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Called after each batch with the number of its changes, and how long it took to write and sync it.
    #[must_use]
    pub fn on_sync(self, on_sync: impl Fn(usize, Duration) + Send + 'static) -> Self {
        Self { on_sync: Box::new(on_sync), ..self }
    }

    /// Called once when the engine cannot go on: a sync has failed, say. It gets what failed, and why. Aborts the process
    /// with a message unless given. Where it returns, every commit from then on fails with
    /// [`CommitError::Stopped`](crate::CommitError::Stopped).
    #[must_use]
    pub fn on_stop(self, on_stop: impl Fn(&'static str, &dyn Error) + Send + Sync + 'static) -> Self {
        Self { on_stop: Box::new(on_stop), ..self }
    }

    /// Opens the database, or makes one where the directory is missing or empty.
    ///
    /// # Errors
    /// Where another process has it open, a later version wrote it, or it is damaged and its journal cannot make it anew.
    /// Nothing is then changed that a later opening would need.
    pub fn open(self) -> Result<(Database, Closing), OpenError> {
        // Nobody else may read it.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        // The tree has a lock of its own, but a start does something before that and beside it.
        let lock = lock(&self.directory)?;
        let paths = Paths::of(&self.directory);
        let (overlay, journal) = self.recover(&paths)?;

        let retention = Arc::<Retention>::default();
        let stop = Arc::new(Stop::new(self.on_stop));
        let file = Arc::new(TreeFile::open(&paths.tree)?);
        let committed_at = overlay.get(COMMITTED_AT)?.and_then(|value| number(&value)).unwrap_or_default();
        let writer = Writer {
            archivist: Archivist::start(paths.journal.clone(), journal.list())?,
            applier: Applier::start(overlay.clone(), Arc::clone(&file), Arc::clone(&stop))?,
            reserve: Reserve::new(file, self.reserve_bytes),
            overlay: overlay.clone(),
            journal,
            retention: Arc::clone(&retention),
            stop: Arc::clone(&stop),
            clock: self.clock,
            on_sync: self.on_sync,
            committed_at,
            last_batch: 0,
        };
        let copier = Copier { overlay: overlay.clone(), journal: paths.journal, retention, is_closing: Arc::default() };
        let (group_commit, committer) = GroupCommit::start(writer)?;
        let closing = Closing { committer, tree: paths.tree, mark: paths.mark, stop, _lock: lock };
        Ok((Database { overlay, copier, group_commit }, closing))
    }

    /// Brings tree and journal to the last acknowledged commit.
    fn recover(&self, paths: &Paths) -> Result<(Overlay, Journal), OpenError> {
        let Paths { tree: tree_directory, journal: journal_directory, mark } = paths;
        finish_making_anew(tree_directory)?;
        if journal_directory.exists() && !tree_directory.exists() {
            return Err(OpenError::HalfAStore { missing: tree_directory.clone() });
        }
        let after_crash = mark.exists();
        // Nobody was ever answered by a database that was never open.
        let is_new = !after_crash && !journal::is_begun(journal_directory)?;
        let tree = match Tree::open(tree_directory, &self.layout) {
            Err(error @ OpenError::Damaged { .. }) if is_new => begin_again(tree_directory, &self.layout, &error)?,
            // A power cut can leave the tree so, even one soon after an orderly end; the journal can make it anew.
            Err(error @ OpenError::Damaged { .. }) if journal_directory.exists() => {
                make_anew(tree_directory, journal_directory, &self.layout, error)?
            }
            opened => opened?,
        };
        let known = self.layout.format();
        if let Some(found) = tree.format()?.filter(|found| *found > known) {
            return Err(OpenError::Format { found, known });
        }
        let (mut replayed, mut replay) = (0_u64, Replay::new(&tree));
        let mut journal = if is_new && tree.is_empty() {
            Journal::create(journal_directory)
        } else if journal_directory.exists() {
            Journal::open(journal_directory, tree.applied()?, |number, writes| {
                replayed += 1;
                Ok(replay.add(number, writes)?)
            })
        } else {
            return Err(OpenError::HalfAStore { missing: journal_directory.clone() });
        }?;
        replay.finish()?;
        if after_crash {
            tracing::warn!(
                replayed,
                "the store did not shut down cleanly; the journal brought it up to date, and work that was under way may \
                 be done again"
            );
        }
        fs::write(mark, b"")?;
        for made in [tree_directory, journal_directory, &self.directory] {
            whole_file::sync_directory(made)?;
        }
        sync_parent(&self.directory)?;
        if tree.is_empty() {
            // Through the journal, so that it is as durable as any change.
            let mut writes = Writes::new();
            set_number(&mut writes, FORMAT, known);
            let number = journal.append(&writes).map_err(|error| OpenError::Append(Box::new(error)))?;
            set_number(&mut writes, APPLIED, number);
            tree.apply(&writes)?;
        }
        let applied = tree.applied()?;
        let journal = self.journal_file_bytes.into_iter().fold(journal, Journal::with_file_bytes);
        Ok((Overlay::new(tree, applied), journal))
    }
}

/// Where the parts of a database lie.
struct Paths {
    tree: PathBuf,
    journal: PathBuf,
    mark: PathBuf,
}

impl Paths {
    fn of(directory: &Path) -> Self {
        let within = |name| directory.join(name);
        Self { tree: within(tree::DIRECTORY), journal: within(journal::DIRECTORY), mark: within(MARK) }
    }
}

/// Takes the lock of a directory, for as long as the file is open.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK);
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let process = fs::read_to_string(path).unwrap_or_default();
            return Err(OpenError::InUse { directory: directory.to_owned(), process });
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

/// Makes a damaged tree anew from the journal, if that has everything; the damaged one is kept beside it.
fn make_anew(
    directory: &Path,
    journal: &Path,
    layout: &Arc<dyn Layout>,
    damaged: OpenError,
) -> Result<Tree, OpenError> {
    tracing::warn!(%damaged, "the engine's file is damaged; it is made anew from the journal");
    let made = tree::prepare(directory, layout, |tree| {
        let mut replay = Replay::new(tree);
        match journal::read_closed(journal, 0, None, |number, writes| Ok(replay.add(number, writes)?)) {
            Ok(_) => Ok(replay.finish()?),
            // Backups hold the beginning, and only the operator knows where they are.
            Err(JournalError::Gap { .. } | JournalError::Missing { .. } | JournalError::Gone { .. }) => Err(damaged),
            Err(error) => Err(error.into()),
        }
    })?;
    let kept = put_aside(directory)?;
    tree::put_in_place(&made, directory)?;
    tracing::warn!(damaged = %kept.display(), "the engine was made anew from the journal, which had everything");
    Tree::open(directory, layout)
}

/// Replaces a damaged tree by an empty one: that of a database that was never open, so that nobody was answered.
fn begin_again(directory: &Path, layout: &Arc<dyn Layout>, damaged: &OpenError) -> Result<Tree, OpenError> {
    let kept = put_aside(directory)?;
    tracing::warn!(%damaged, kept = %kept.display(), "a store that was never open is begun again");
    Tree::open(directory, layout)
}

fn put_aside(directory: &Path) -> std::io::Result<PathBuf> {
    let kept = whole_file::beside(directory, DAMAGED);
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::rename(directory, &kept)?;
    Ok(kept)
}

/// A crash between the two renames of [`make_anew`] leaves no tree: the damaged one is as good a beginning as it was.
fn finish_making_anew(directory: &Path) -> std::io::Result<()> {
    let kept = whole_file::beside(directory, DAMAGED);
    if kept.exists() && !directory.exists() { fs::rename(kept, directory) } else { Ok(()) }
}

fn system_clock() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
