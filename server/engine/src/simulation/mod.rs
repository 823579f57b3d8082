//! A disk in memory that crashes, fails, fills up and loses unsynced writes, as its seed decides.
//!
//! An engine on a [`SimulatedDisk`] starts no threads: [`Database::step`](crate::Database::step) does the work of one of its
//! [`Worker`]s. It reads only the clock that it is given. So a run depends only on its seed, and a process makes thousands of
//! runs in a few seconds.
//!
//! The disk keeps synced and unsynced changes apart. A killed process loses neither ([`Crash::Kill`]). A power cut keeps any
//! part of the unsynced writes, in sectors of 512 bytes, and any of the unsynced names ([`Crash::PowerCut`]). After a failed
//! sync, the writes before it may never reach the disk although the process still reads them.
//!
//! sled cannot run on this disk. A simulated tree replaces it, which promises only what the engine needs from sled.

mod content;
mod cut;
mod disk;
mod kept;
mod planted;
mod records;
mod state;
mod steps;
mod trace;
mod tree;

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub(crate) use self::planted::is_planted;
use self::state::State;
pub use self::{
    planted::{Planted, plant},
    steps::{Worker, check_journal, restore},
};

/// How a process ends unexpectedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The disk loses nothing.
    Kill,
    /// The disk keeps any part of the unsynced changes.
    PowerCut,
}

/// A disk in memory. All clones are the same disk.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    /// An empty disk. Its seed decides everything random.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Crashes the process after this many further calls. From then on all its calls fail and have no effect.
    pub fn crash_after(&self, calls: u64) {
        let mut state = self.lock();
        state.crash_at = Some(state.trace.calls + 1 + calls);
    }

    /// Crashes the process now.
    pub fn crash(&self) {
        self.lock().is_off = true;
    }

    /// Whether the process has crashed.
    pub fn has_crashed(&self) -> bool {
        self.lock().is_off
    }

    /// Restarts the machine after a crash. Nothing of the process may remain.
    pub fn restart(&self, crash: Crash) {
        self.lock().restart(crash);
    }

    /// From now on, the calls with these numbers each fail with a chance of one in `one_in`. The next call has number 0.
    pub fn fail(&self, calls: Range<u64>, one_in: u64) {
        let mut state = self.lock();
        let next = state.trace.calls + 1;
        state.failing = (next + calls.start..next + calls.end, one_in.max(1));
    }

    /// Ends all failures, and makes room without limit.
    pub fn mend(&self) {
        let mut state = self.lock();
        (state.failing, state.room) = ((0..0, 1), None);
    }

    /// Limits the total size of the files to their present size plus this many bytes.
    pub fn leave_room(&self, bytes: u64) {
        let mut state = self.lock();
        state.room = None;
        state.room = Some(state.used_in_all() + bytes);
    }

    /// Whether calls may fail, or the disk may be full, at this time.
    pub fn is_troubled(&self) -> bool {
        let state = self.lock();
        state.room.is_some() || !state.failing.0.is_empty() && state.trace.calls < state.failing.0.end
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.lock().trace.calls
    }

    /// How many calls failed only by chance.
    pub fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// A hash of all calls, outcomes and notes. It distinguishes two runs.
    pub fn trace_hash(&self) -> u64 {
        self.lock().trace.hash
    }

    /// Adds a line to the log of calls.
    pub fn note(&self, note: impl Into<String>) {
        self.lock().trace.note(format!("        {}", note.into()));
    }

    /// The last calls and notes, one per line.
    pub fn story(&self) -> String {
        self.lock().trace.story()
    }

    /// Whether there is a file or directory of this path.
    pub fn has(&self, path: &Path) -> bool {
        self.lock().exists(path)
    }

    /// The files in a directory, and their lengths.
    pub fn files(&self, directory: &Path) -> Vec<(PathBuf, u64)> {
        let state = self.lock();
        let Ok(names) = state.find(directory).and_then(|node| state.names(node)) else { return Vec::new() };
        let file = |node: &usize| state.file(*node).map(|file| file.length()).ok();
        names.now.iter().filter_map(|(name, node)| Some((directory.join(name), file(node)?))).collect()
    }

    /// Cuts off a file that is not in use, as a person or another program may. Returns a function that restores it, if the
    /// file exists.
    pub fn cut_off(&self, path: &Path, length: u64) -> Option<impl FnOnce() + use<>> {
        let mut state = self.lock();
        state.trace.note(format!("{} is cut off at {length} bytes", path.display()));
        let (node, call) = (state.find(path).ok()?, state.trace.calls);
        let content = &mut state.file_mut(node).ok()?.content;
        let whole = content.clone();
        content.set_length(call, usize::try_from(length).ok()?);
        if is_planted(Planted::CutAccepted) && length >= 16 {
            // Its head says that it was never longer.
            content.write(call, 8, &length.to_le_bytes());
        }
        let disk = self.clone();
        Some(move || {
            if let Ok(file) = disk.lock().file_mut(node) {
                file.content = whole;
            }
        })
    }

    /// Flips a bit of a file that is not in use. A second call flips it back.
    pub fn flip_bit(&self, path: &Path, bit: usize) {
        let mut state = self.lock();
        if let Ok(node) = state.find(path)
            && let Ok(file) = state.file_mut(node)
        {
            file.content.flip_bit(bit);
        }
    }
}
