//! A model of a disk that builds possible states after a power cut from a trace of system calls.
//!
//! A write is durable only after an `fsync` or `fdatasync` of its file that begins after the write returned. A name is
//! durable only after an `fsync` of its directory. `sync_file_range` makes neither durable. A power cut may keep, lose or
//! tear each unsynced write, sector by sector and in any order (fsync(2), rename(2); "All File Systems Are Not Created
//! Equal", OSDI 2014).

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use fastrand::Rng;

/// The bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// One step of the trace.
pub(crate) enum Step {
    /// A call that changes the disk.
    Disk(Call),
    /// Bytes sent to a socket. A client may read them from now on.
    Sent(Vec<u8>),
}

/// A system call on a file in the watched directory.
pub(crate) enum Call {
    Open { path: PathBuf, fd: u32, truncates: bool },
    Seek { fd: u32, to: u64 },
    Write { fd: u32, at: Option<u64>, bytes: Vec<u8>, done: usize },
    SetLength { fd: u32, length: u64, done: usize },
    MakeDirectory { path: PathBuf, done: usize },
    Rename { from: PathBuf, to: PathBuf, done: usize },
    Remove { path: PathBuf, done: usize },
    Sync { fd: u32, begun: usize },
}

/// Parses a trace into steps. Each comes with its time, the number of the line at which it takes effect.
///
/// A write may take effect from its begin on and has taken effect by its end. A sync takes effect at its end, for writes
/// that ended before it began.
pub(crate) fn steps(trace: &str, watched: &Path, first_line: usize) -> Vec<(usize, Step)> {
    let mut steps = Vec::new();
    let mut under_way = HashMap::<&str, (usize, &str)>::new();
    for (number, line) in trace.lines().enumerate() {
        let number = first_line + number;
        let (thread, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            under_way.insert(thread, (number, begun));
            continue;
        }
        let (begun, arguments, ended) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (begun, arguments) = under_way.remove(thread).unwrap();
                (begun, arguments, resumed.split_once("resumed>").unwrap().1)
            }
            None => (number, rest, ""),
        };
        steps.extend(step(&format!("{arguments}{ended}"), begun, number, watched));
    }
    // A call that never returned may have taken effect.
    for (begun, arguments) in under_way.into_values() {
        if !arguments.contains("sync") && !arguments.starts_with("openat") {
            steps.extend(step(&format!("{arguments}) = ?"), begun, usize::MAX, watched));
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

fn step(call: &str, begun: usize, ended: usize, watched: &Path) -> Option<(usize, Step)> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let result = result.trim();
    if result.starts_with('-') {
        return None;
    }
    let result_number: Option<u64> = result.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let path = |nth: usize| {
        let text = String::from_utf8(quoted(arguments).nth(nth)?).ok()?;
        Some(PathBuf::from(text)).filter(|path| path.starts_with(watched))
    };
    let fd = || arguments.split(['<', ',', ')']).next()?.parse::<u32>().ok();
    // `5<path>` for the descriptor of a file. The server did not open the standard streams.
    let file = arguments.split_once('<').and_then(|(_, path)| path.split('>').next()).map(unhexed);
    let is_watched = file.is_some_and(|path| Path::new(OsStr::from_bytes(&path)).starts_with(watched))
        && fd().is_some_and(|fd| fd > 2);
    // strace puts blanks around the bracket of an interrupted call.
    let last_number = || {
        let last = arguments.trim_end_matches([')', ' ']).rsplit(", ").next().unwrap();
        last.parse::<u64>().unwrap_or_else(|_| panic!("{name} does not end with a number: {last}"))
    };
    let (at, step) = match name {
        "openat" => {
            let (path, fd) = (path(0)?, u32::try_from(result_number?).ok()?);
            (ended, Step::Disk(Call::Open { path, fd, truncates: arguments.contains("O_TRUNC") }))
        }
        "lseek" if is_watched => (ended, Step::Disk(Call::Seek { fd: fd()?, to: result_number? })),
        "write" | "pwrite64" | "writev" if is_watched => {
            let mut bytes = quoted(arguments).flatten().collect::<Vec<_>>();
            bytes.truncate(result_number.map_or(usize::MAX, |length| usize::try_from(length).unwrap()));
            let at = if name == "pwrite64" { Some(last_number()) } else { None };
            (begun, Step::Disk(Call::Write { fd: fd()?, at, bytes, done: ended }))
        }
        "write" | "writev" | "sendto" | "sendmsg" => (begun, Step::Sent(quoted(arguments).flatten().collect())),
        "ftruncate" if is_watched => {
            (begun, Step::Disk(Call::SetLength { fd: fd()?, length: last_number(), done: ended }))
        }
        "mkdir" | "mkdirat" => (begun, Step::Disk(Call::MakeDirectory { path: path(0)?, done: ended })),
        "rename" | "renameat" | "renameat2" => {
            (begun, Step::Disk(Call::Rename { from: path(0)?, to: path(1)?, done: ended }))
        }
        "unlink" | "unlinkat" => (begun, Step::Disk(Call::Remove { path: path(0)?, done: ended })),
        // A sync interrupted by the end of the process (`= ?`) makes nothing durable.
        "fsync" | "fdatasync" if is_watched => {
            result_number?;
            (ended, Step::Disk(Call::Sync { fd: fd()?, begun }))
        }
        "sync_file_range" => return None,
        // Reserves space and changes neither content nor length.
        "fallocate" if arguments.contains("KEEP_SIZE") => return None,
        _ if is_watched => panic!("the model does not know {name}"),
        _ => return None,
    };
    Some((at, step))
}

/// The strings among a call's arguments.
fn quoted(arguments: &str) -> impl Iterator<Item = Vec<u8>> + '_ {
    arguments.split('"').skip(1).step_by(2).map(unhexed)
}

