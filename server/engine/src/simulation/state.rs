//! A simulated disk's files and directories, and the outcome of each call.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    ops::Range,
    path::{Component, Path},
};

use fastrand::Rng;
use rustix::io::Errno;

use super::{
    Crash,
    content::Content,
    cut::Cut,
    kept::{Kept, Writes},
    planted::leaves_out,
    records::Records,
    trace::{Call, Trace},
};

const ROOT: usize = 0;

pub(super) struct State {
    pub(super) rng: Rng,
    nodes: Vec<Node>,
    pub(super) trace: Trace,
    /// Whether the process has crashed. Then its further calls have no effect.
    pub(super) is_off: bool,
    /// The number of the call in which the process crashes.
    pub(super) crash_at: Option<u64>,
    /// The calls with these numbers fail, each with a chance of one in this number.
    pub(super) failing: (Range<u64>, u64),
    pub(super) failed: u64,
    /// How many bytes all files together may have.
    pub(super) room: Option<u64>,
    pub(super) ids: u64,
}

/// The names in a directory, each with the number of its file or directory.
pub(super) type Names = Kept<BTreeMap<OsString, usize>, Writes<OsString, usize>>;

pub(super) enum Node {
    File(File),
    Directory(Names),
}

#[derive(Default)]
pub(super) struct File {
    pub(super) content: Content,
    /// The end of the allocated blocks.
    pub(super) allocated: u64,
    pub(super) is_locked: bool,
    /// The records, in a tree's file.
    pub(super) records: Option<Records>,
}

/// The kind of a call, which decides how it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Read,
    Write,
    Sync,
    /// A change of a name.
    Change,
}

