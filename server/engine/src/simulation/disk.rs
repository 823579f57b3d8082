//! The engine's calls on a simulated disk.

use std::{
    fs::TryLockError,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::io::Errno;

use super::{
    Planted, SimulatedDisk, is_planted,
    state::{Fate, File, Kind, Names, Node, State},
    trace::Call,
    tree::SimulatedTree,
};
use crate::{
    disk::{Disk, DiskFile, Identity, Listed, Open},
    error::OpenError,
    journal,
    platform::Platform,
    store::Store,
};

impl SimulatedDisk {
    fn on_path<T>(
        &self,
        name: &'static str,
        kind: Kind,
        path: &Path,
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.lock().call(kind, Call { name, path: path.into(), numbers: [0, 0] }, effect)
    }
}

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let name = match how {
            Open::Read => "open for reading",
            Open::Write => "open for writing",
            Open::Create => "open or create",
            Open::CreateNew => "create",
            Open::Truncate => "create or empty",
        };
        if is_planted(Planted::RemovedBeforeCompressed)
            && let Some(closed) = path.to_str().and_then(|path| path.strip_suffix(".zst.unfinished"))
        {
            let _ = self.remove_file(Path::new(closed));
        }
        let node = self.on_path(name, Kind::Open, path, |state| {
            let node = match (state.find(path), how) {
                (Err(_), Open::Create | Open::CreateNew | Open::Truncate) => {
                    return state.make(path, Node::File(File::default()));
                }
                (Ok(_), Open::CreateNew) => return Err(Errno::EXIST.into()),
                (found, _) => found?,
            };
            let call = state.trace.calls;
            let file = state.file_mut(node)?;
            if how == Open::Truncate {
                file.content.set_length(call, 0);
            }
            Ok(node)
        })?;
        Ok(Box::new(OpenFile { disk: self.clone(), node, path: path.into(), has_lock: false.into() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.on_path("exists", Kind::Read, path, |state| Ok(state.exists(path)))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.on_path("identity of", Kind::Read, path, |state| Ok((0, state.find(path)? as u64)))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.on_path("canonical path of", Kind::Read, path, |state| state.find(path).map(|_| path.to_owned()))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        self.on_path("list", Kind::Open, directory, |state| {
            let names = &state.names(state.find(directory)?)?.now;
            Ok(names.iter().map(|(name, node)| Listed { name: name.clone(), is_file: state.is_file(*node) }).collect())
        })
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.on_path("create directory", Kind::Change, path, |state| {
            let all: Vec<_> = path.ancestors().collect();
            for missing in all.into_iter().rev() {
                if !state.exists(missing) {
                    state.make(missing, Node::Directory(Names::default()))?;
                }
            }
            Ok(())
        })
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let node = state.find(path)?;
        if is_planted(Planted::NameBeforeContent) {
            state.sync_contents(node);
        }
        state.sync(Call { name: "sync directory", path: path.into(), numbers: [0, 0] }, node)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let name = format!("{} -> {}", from.display(), to.display());
        self.on_path("rename", Kind::Change, Path::new(&name), |state| {
            let node = state.find(from)?;
            let ((parent, old), (new_parent, new)) = (state.parent(from)?, state.parent(to)?);
            if parent != new_parent {
                // No caller does that.
                return Err(Errno::XDEV.into());
            }
            if let Ok(replaced) = state.find(to)
                && (state.is_file(replaced) != state.is_file(node)
                    || state.names(replaced).is_ok_and(|names| !names.now.is_empty()))
            {
                return Err(Errno::NOTEMPTY.into());
            }
            state.set_name(parent, vec![(old.to_owned(), None), (new.to_owned(), Some(node))])
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.on_path("remove", Kind::Change, path, |state| {
            let node = state.find(path)?;
            state.file(node)?;
            let (parent, name) = state.parent(path)?;
            state.set_name(parent, vec![(name.to_owned(), None)])
        })
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        // Name by name, so that a crash or an error can leave a part of it.
        let names: Vec<_> = {
            let state = self.lock();
            let names = state.names(state.find(path)?)?;
            names.now.iter().map(|(name, node)| (path.join(name), state.is_file(*node))).collect()
        };
        for (path, is_file) in names {
            if is_file { self.remove_file(&path) } else { self.remove_directory(&path) }?;
        }
        self.on_path("remove directory", Kind::Change, path, |state| {
            let (parent, name) = state.parent(path)?;
            state.set_name(parent, vec![(name.to_owned(), None)])
        })
    }

    fn free(&self, _: &Path) -> io::Result<u64> {
        Ok(self.lock().room_left())
    }

    fn new_id(&self) -> u64 {
        let mut state = self.lock();
        state.ids += 1;
        state.ids
    }
}

impl Platform for SimulatedDisk {
    fn open_store(&self, directory: &Path) -> Result<Arc<dyn Store>, OpenError> {
        let opened = SimulatedTree::open(self, directory);
        Ok(Arc::new(opened.map_err(|error| OpenError::damaged(directory, error.to_string()))?))
    }

    fn has_threads(&self) -> bool {
        false
    }

    fn process_id(&self) -> u32 {
        1
    }
}

/// An open file of a simulated disk.
struct OpenFile {
    disk: SimulatedDisk,
    node: usize,
    path: Arc<Path>,
    has_lock: AtomicBool,
}

impl OpenFile {
    fn call<T>(
        &self,
        name: &'static str,
        kind: Kind,
        numbers: [u64; 2],
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.lock().call(kind, Call { name, path: Arc::clone(&self.path), numbers }, effect)
    }

    fn is_of_journal(&self) -> bool {
        self.path.parent().is_some_and(|directory| directory.ends_with(journal::DIRECTORY))
    }

    fn sync(&self, name: &'static str) -> io::Result<()> {
        self.disk.lock().sync(Call { name, path: Arc::clone(&self.path), numbers: [0, 0] }, self.node)
    }
}

impl DiskFile for OpenFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let numbers = [offset, bytes.len() as u64];
        self.call("read", Kind::Read, numbers, |state| {
            let content = &state.file(self.node)?.content.now;
            let rest = content.get(to_usize(offset)?..).unwrap_or_default();
            let length = rest.len().min(bytes.len());
            bytes[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let fate = state.fate(Kind::Write);
        let (number, at) = (state.trace.calls, to_usize(offset)?);
        let left = state.room_left();
        let taken = state.file(self.node)?.length().max(state.file(self.node)?.allocated);
        let fits = to_usize((taken + left.min(u64::MAX - taken)).saturating_sub(offset))?.min(bytes.len());
        // pwrite(2) fails only where it wrote nothing, so the last byte is not written.
        let part = state.rng.usize(..=fits.min(bytes.len().saturating_sub(1)));
        let (written, outcome) = match fate {
            Fate::Done if fits == bytes.len() => (fits, Ok(())),
            Fate::Done => (fits, Err(Errno::NOSPC.into())),
            Fate::Failed(error) => (if state.is_off { 0 } else { part }, Err(error)),
            Fate::InVain(error) => (part, Err(error)),
        };
        let counts = is_planted(Planted::FailedWriteCounts) && !state.is_off && self.is_of_journal();
        let outcome = if counts { Ok(()) } else { outcome };
        if written > 0 {
            state.file_mut(self.node)?.content.write(number, at, &bytes[..written]);
        }
        state.trace.hash(&crc32fast::hash(bytes).to_le_bytes());
        let numbers = [offset, bytes.len() as u64];
        state.trace.add(Call { name: "write", path: Arc::clone(&self.path), numbers }, &outcome);
        outcome
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if is_planted(Planted::NoReserve) {
            return Ok(());
        }
        self.call("allocate", Kind::Write, [offset, length], |state| {
            let left = state.room_left();
            let file = state.file_mut(self.node)?;
            let taken = file.length().max(file.allocated);
            if (offset + length).saturating_sub(taken) > left {
                return Err(Errno::NOSPC.into());
            }
            file.allocated = taken.max(offset + length);
            Ok(())
        })
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.call("set length", Kind::Write, [length, 0], |state| {
            let call = state.trace.calls;
            state.file_mut(self.node)?.content.set_length(call, to_usize(length)?);
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.call("length", Kind::Read, [0, 0], |state| Ok(state.file(self.node)?.length()))
    }

    fn identity(&self) -> io::Result<Identity> {
        self.call("identity", Kind::Read, [0, 0], |_| Ok((0, self.node as u64)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync("sync data")
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync("sync all")
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let taken = self.call("lock", Kind::Read, [0, 0], |state| {
            Ok(std::mem::replace(&mut state.file_mut(self.node)?.is_locked, true))
        });
        match taken {
            Ok(true) => Err(TryLockError::WouldBlock),
            Ok(false) => {
                self.has_lock.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(TryLockError::Error(error)),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        if self.has_lock.swap(false, Ordering::Relaxed) {
            self.disk.lock().file_mut(self.node)?.is_locked = false;
        }
        Ok(())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let _ = self.unlock();
    }
}

fn to_usize(number: u64) -> io::Result<usize> {
    usize::try_from(number).map_err(io::Error::other)
}
