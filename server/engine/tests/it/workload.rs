//! A process that commits random bytes, and the model of what it must leave.
//!
//! Each commit adds one to a key, and writes values that follow from the new number. So this number alone tells what
//! the whole database must hold, and a test notices a commit that is lost, partial or out of order.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, exit},
    sync::{Arc, LazyLock},
};

use fastrand::Rng;
use journaled_tree::{
    APPLIED, COMMITTED_AT, Closing, CommitError, Database, FORMAT, Layout, OpenError, Options, TreeError, View,
};

/// The key that counts commits.
const COUNT: &[u8] = b"count";
/// How many tasks commit at a time.
const TASKS: u64 = 4;
/// Journal files are this long, so that a run has many of them.
const JOURNAL_FILE_BYTES: u64 = 64 * 1024;
const OVERLAY_BYTES: usize = 128 * 1024;

/// The writes of so many commits are made once.
const KNOWN: u64 = 1000;

/// Keys whose first byte is even are compressed; those above the middle are written first and removed last.
pub(crate) struct Bytes;

impl Layout for Bytes {
    fn format(&self) -> u32 {
        1
    }

    fn compresses(&self, key: &[u8]) -> bool {
        key.first().is_some_and(|first| first % 2 == 0)
    }

    fn apply_order(&self, key: &[u8], is_put: bool) -> u8 {
        u8::from(key.first().is_some_and(|first| *first > 127) != is_put)
    }
}

/// Options for a database whose engine ends its process as a server's does.
pub(crate) fn options(directory: &Path) -> Options {
    // In memory the tree's room is not only kept, it is filled.
    let options = Options::new(directory, Bytes).journal_file_bytes(JOURNAL_FILE_BYTES).overlay_bytes(OVERLAY_BYTES);
    let directory = directory.to_owned();
    options.on_stop(move |what, error| {
        // A test's own `eprintln!` would be lost with the process.
        let _ = writeln!(std::io::stderr(), "{}: {what}: {error}", directory.display());
        exit(74);
    })
}

pub(crate) fn open(directory: &Path) -> Result<(Database, Closing), OpenError> {
    options(directory).open()
}

type Write = (Vec<u8>, Option<Vec<u8>>);

/// What commit `number` writes.
fn writes(number: u64) -> Vec<Write> {
    static WRITES: LazyLock<Vec<Vec<Write>>> = LazyLock::new(|| (0..KNOWN).map(writes_of).collect());
    let known = usize::try_from(number).ok().and_then(|number| WRITES.get(number));
    known.cloned().unwrap_or_else(|| writes_of(number))
}

fn writes_of(number: u64) -> Vec<Write> {
    let mut rng = Rng::with_seed(number);
    let key = |rng: &mut Rng| {
        let mut of_key = Rng::with_seed(rng.u64(..300));
        let length = of_key.usize(1..40);
        // No text, so none of the engine's own keys nor the count.
        std::iter::repeat_with(|| of_key.u8(..)).take(length).chain([0]).collect::<Vec<_>>()
    };
    (0..rng.usize(1..8))
        .map(|_| {
            let key = key(&mut rng);
            let length = if rng.u8(..16) == 0 { rng.usize(..9_000) } else { rng.usize(..500) };
            let letters = if rng.bool() { 1..=3 } else { 0..=255 };
            let value = rng.u8(..8) > 0;
            (key, value.then(|| std::iter::repeat_with(|| rng.u8(letters.clone())).take(length).collect()))
        })
        .collect()
}

/// Commits once more; returns the number of the commit.
pub(crate) async fn commit(database: &Database) -> Result<u64, CommitError<TreeError>> {
    database.commit(change).await
}

/// Counts up and writes what follows from the number, which it returns.
pub(crate) fn change(view: &mut View<'_>) -> Result<u64, TreeError> {
    let number = view.get(COUNT)?.map_or(0, |count| u64_of(&count)) + 1;
    view.put(COUNT, number.to_string());
    for (key, value) in writes(number) {
        match value {
            Some(value) => view.put(key, value),
            None => view.remove(key),
        }
    }
    Ok(number)
}

/// How many commits a database has.
pub(crate) fn count(database: &Database) -> u64 {
    database.get(COUNT).unwrap().map_or(0, |count| u64_of(&count))
}

fn u64_of(text: &[u8]) -> u64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

/// What a database holds after so many commits.
#[derive(Default)]
pub(crate) struct Model {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    commits: u64,
}

impl Model {
    /// After this commit, of a model that was made for an earlier one, or for this.
    fn advance(&mut self, to: u64) {
        for number in self.commits + 1..=to {
            for (key, value) in writes(number) {
                match value {
                    Some(value) => drop(self.entries.insert(key, value)),
                    None => drop(self.entries.remove(&key)),
                }
            }
            self.entries.insert(COUNT.to_vec(), number.to_string().into_bytes());
        }
        self.commits = self.commits.max(to);
    }

