//! The records of a simulated tree, with only the promises that sled makes.
//!
//! Until a flush, a kill may lose a write; until a later sync of the file, a power cut may. A crash keeps any of the writes
//! that it may lose, for example the number of a batch without the rest of it.

use std::{collections::BTreeMap, sync::Arc};

use fastrand::Rng;

use super::{
    cut::Cut,
    kept::{Kept, Writes},
};

type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;

#[derive(Default)]
pub(super) struct Records {
    pub(super) kept: Kept<Map, Writes<Vec<u8>, Arc<[u8]>>>,
    /// How many of the unsynced changes the process has flushed.
    flushed: usize,
    pub(super) length: u64,
    /// Whether a crash damaged the records.
    pub(super) is_damaged: bool,
}

impl Records {
    pub(super) fn unflushed_bytes(&self) -> u64 {
        let unflushed = self.kept.unsynced[self.flushed..].iter().flat_map(|unsynced| &unsynced.change);
        unflushed.map(|(key, value)| (key.len() + value.as_ref().map_or(0, |value| value.len()) + 16) as u64).sum()
    }

    pub(super) fn flush(&mut self) {
        self.length += self.unflushed_bytes();
        self.flushed = self.kept.unsynced.len();
    }

    pub(super) fn sync(&mut self) {
        self.kept.sync(std::mem::take(&mut self.flushed));
    }

    /// The process ends. sled's threads may have written any part of the unflushed changes.
    pub(super) fn kill(&mut self, rng: &mut Rng) {
        let mut flushed = (0..self.flushed).map(|_| true);
        self.kept.unsynced.retain(|_| flushed.next().unwrap_or_else(|| rng.bool()));
        self.flushed = self.kept.unsynced.len();
        self.kept.read_again();
    }

    /// A power cut. It may damage the file so that sled cannot open it.
    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        self.is_damaged |= !self.kept.unsynced.is_empty() && rng.u8(..6) == 0;
        self.flushed = 0;
        self.kept.cut(cut, rng);
    }
}
