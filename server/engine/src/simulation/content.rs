//! A file's content: for the running process, and for a start after a power cut.

use fastrand::Rng;

use super::{
    cut::Cut,
    kept::{Change, Kept, Unsynced},
};

/// The unit that a disk writes as a whole.
const SECTOR: usize = 512;

pub(super) type Content = Kept<Vec<u8>, Edit>;

#[derive(Clone)]
pub(super) enum Edit {
    /// These bytes, then zeros up to `end`: a journal writes many zeros.
    Write {
        at: usize,
        bytes: Vec<u8>,
        end: usize,
    },
    SetLength(usize),
}

impl Content {
    pub(super) fn write(&mut self, call: u64, at: usize, bytes: &[u8]) {
        let filled = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.change(call, Edit::Write { at, bytes: bytes[..filled].to_vec(), end: at + bytes.len() });
    }

    pub(super) fn set_length(&mut self, call: u64, length: usize) {
        if self.now.len() != length {
            self.change(call, Edit::SetLength(length));
        }
    }

    /// A failed sync. Some writes reach the disk. The kernel counts the others as written: the process still reads them, but
    /// no later sync writes them. A change of length is not lost: as for names, a later sync makes it durable, because the
    /// file system has a journal for both.
    pub(super) fn fail_sync(&mut self, rng: &mut Rng) {
        let mut lengths = Vec::new();
        for edit in self.unsynced.drain(..) {
            match edit.change {
                Edit::SetLength(_) => lengths.push(edit),
                Edit::Write { .. } if rng.bool() => edit.change.apply(&mut self.durable),
                Edit::Write { .. } => {}
            }
        }
        self.unsynced = lengths;
    }

    /// A power cut, which may keep only part of a change.
    pub(super) fn tear(&mut self, cut: Cut, rng: &mut Rng) {
        for Unsynced { call, change } in self.unsynced.drain(..) {
            match cut.keeps(rng, call) {
                true if cut.tears(rng) => change.apply_torn(&mut self.durable, rng),
                true => change.apply(&mut self.durable),
                // A new length can reach the disk before the bytes.
                false if cut.tears(rng) => grow(&mut self.durable, change.end()),
                false => {}
            }
        }
        self.now.clone_from(&self.durable);
    }

    /// Changes a bit on the disk.
    pub(super) fn flip_bit(&mut self, bit: usize) {
        for bytes in [&mut self.now, &mut self.durable] {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

impl Change<Vec<u8>> for Edit {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, end, .. } => self.apply_part(content, *at, *end),
            Self::SetLength(length) => content.resize(*length, 0),
        }
    }
}

impl Edit {
    /// The minimum length of the file after this change.
    fn end(&self) -> usize {
        match self {
            Self::Write { end, .. } => *end,
            Self::SetLength(_) => 0,
        }
    }

    /// Applies some sectors of a write.
    fn apply_torn(&self, content: &mut Vec<u8>, rng: &mut Rng) {
        let Self::Write { at, .. } = self else { return self.apply(content) };
        let mut start = *at;
        while start < self.end() {
            let end = self.end().min((start / SECTOR + 1) * SECTOR);
            if rng.bool() {
                self.apply_part(content, start, end);
            }
            start = end;
        }
    }

    fn apply_part(&self, content: &mut Vec<u8>, start: usize, end: usize) {
        let Self::Write { at, bytes, .. } = self else { return };
        grow(content, end);
        let filled = bytes.get(start - at..).unwrap_or_default();
        let (copied, zeros) = content[start..end].split_at_mut(filled.len().min(end - start));
        copied.copy_from_slice(&filled[..copied.len()]);
        zeros.fill(0);
    }
}

fn grow(content: &mut Vec<u8>, length: usize) {
    if content.len() < length {
        content.resize(length, 0);
    }
}