    /// Fails unless a database holds exactly what it must after as many commits as it has; returns how many.
    pub(crate) fn check(&mut self, database: &Database, what: &str) -> u64 {
        let count = count(database);
        if count < self.commits {
            *self = Self::default();
        }
        self.advance(count);
        let own = |key: &[u8]| [FORMAT, APPLIED, COMMITTED_AT].contains(&key);
        let mut expected = self.entries.iter();
        for entry in database.range(..).map(Result::unwrap).filter(|(key, _)| !own(key)) {
            let (key, value) = expected.next().unwrap_or_else(|| panic!("{what}: {entry:?} is too much"));
            assert_eq!((key, value), (&entry.0, &entry.1), "{what}: after {count} commits");
        }
        assert_eq!(expected.next(), None, "{what}: after {count} commits");
        count
    }
}

/// The number of an acknowledgement, if a line is one.
pub(crate) fn acknowledged(line: &str) -> Option<u64> {
    line.split_once("acknowledged ")?.1.trim().parse().ok()
}

/// A process that runs [`the_process`]: it commits so many times in `directory`/data, makes a backup in the middle, and closes
/// the database; or it ends after half of the commits, in the midst of others.
pub(crate) fn process(program: impl AsRef<std::ffi::OsStr>, directory: &Path, commits: u64, closes: bool) -> Command {
    let mut command = Command::new(program);
    command.env("WORKLOAD_DIRECTORY", directory).env("WORKLOAD_COMMITS", commits.to_string());
    command.env("WORKLOAD_CLOSES", closes.to_string());
    command
}

/// The arguments by which this program becomes that process.
pub(crate) const ARGUMENTS: [&str; 4] = ["workload::the_process", "--exact", "--nocapture", "--quiet"];

pub(crate) fn this_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

/// Does nothing unless another test starts this program for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_process() {
    let variable = |name: &str| std::env::var(name);
    let Ok(directory) = variable("WORKLOAD_DIRECTORY") else { return };
    let directory = Path::new(&directory);
    let commits: u64 = variable("WORKLOAD_COMMITS").unwrap().parse().unwrap();
    let closes = variable("WORKLOAD_CLOSES").unwrap() == "true";
    let Ok((database, closing)) = open(&directory.join("data")) else { exit(1) };
    let database = Arc::new(database);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let (database, directory) = (Arc::clone(&database), directory.to_owned());
        tasks.spawn(async move {
            for nth in 0..commits / TASKS {
                // One task alone for a while, so that changes are committed in both ways.
                if nth < commits / TASKS / 4 && task > 0 {
                    tokio::task::yield_now().await;
                    continue;
                }
                if let Ok(number) = commit(&database).await {
                    println!("acknowledged {number}");
                    // The other tasks' commits are under way then.
                    if !closes && number % commits == commits / 2 {
                        exit(0);
                    }
                }
                if task == 0 && nth == commits / TASKS / 4 {
                    back_up(&database, &directory).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    drop(database);
    closing.wait();
    std::io::stdout().flush().unwrap();
    exit(0);
}

/// Makes a backup, where there is none yet.
async fn back_up(database: &Arc<Database>, directory: &Path) {
    if let Ok(made) = database.back_up(directory.join("backup")).await {
        database.keep_journal_after(made.from);
    }
}

/// A directory that is quick to write, since it is thrown away.
pub(crate) fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let mut directory = tempfile::Builder::new();
    directory.prefix("journaled-tree-");
    if memory.is_dir() { directory.tempdir_in(memory).unwrap() } else { directory.tempdir().unwrap() }
}

/// Opens a database that must open, checks it, commits to it, and closes it in order.
pub(crate) async fn check_and_go_on(directory: &Path, model: &mut Model, what: &str) -> u64 {
    let (database, closing) =
        open(directory).unwrap_or_else(|error| panic!("{what}: {error}; kept in {}", directory.display()));
    let count = model.check(&database, what);
    assert_eq!(commit(&database).await.unwrap(), count + 1, "{what}");
    let faults = journaled_tree::check_journal(directory).unwrap();
    assert!(faults.is_empty(), "{what}: {faults:?}");
    drop(database);
    tokio::task::spawn_blocking(|| closing.wait()).await.unwrap();
    count
}

/// Restores a backup and checks what comes of it.
pub(crate) fn check_backup(backup: &Path, target: &Path, model: &mut Model, what: &str) {
    let sources = journaled_tree::Sources { backup: Some(backup), ..Default::default() };
    journaled_tree::restore(&sources, target, Bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (database, closing) = open(target).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(model.check(&database, what) > 0, "{what}");
    drop(database);
    closing.wait();
    fs::remove_dir_all(target).unwrap();
}