/// Decodes bytes that strace wrote in hex: `\x2f\x74`.
fn unhexed(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap();
    hex.as_bytes().chunks_exact(4).map(|byte| digit(byte[2]) << 4 | digit(byte[3])).collect()
}

/// The files and directories under one directory, with their durable state and their unsynced changes.
#[derive(Default)]
pub(crate) struct Disk {
    nodes: Vec<Node>,
    /// The current name of each node, synced or not.
    paths: HashMap<PathBuf, usize>,
    descriptors: HashMap<u32, (usize, u64)>,
}

enum Node {
    File { durable: Vec<u8>, unsynced: Vec<Unsynced<Edit>> },
    Directory { durable: BTreeMap<OsString, usize>, unsynced: Vec<Unsynced<Names>> },
}

/// An unsynced change.
struct Unsynced<T> {
    done: usize,
    change: T,
}

enum Edit {
    Write { at: u64, bytes: Vec<u8> },
    SetLength(u64),
}

/// Names that one call adds or removes atomically.
type Names = Vec<(OsString, Option<usize>)>;

/// The content of a disk by relative path: the bytes of a file, or `None` for a directory.
pub(crate) type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What a power cut does to unsynced changes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    /// Keeps all of them, as a killed process does.
    Kept,
    Lost,
    /// Keeps those done before this time and loses the others.
    KeptBefore(usize),
    /// Decides each write by chance: keeps this percentage, tears as many, and loses the others.
    Mixed(u8),
}

impl Fate {
    pub(crate) fn random(rng: &mut Rng, now: usize) -> Self {
        match rng.u8(0..10) {
            0 => Self::Kept,
            1 => Self::Lost,
            2 | 3 => Self::KeptBefore(rng.usize(now.saturating_sub(200)..=now)),
            _ => Self::Mixed(rng.u8(2..49)),
        }
    }

    /// Whether a change reaches the disk, at least in part.
    fn keeps(self, rng: &mut Rng, done: usize) -> bool {
        match self {
            Self::Kept => true,
            Self::Lost => false,
            Self::KeptBefore(time) => done < time,
            Self::Mixed(percent) => rng.u8(0..100) < percent * 2,
        }
    }

    fn tears(self, rng: &mut Rng) -> bool {
        matches!(self, Self::Mixed(_)) && rng.bool()
    }
}

impl Disk {
    /// A disk with one empty, durable directory.
    pub(crate) fn new(root: &Path) -> Self {
        let directory = Node::Directory { durable: BTreeMap::new(), unsynced: Vec::new() };
        Self { nodes: vec![directory], paths: HashMap::from([(root.to_owned(), 0)]), ..Self::default() }
    }

    /// Closes all descriptors, as the end of the process does.
    pub(crate) fn close_all(&mut self) {
        self.descriptors.clear();
    }

    pub(crate) fn apply(&mut self, call: Call) {
        match call {
            Call::Open { path, fd, truncates } => {
                let node = match self.paths.get(&path) {
                    Some(node) => *node,
                    None => self.make(&path, Node::File { durable: Vec::new(), unsynced: Vec::new() }, 0),
                };
                if truncates {
                    self.edit(node, Edit::SetLength(0), 0);
                }
                self.descriptors.insert(fd, (node, 0));
            }
            Call::Seek { fd, to } => self.descriptors.get_mut(&fd).unwrap().1 = to,
            Call::Write { fd, at, bytes, done } => {
                let (node, position) = self.descriptors.get_mut(&fd).unwrap();
                let (node, start) = (*node, at.unwrap_or(*position));
                if at.is_none() {
                    *position += bytes.len() as u64;
                }
                self.edit(node, Edit::Write { at: start, bytes }, done);
            }
            Call::SetLength { fd, length, done } => self.edit(self.descriptors[&fd].0, Edit::SetLength(length), done),
            Call::MakeDirectory { path, done } => {
                self.make(&path, Node::Directory { durable: BTreeMap::new(), unsynced: Vec::new() }, done);
            }
            Call::Rename { from, to, done } => {
                assert_eq!(from.parent(), to.parent(), "the model supports renames only within a directory");
                let node = self.paths[&from];
                // A directory moves with its content.
                let moved: Vec<_> = self.paths.keys().filter(|path| path.starts_with(&from)).cloned().collect();
                for path in moved {
                    let moved = self.paths.remove(&path).unwrap();
                    self.paths.insert(to.join(path.strip_prefix(&from).unwrap()), moved);
                }
                self.paths.insert(to.clone(), node);
                self.name(&from, vec![(name_of(&from), None), (name_of(&to), Some(node))], done);
            }
            Call::Remove { path, done } => {
                // The model does not track sockets.
                if self.paths.remove(&path).is_some() {
                    self.name(&path, vec![(name_of(&path), None)], done);
                }
            }
            Call::Sync { fd, begun } => match &mut self.nodes[self.descriptors[&fd].0] {
                Node::File { durable, unsynced } => {
                    for edit in unsynced.extract_if(.., |edit| edit.done < begun) {
                        edit.change.apply(durable);
                    }
                }
                Node::Directory { durable, unsynced } => {
                    for names in unsynced.extract_if(.., |names| names.done < begun) {
                        rename(durable, &names.change);
                    }
                }
            },
        }
    }

