//! The engine's calls on a simulated disk.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::io::Errno;

use super::{
    SimulatedDisk,
    planted::{Planted, counts_as_written, is_planted},
    state::{Fate, File, Kind, Names, Node, State},
    trace::Call,
};
use crate::disk::{Disk, DiskFile, Identity, Listed, Open};

impl SimulatedDisk {
    fn on_path<T>(
        &self,
        name: &'static str,
        kind: Kind,
        path: &Path,
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.lock().call(kind, Call { name, path, numbers: [0, 0] }, effect)
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
        Ok(Box::new(OpenFile {
            handle: Handle { disk: self.clone(), node, path: path.into() },
            has_lock: false.into(),
        }))
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
        state.sync(Call { name: "sync directory", path, numbers: [0, 0] }, node)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let name = format!("{} -> {}", from.display(), to.display());
        self.on_path("rename", Kind::Change, Path::new(&name), |state| {
            let node = state.find(from)?;
            let ((parent, old), (new_parent, new)) = (state.parent(from)?, state.parent(to)?);
            if parent != new_parent {
                // No caller renames between directories.
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
            state.unname(path)
        })
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        // Removes one name at a time, so that a crash or an error can leave some.
        let names: Vec<_> = {
            let state = self.lock();
            let names = state.names(state.find(path)?)?;
            names.now.iter().map(|(name, node)| (path.join(name), state.is_file(*node))).collect()
        };
        for (path, is_file) in names {
            if is_file { self.remove_file(&path) } else { self.remove_directory(&path) }?;
        }
        self.on_path("remove directory", Kind::Change, path, |state| state.unname(path))
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

/// An open file of a simulated disk.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) disk: SimulatedDisk,
    pub(super) node: usize,
    pub(super) path: Arc<Path>,
}

impl Handle {
    pub(super) fn call<T>(
        &self,
        name: &'static str,
        kind: Kind,
        numbers: [u64; 2],
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.lock().call(kind, Call { name, path: &self.path, numbers }, effect)
    }

    fn sync(&self, name: &'static str) -> io::Result<()> {
        self.disk.lock().sync(Call { name, path: &self.path, numbers: [0, 0] }, self.node)
    }
}

struct OpenFile {
    handle: Handle,
    has_lock: AtomicBool,
}

impl DiskFile for OpenFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let numbers = [offset, bytes.len() as u64];
        self.handle.call("read", Kind::Read, numbers, |state| {
            let content = &state.file(self.handle.node)?.content.now;
            let rest = content.get(to_usize(offset)?..).unwrap_or_default();
            let length = rest.len().min(bytes.len());
            bytes[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Handle { disk, node, path } = &self.handle;
        let call = Call { name: "write", path, numbers: [offset, bytes.len() as u64] };
        disk.lock().with_fate(Kind::Write, call, |state, fate| {
            let (number, at) = (state.trace.calls, to_usize(offset)?);
            let (left, taken) = (state.room_left(), state.file(*node)?.used());
            let fits = to_usize((taken + left.min(u64::MAX - taken)).saturating_sub(offset))?.min(bytes.len());
            // pwrite(2) fails only if it wrote nothing, so a failing call never writes the last byte.
            let part = state.rng.usize(..=fits.min(bytes.len().saturating_sub(1)));
            let (written, outcome) = match fate {
                Fate::Done if fits == bytes.len() => (fits, Ok(())),
                Fate::Done => (fits, Err(Errno::NOSPC.into())),
                Fate::Failed(error) => (if state.is_off { 0 } else { part }, Err(error)),
                Fate::InVain(error) => (part, Err(error)),
            };
            if written > 0 {
                state.file_mut(*node)?.content.write(number, at, &bytes[..written]);
            }
            state.trace.hash(&crc32fast::hash(bytes).to_le_bytes());
            if counts_as_written(call) && !state.is_off { Ok(()) } else { outcome }
        })
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if is_planted(Planted::NoReserve) {
            return Ok(());
        }
        self.handle.call("allocate", Kind::Write, [offset, length], |state| {
            let left = state.room_left();
            let file = state.file_mut(self.handle.node)?;
            let taken = file.used();
            if (offset + length).saturating_sub(taken) > left {
                return Err(Errno::NOSPC.into());
            }
            file.allocated = taken.max(offset + length);
            Ok(())
        })
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.handle.call("set length", Kind::Write, [length, 0], |state| {
            let call = state.trace.calls;
            state.file_mut(self.handle.node)?.content.set_length(call, to_usize(length)?);
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.handle.call("length", Kind::Read, [0, 0], |state| Ok(state.file(self.handle.node)?.length()))
    }

    fn identity(&self) -> io::Result<Identity> {
        self.handle.call("identity", Kind::Read, [0, 0], |_| Ok((0, self.handle.node as u64)))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.handle.sync("sync data")
    }

    fn sync_all(&self) -> io::Result<()> {
        self.handle.sync("sync all")
    }

    fn try_lock(&self) -> io::Result<bool> {
        let was_locked = self.handle.call("lock", Kind::Read, [0, 0], |state| {
            Ok(std::mem::replace(&mut state.file_mut(self.handle.node)?.is_locked, true))
        })?;
        self.has_lock.fetch_or(!was_locked, Ordering::Relaxed);
        Ok(!was_locked)
    }

    fn unlock(&self) -> io::Result<()> {
        if self.has_lock.swap(false, Ordering::Relaxed) {
            self.handle.disk.lock().file_mut(self.handle.node)?.is_locked = false;
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