/// The outcome of a call.
pub(super) enum Fate {
    Done,
    Failed(io::Error),
    /// The call was done, but the process crashed before it returned.
    InVain(io::Error),
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            nodes: vec![Node::Directory(Names::default())],
            trace: Trace::new(),
            is_off: false,
            crash_at: None,
            failing: (0..0, 1),
            failed: 0,
            room: None,
            ids: 0,
        }
    }

    /// Makes a call: decides its outcome, applies its effect if it has one, and records it.
    pub(super) fn call<T>(
        &mut self,
        kind: Kind,
        call: Call<'_>,
        effect: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        self.with_fate(kind, call, |state, fate| match fate {
            Fate::Done => effect(state),
            Fate::Failed(error) => Err(error),
            Fate::InVain(error) => effect(state).and(Err(error)),
        })
    }

    /// Makes a call whose effect depends on its outcome.
    pub(super) fn with_fate<T>(
        &mut self,
        kind: Kind,
        call: Call<'_>,
        effect: impl FnOnce(&mut Self, Fate) -> io::Result<T>,
    ) -> io::Result<T> {
        let fate = self.fate(kind);
        let outcome = effect(self, fate);
        self.trace.add(call, &outcome);
        outcome
    }

    /// Makes a call that syncs a file or a directory. A failed one may sync a part.
    pub(super) fn sync(&mut self, call: Call<'_>, node: usize) -> io::Result<()> {
        if leaves_out(call, self.exists(call.path)) {
            return Ok(());
        }
        self.with_fate(Kind::Sync, call, |state, fate| match (fate, &mut state.nodes[node]) {
            (Fate::Done, Node::Directory(names)) => {
                names.sync_all();
                Ok(())
            }
            (Fate::Done, Node::File(file)) => {
                file.content.sync_all();
                file.records.iter_mut().for_each(Records::sync);
                Ok(())
            }
            (Fate::Failed(error), node) if !state.is_off => {
                match node {
                    // A later sync makes the other names durable.
                    Node::Directory(names) => names.sync(state.rng.usize(..=names.unsynced.len())),
                    Node::File(file) => file.content.fail_sync(&mut state.rng),
                }
                Err(error)
            }
            // A power cut decides about each change later.
            (Fate::Failed(error) | Fate::InVain(error), _) => Err(error),
        })
    }

    /// Syncs the files in a directory, but not their names.
    pub(super) fn sync_contents(&mut self, directory: usize) {
        let files: Vec<_> =
            self.names(directory).map(|names| names.now.values().copied().collect()).unwrap_or_default();
        for node in files {
            if let Ok(file) = self.file_mut(node) {
                file.content.sync_all();
            }
        }
    }

    fn fate(&mut self, kind: Kind) -> Fate {
        if self.is_off {
            return Fate::Failed(ended());
        }
        self.trace.calls += 1;
        let number = self.trace.calls;
        if self.crash_at.is_some_and(|at| number >= at) {
            self.is_off = true;
            return if self.rng.bool() { Fate::InVain(ended()) } else { Fate::Failed(ended()) };
        }
        let (range, one_in) = &self.failing;
        if range.contains(&number) && self.rng.u64(..*one_in) == 0 {
            self.failed += 1;
            return Fate::Failed(self.error(kind));
        }
        Fate::Done
    }

    /// An error that the call can fail with.
    fn error(&mut self, kind: Kind) -> io::Error {
        let errors: &[Errno] = match kind {
            Kind::Open => &[Errno::MFILE, Errno::IO, Errno::NOSPC],
            Kind::Write | Kind::Change => &[Errno::NOSPC, Errno::IO],
            Kind::Read | Kind::Sync => &[Errno::IO],
        };
        errors[self.rng.usize(..errors.len())].into()
    }

    /// The number of the file or directory that a path names.
    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
        let step = |at, name: Component<'_>| self.names(at)?.now.get(name.as_os_str()).copied().ok_or(not_there());
        names.into_iter().try_fold(ROOT, step)
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.find(path).is_ok()
    }

    /// The directory that a path's last name is in, and that name.
    pub(super) fn parent<'p>(&self, path: &'p Path) -> io::Result<(usize, &'p OsStr)> {
        let parent = path.parent().ok_or(Errno::INVAL)?;
        Ok((self.find(parent)?, path.file_name().ok_or(Errno::INVAL)?))
    }

    pub(super) fn names(&self, node: usize) -> io::Result<&Names> {
        match &self.nodes[node] {
            Node::Directory(names) => Ok(names),
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn file(&self, node: usize) -> io::Result<&File> {
        match &self.nodes[node] {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn file_mut(&mut self, node: usize) -> io::Result<&mut File> {
        match &mut self.nodes[node] {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn is_file(&self, node: usize) -> bool {
        self.file(node).is_ok()
    }

    /// Creates a file or a directory with this name.
    pub(super) fn make(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let (parent, name) = self.parent(path)?;
        let number = self.nodes.len();
        self.nodes.push(node);
        self.set_name(parent, vec![(name.to_owned(), Some(number))])?;
        Ok(number)
    }

    pub(super) fn unname(&mut self, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        self.set_name(parent, vec![(name.to_owned(), None)])
    }

    pub(super) fn set_name(&mut self, parent: usize, change: Writes<OsString, usize>) -> io::Result<()> {
        match &mut self.nodes[parent] {
            Node::Directory(names) => {
                names.change(self.trace.calls, change);
                Ok(())
            }
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn room_left(&self) -> u64 {
        self.room.map_or(u64::MAX, |room| room.saturating_sub(self.used_in_all()))
    }

    pub(super) fn used_in_all(&self) -> u64 {
        self.used(ROOT)
    }

    fn used(&self, node: usize) -> u64 {
        match &self.nodes[node] {
            Node::File(file) => file.used(),
            Node::Directory(names) => names.now.values().map(|node| self.used(*node)).sum(),
        }
    }

    pub(super) fn restart(&mut self, crash: Crash) {
        let cut = Cut::random(&mut self.rng, self.trace.calls);
        match crash {
            Crash::Kill => self.trace.note("the process was killed".into()),
            Crash::PowerCut => self.trace.note(format!("a power cut: {cut:?}")),
        }
        for node in &mut self.nodes {
            match (node, crash) {
                (Node::File(file), _) => file.restart(crash, cut, &mut self.rng),
                (Node::Directory(names), Crash::PowerCut) => names.cut(cut, &mut self.rng),
                (Node::Directory(_), Crash::Kill) => {}
            }
        }
        (self.is_off, self.crash_at) = (false, None);
    }
}

impl File {
    pub(super) fn length(&self) -> u64 {
        self.records.as_ref().map_or(self.content.now.len() as u64, |records| records.length)
    }

    pub(super) fn used(&self) -> u64 {
        self.length().max(self.allocated)
    }

    fn restart(&mut self, crash: Crash, cut: Cut, rng: &mut Rng) {
        self.is_locked = false;
        match crash {
            Crash::Kill => self.records.iter_mut().for_each(|records| records.kill(rng)),
            Crash::PowerCut => {
                self.content.tear(cut, rng);
                self.records.iter_mut().for_each(|records| records.cut(cut, rng));
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the process has crashed")
}

fn not_there() -> io::Error {
    Errno::NOENT.into()
}
