//! The records of a simulated tree: what sled promises of them, and no more.
//!
//! A write is in the process until a flush, and for a power cut to lose until a sync of the file after that. A crash keeps any
//! of the writes that are not safe from it, in their order: also the number of a batch without the rest of it.

use std::{collections::BTreeMap, sync::Arc};

use fastrand::Rng;

use super::cut::{Cut, Unsynced};

/// A value, or `None` where the key is removed.
pub(super) type Value = Option<Arc<[u8]>>;

/// All keys and their values.
type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The records in a file.
#[derive(Default)]
pub(super) struct Records {
    /// What the process reads.
    pub(super) now: Map,
    /// What is on the disk for certain.
    durable: Map,
    /// What the process wrote since the last sync.
    unsynced: Vec<Unsynced<(Vec<u8>, Value)>>,
    /// How many of those it has flushed.
    flushed: usize,
    /// The length of the file.
    pub(super) length: u64,
    /// A crash damaged it.
    pub(super) is_damaged: bool,
}

impl Records {
    pub(super) fn write(&mut self, call: u64, key: &[u8], value: Value) {
        let change = (key.to_vec(), value);
        apply(&mut self.now, &change);
        self.unsynced.push(Unsynced { call, change });
    }

    /// How many bytes a flush writes.
    pub(super) fn unflushed_bytes(&self) -> u64 {
        let bytes = |(key, value): &(Vec<u8>, Value)| key.len() + value.as_ref().map_or(0, |value| value.len()) + 16;
        self.unsynced[self.flushed..].iter().map(|write| bytes(&write.change) as u64).sum()
    }

    pub(super) fn flush(&mut self) {
        self.length += self.unflushed_bytes();
        self.flushed = self.unsynced.len();
    }

    pub(super) fn sync(&mut self) {
        for Unsynced { change, .. } in self.unsynced.drain(..std::mem::take(&mut self.flushed)) {
            apply(&mut self.durable, &change);
        }
    }

    /// The process ends. Of what it had not flushed, sled's threads may have written any part.
    pub(super) fn kill(&mut self, rng: &mut Rng) {
        let flushed = std::mem::take(&mut self.flushed);
        let mut at = 0;
        self.unsynced.retain(|_| {
            at += 1;
            at <= flushed || rng.bool()
        });
        self.flushed = self.unsynced.len();
        self.now.clone_from(&self.durable);
        for write in &self.unsynced {
            apply(&mut self.now, &write.change);
        }
    }

    /// A power cut. It can leave the file so that sled does not open it.
    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        self.is_damaged |= !self.unsynced.is_empty() && rng.u8(..6) == 0;
        for Unsynced { call, change } in self.unsynced.drain(..) {
            if cut.keeps(rng, call) {
                apply(&mut self.durable, &change);
            }
        }
        self.flushed = 0;
        self.now.clone_from(&self.durable);
    }
}

fn apply(map: &mut Map, (key, value): &(Vec<u8>, Value)) {
    match value {
        Some(value) => map.insert(key.clone(), Arc::clone(value)),
        None => map.remove(key),
    };
}