    fn make(&mut self, path: &Path, node: Node, done: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.paths.insert(path.to_owned(), number);
        self.name(path, vec![(name_of(path), Some(number))], done);
        number
    }

    fn name(&mut self, path: &Path, change: Names, done: usize) {
        let parent = self.paths[path.parent().unwrap()];
        match &mut self.nodes[parent] {
            Node::Directory { unsynced, .. } => unsynced.push(Unsynced { done, change }),
            Node::File { .. } => panic!("the parent of {} is not a directory", path.display()),
        }
    }

    fn edit(&mut self, node: usize, change: Edit, done: usize) {
        match &mut self.nodes[node] {
            Node::File { unsynced, .. } => unsynced.push(Unsynced { done, change }),
            Node::Directory { .. } => panic!("write to a directory"),
        }
    }

    /// Builds a state that a power cut at this moment may leave.
    pub(crate) fn image(&self, fate: Fate, rng: &mut Rng) -> Image {
        let mut image = BTreeMap::new();
        self.add_directory(Path::new(""), 0, fate, rng, &mut image);
        image
    }

    fn add_directory(&self, at: &Path, node: usize, fate: Fate, rng: &mut Rng, image: &mut Image) {
        let Node::Directory { durable, unsynced } = &self.nodes[node] else { return };
        let mut names = durable.clone();
        for renames in unsynced {
            if fate.keeps(rng, renames.done) {
                rename(&mut names, &renames.change);
            }
        }
        for (name, node) in names {
            let path = at.join(name);
            let content = match &self.nodes[node] {
                Node::File { durable, unsynced } => Some(content(durable, unsynced, fate, rng)),
                Node::Directory { .. } => {
                    self.add_directory(&path, node, fate, rng, image);
                    None
                }
            };
            image.insert(path, content);
        }
    }
}

fn name_of(path: &Path) -> OsString {
    path.file_name().unwrap().to_owned()
}

fn rename(names: &mut BTreeMap<OsString, usize>, changes: &Names) {
    for (name, node) in changes {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

/// Does the same as `resize`, which is slow in debug builds.
fn grow(content: &mut Vec<u8>, length: usize) {
    content.extend_from_slice(&vec![0; length.saturating_sub(content.len())]);
}

impl Edit {
    /// The minimum file length that it causes.
    fn end(&self) -> usize {
        match self {
            Self::SetLength(_) => 0,
            Self::Write { at, bytes } => usize::try_from(*at).unwrap() + bytes.len(),
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::SetLength(length) => {
                content.truncate(usize::try_from(*length).unwrap());
                grow(content, usize::try_from(*length).unwrap());
            }
            Self::Write { at, bytes } => {
                let start = usize::try_from(*at).unwrap();
                let end = start + bytes.len();
                grow(content, end);
                content[start..end].copy_from_slice(bytes);
            }
        }
    }

    /// Applies a random subset of a write's sectors.
    fn apply_torn(&self, content: &mut Vec<u8>, rng: &mut Rng) {
        let Self::Write { at, bytes } = self else { return self.apply(content) };
        let start = usize::try_from(*at).unwrap();
        let mut begun = 0;
        while begun < bytes.len() {
            let end = bytes.len().min(((start + begun) / SECTOR + 1) * SECTOR - start);
            if rng.bool() {
                Self::Write { at: (start + begun) as u64, bytes: bytes[begun..end].to_vec() }.apply(content);
            }
            begun = end;
        }
    }
}

fn content(durable: &[u8], unsynced: &[Unsynced<Edit>], fate: Fate, rng: &mut Rng) -> Vec<u8> {
    let mut content = durable.to_vec();
    for edit in unsynced {
        match fate.keeps(rng, edit.done) {
            true if fate.tears(rng) => edit.change.apply_torn(&mut content, rng),
            true => edit.change.apply(&mut content),
            // A file's length can reach the disk before its bytes.
            false if fate.tears(rng) => grow(&mut content, edit.change.end()),
            false => {}
        }
    }
    content
}
