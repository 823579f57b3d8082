//! A tree on a simulated disk, which replaces sled.

use std::{io, iter, ops::Bound, path::Path, sync::Arc};

use rustix::io::Errno;

use super::{
    SimulatedDisk,
    disk::Handle,
    records::Records,
    state::{File, Kind, Names, Node, State},
    trace::Call,
};
use crate::{
    entries::KeyRange,
    error::{OpenError, TreeError},
    merge::may_hold_a_key,
    platform::Platform,
    store::{Range, Store, Stored},
    tree,
};

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

#[derive(Clone)]
struct SimulatedTree(Handle);

impl SimulatedTree {
    /// Opens the tree in a directory, or creates an empty one.
    fn open(disk: &SimulatedDisk, directory: &Path) -> io::Result<Self> {
        let path = directory.join(tree::FILE);
        let call = Call { name: "open tree", path: &path, numbers: [0, 0] };
        let node = disk.lock().call(Kind::Open, call, |state| {
            if !state.exists(directory) {
                state.make(directory, Node::Directory(Names::default()))?;
            }
            match state.find(&path) {
                Ok(node) => Ok(node),
                Err(_) => state.make(&path, Node::File(File { records: Some(Records::default()), ..File::default() })),
            }
        })?;
        let tree = Self(Handle { disk: disk.clone(), node, path: path.into() });
        match tree.with(|records| records.is_damaged)? {
            true => Err(io::Error::other("a power cut damaged it")),
            false => Ok(tree),
        }
    }

    fn with<T>(&self, read: impl FnOnce(&Records) -> T) -> io::Result<T> {
        records_of(&mut self.0.disk.lock(), self.0.node).map(|records| read(records))
    }
}

impl Store for SimulatedTree {
    fn get(&self, key: &[u8]) -> Result<Option<Stored>, TreeError> {
        let found = self.with(|records| records.kept.now.get(key).cloned()).map_err(TreeError::failed)?;
        Ok(found.map(|value| Stored::from(&*value)))
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), TreeError> {
        let lengths = [key.len() as u64, value.map_or(0, <[u8]>::len) as u64];
        let written = self.0.call("write record", Kind::Read, lengths, |state| {
            let number = state.trace.calls;
            let kept = &mut records_of(state, self.0.node)?.kept;
            kept.change(number, vec![(key.to_vec(), value.map(Arc::from))]);
            Ok(())
        });
        written.map_err(TreeError::failed)
    }

    fn flush(&self) -> Result<(), TreeError> {
        let flushed = self.0.call("flush", Kind::Write, [0, 0], |state| {
            let left = state.room_left();
            let file = state.file_mut(self.0.node)?;
            let (length, used) = (file.length(), file.used());
            let records = file.records.as_mut().ok_or(Errno::INVAL)?;
            if (length + records.unflushed_bytes()).saturating_sub(used) > left {
                return Err(Errno::NOSPC.into());
            }
            records.flush();
            Ok(())
        });
        flushed.map_err(TreeError::failed)
    }

    fn range(&self, mut keys: KeyRange, is_reversed: bool) -> Range {
        let tree = self.clone();
        Box::new(iter::from_fn(move || {
            if !may_hold_a_key(&keys) {
                return None;
            }
            let found = tree.with(|records| {
                let mut range = records.kept.now.range::<Vec<u8>, _>((keys.0.as_ref(), keys.1.as_ref()));
                let next = if is_reversed { range.next_back() } else { range.next() };
                next.map(|(key, value)| (key.clone(), Stored::from(&**value)))
            });
            let next = found.map_err(TreeError::failed).transpose()?;
            if let Ok((key, _)) = &next {
                *if is_reversed { &mut keys.1 } else { &mut keys.0 } = Bound::Excluded(key.clone());
            }
            Some(next.map(|(key, value)| (key.into(), value)))
        }))
    }

    fn len(&self) -> usize {
        self.with(|records| records.kept.now.len()).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes(&self) -> Result<u64, TreeError> {
        let bytes =
            |records: &Records| records.kept.now.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        Ok(self.with(bytes).unwrap_or_default() as u64)
    }
}

fn records_of(state: &mut State, node: usize) -> io::Result<&mut Records> {
    state.file_mut(node)?.records.as_mut().ok_or_else(|| Errno::INVAL.into())
}
