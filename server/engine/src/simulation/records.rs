//! The records of a simulated tree: what sled promises of them, and no more.
//!
//! A write is in the process until a flush, and for a power cut to lose until a sync of the file after that. A crash keeps any
//! of the writes that are not safe from it, in their order: also the number of a batch without the rest of it.

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
    /// How many of the changes since the last sync the process has flushed.
    flushed: usize,
    pub(super) length: u64,
    /// A crash damaged it.
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

    /// The process ends. Of what it had not flushed, sled's threads may have written any part.
    pub(super) fn kill(&mut self, rng: &mut Rng) {
        let mut flushed = (0..self.flushed).map(|_| true);
        self.kept.unsynced.retain(|_| flushed.next().unwrap_or_else(|| rng.bool()));
        self.flushed = self.kept.unsynced.len();
        self.kept.read_again();
    }

    /// A power cut. It can leave the file so that sled does not open it.
    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        self.is_damaged |= !self.kept.unsynced.is_empty() && rng.u8(..6) == 0;
        self.flushed = 0;
        self.kept.cut(cut, rng);
    }
}
