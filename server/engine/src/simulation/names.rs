//! The names in a directory: for the process that runs, and for a start after a power cut.

use std::{collections::BTreeMap, ffi::OsString};

use fastrand::Rng;

use super::cut::{Cut, Unsynced};

/// The names in a directory, each with the number of its file or directory.
#[derive(Default)]
pub(super) struct Names {
    /// What the process sees.
    pub(super) now: BTreeMap<OsString, usize>,
    /// What is on the disk for certain.
    durable: BTreeMap<OsString, usize>,
    /// What the process did since the last sync.
    unsynced: Vec<Unsynced<Change>>,
}

/// Names that one call sets or removes, all or none.
type Change = Vec<(OsString, Option<usize>)>;

impl Names {
    pub(super) fn change(&mut self, call: u64, change: Change) {
        apply(&mut self.now, &change);
        self.unsynced.push(Unsynced { call, change });
    }

    pub(super) fn sync(&mut self) {
        for Unsynced { change, .. } in self.unsynced.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// A sync that fails after some of the changes. A later one makes the others durable.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        let kept = rng.usize(..=self.unsynced.len());
        for Unsynced { change, .. } in self.unsynced.drain(..kept) {
            apply(&mut self.durable, &change);
        }
    }

    /// A power cut.
    pub(super) fn cut(&mut self, cut: Cut, rng: &mut Rng) {
        for Unsynced { call, change } in self.unsynced.drain(..) {
            if cut.keeps(rng, call) {
                apply(&mut self.durable, &change);
            }
        }
        self.now.clone_from(&self.durable);
    }
}

fn apply(names: &mut BTreeMap<OsString, usize>, change: &Change) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}
