//! A model of a disk that builds possible states after a power cut from system calls.
//!
//! A write is durable only after an `fsync` or `fdatasync` of its file that began after the write returned. A name is durable
//! only after an `fsync` of its directory. `sync_file_range` makes neither durable. A power cut may keep, lose or tear each
//! unsynced write, sector by sector and in any order (fsync(2), rename(2); "All File Systems Are Not Created Equal", OSDI
//! 2014).

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
};

use fastrand::Rng;

/// The bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// A system call on a file in the watched directory.
pub enum Call {
    Open { path: PathBuf, fd: u32, truncates: bool },
    Seek { fd: u32, to: u64 },
    Write { fd: u32, at: Option<u64>, bytes: Vec<u8>, done: usize },
    SetLength { fd: u32, length: u64, done: usize },
    MakeDirectory { path: PathBuf, done: usize },
    Rename { from: PathBuf, to: PathBuf, done: usize },
    Remove { path: PathBuf, done: usize },
    Sync { fd: u32, begun: usize },
}

/// The files and directories under one directory, with their durable state and their unsynced changes.
#[derive(Default)]
pub struct Disk {
    nodes: Vec<Node>,
    /// The current name of each node, even if it is not synced.
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
pub type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What a power cut does to unsynced changes.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// Keeps all changes, as a killed process does.
    Kept,
    Lost,
    /// Keeps the changes done before this time, and loses the others.
    KeptBefore(usize),
    /// Decides about each write by chance: keeps this percentage, tears the same percentage, and loses the others.
    Mixed(u8),
}

impl Fate {
    pub fn random(rng: &mut Rng, now: usize) -> Self {
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
    pub fn new(root: &Path) -> Self {
        let directory = Node::Directory { durable: BTreeMap::new(), unsynced: Vec::new() };
        Self { nodes: vec![directory], paths: HashMap::from([(root.to_owned(), 0)]), ..Self::default() }
    }

    /// Closes all descriptors, as the end of the process does.
    pub fn close_all(&mut self) {
        self.descriptors.clear();
    }

    pub fn apply(&mut self, call: Call) {
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
    pub fn image(&self, fate: Fate, rng: &mut Rng) -> Image {
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
    /// The minimum length of the file after this change.
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
