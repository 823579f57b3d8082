//! The applier: brings what is durable, shown and answered to the tree.
//!
//! It is a thread of its own. It lets batches gather in the overlay, because they write many of the same keys, and then
//! applies all of them together, in the order of their keys.

use std::{
    error::Error,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    overlay::Overlay,
    stop::Stop,
    tree::TreeFile,
    worker::{Work, Worker},
    writes::Writes,
};

/// How long batches gather at most.
const GATHERED_FOR: Duration = Duration::from_secs(1);
/// After about this many bytes the tree writes. By itself it would at 8 MiB, with so much to write at once that the journal's
/// next syncs wait for the disk. Each write wakes all of sled's threads.
const FLUSHED_AT_BYTES: usize = 256 * 1024;

/// The committer's handle of the applier. Dropping it ends the applier, once everything is applied.
pub(crate) struct Applier {
    shared: Arc<Shared>,
    pub(crate) worker: Worker<Arc<Shared>>,
}

/// What both sides of the applier know.
pub(crate) struct Shared {
    overlay: Overlay,
    file: Arc<TreeFile>,
    stop: Arc<Stop>,
    state: Mutex<State>,
    changed: Condvar,
    /// How many bytes gather before they are applied. Twice as many may be in the overlay.
    gathered_bytes: usize,
}

#[derive(Default)]
struct State {
    /// The size of the writes that have gathered, also of those that later ones have replaced.
    gathered: usize,
    /// Since when there are any.
    since: Option<Instant>,
    /// What is left of the writes that are being applied.
    left: usize,
    wants_sync: bool,
    /// The last entry that the tree had at its last sync.
    synced: u64,
    is_closing: bool,
    has_ended: bool,
}

impl Applier {
    /// Starts the applier. The overlay may hold this many bytes.
    pub(crate) fn start(
        overlay: Overlay,
        file: Arc<TreeFile>,
        stop: Arc<Stop>,
        overlay_bytes: usize,
        has_threads: bool,
    ) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { overlay, file, stop, state, changed, gathered_bytes: overlay_bytes / 2 });
        let (worker, thread) = Worker::start("applier", has_threads, Arc::clone(&shared))?;
        Ok((Self { shared, worker }, thread))
    }

    /// Reports that `bytes` more are in the overlay. Waits while there are too many.
    pub(crate) fn gathered(&self, bytes: usize) {
        let mut state = self.shared.lock();
        let is_first = state.gathered == 0;
        if is_first {
            state.since = Some(Instant::now());
        }
        state.gathered += bytes;
        if is_first || state.gathered >= self.shared.gathered_bytes {
            self.shared.changed.notify_all();
        }
        while state.gathered + state.left > 2 * self.shared.gathered_bytes && !state.has_ended {
            state = self.wait(state);
        }
    }

    /// How many bytes wait for the tree.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.shared.lock();
        state.gathered + state.left
    }

    /// Asks for a sync of the tree after all batches so far.
    pub(crate) fn begin_sync(&self) {
        self.shared.lock().wants_sync = true;
        self.shared.changed.notify_all();
    }

    /// The last entry that the tree had at its last sync; 0 before the first sync.
    pub(crate) fn synced(&self) -> u64 {
        self.shared.lock().synced
    }

    /// Waits until the tree has all batches so far on the disk. False if the engine has stopped.
    #[must_use]
    pub(crate) fn sync(&self) -> bool {
        self.begin_sync();
        let mut state = self.shared.lock();
        while state.wants_sync && !state.has_ended {
            state = self.wait(state);
        }
        !state.has_ended
    }

    /// Waits for the applier to get on.
    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        match self.worker {
            Worker::Thread => self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Worker::Stepped(_) => {
                drop(state);
                self.worker.step();
                self.shared.lock()
            }
        }
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
    }
}

/// What failed, and why.
type Failure = (&'static str, Box<dyn Error>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is work. False if there will be none.
    fn wait_for_work(&self) -> bool {
        let mut state = self.lock();
        loop {
            let waits = state.since.map(|since| GATHERED_FOR.saturating_sub(since.elapsed()));
            if state.wants_sync || state.gathered >= self.gathered_bytes || waits.is_some_and(|waits| waits.is_zero()) {
                return true;
            }
            if state.is_closing {
                return state.gathered > 0;
            }
            state = match waits {
                Some(waits) => self.changed.wait_timeout(state, waits).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Applies what has gathered, and syncs the tree if that is wanted. False if the engine has stopped.
    fn go_on(&self) -> bool {
        let apply = || self.apply().map_err(|(what, error)| self.stop.stop(what, &*error));
        let done = self.stop.on_panic(apply).is_some_and(|outcome| outcome.is_ok());
        if !done {
            self.lock().has_ended = true;
            self.changed.notify_all();
        }
        done
    }

    fn apply(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        let wants_sync = state.wants_sync;
        state.left = std::mem::take(&mut state.gathered);
        state.since = None;
        drop(state);
        let (last, taken) = self.overlay.take();
        self.apply_all(&taken)?;
        self.overlay.applied();
        if wants_sync {
            self.file.sync().map_err(|error| ("the tree's file could not be synced", error.into()))?;
        }
        let mut state = self.lock();
        state.left = 0;
        if wants_sync {
            (state.wants_sync, state.synced) = (false, last);
        }
        self.changed.notify_all();
        Ok(())
    }

    fn apply_all(&self, writes: &Writes) -> Result<(), Failure> {
        let flush = || self.overlay.tree.store.flush().map_err(|error| ("the tree could not be flushed", error.into()));
        let mut unflushed = 0;
        for (key, value) in self.overlay.tree.in_order(writes) {
            let applied = self.overlay.tree.apply_one(key, value);
            applied.map_err(|error| ("a batch could not be applied to the tree", error.into()))?;
            unflushed += key.len() + value.map_or(0, <[u8]>::len);
            if unflushed > FLUSHED_AT_BYTES {
                flush()?;
                let mut state = self.lock();
                state.left = state.left.saturating_sub(std::mem::take(&mut unflushed));
                self.changed.notify_all();
            }
        }
        flush()
    }
}

impl Work for Arc<Shared> {
    fn wait(&mut self) -> bool {
        self.wait_for_work() && self.go_on()
    }

    fn step(&mut self) -> bool {
        let state = self.lock();
        let has_work = !state.has_ended && (state.gathered > 0 || state.wants_sync);
        drop(state);
        if has_work {
            self.go_on();
        }
        has_work
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{
        disk::{Disk, SystemDisk},
        layout::tests::Plain,
        tree::Tree,
    };

    /// An applier without a thread, that may let 100 bytes gather. What it applies, it applies while somebody waits for it.
    fn applier() -> (tempfile::TempDir, Overlay, Applier) {
        let directory = tempfile::tempdir().unwrap();
        let (disk, path): (Arc<dyn Disk>, _) = (SystemDisk::shared(), directory.path().join("tree"));
        let overlay = Overlay::new(Tree::open(&SystemDisk, &path, &Plain::shared()).unwrap(), 0);
        let file = Arc::new(TreeFile::open(&disk, &path).unwrap());
        let stop = Arc::new(Stop { on_stop: Box::new(|what, _| panic!("{what}")), has_stopped: false.into() });
        let (applier, thread) = Applier::start(overlay.clone(), file, stop, 200, false).unwrap();
        assert!(thread.is_none());
        (directory, overlay, applier)
    }

    #[test]
    fn twice_the_limit_gathers_and_whoever_brings_more_waits_until_it_is_applied() {
        let (_directory, _overlay, applier) = applier();
        for (more, gathered) in [(60, 60), (60, 120), (60, 180), (20, 200)] {
            applier.gathered(more);
            let state = applier.shared.lock();
            assert_eq!((state.gathered, state.left), (gathered, 0));
            assert!(state.since.is_some());
        }
        applier.gathered(1);
        let state = applier.shared.lock();
        assert_eq!((state.gathered, state.left, state.since), (0, 0, None));
    }

    #[test]
    fn a_step_applies_what_has_gathered_or_syncs_and_without_either_there_is_none() {
        let (_directory, overlay, applier) = applier();
        assert!(!applier.worker.step());
        overlay.push(7, Writes::from([(b"key".to_vec(), Some(b"value".to_vec()))]));
        applier.gathered(8);
        assert!(applier.worker.step());
        assert_eq!(overlay.tree.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(applier.synced(), 0);
        assert!(!applier.worker.step());
        applier.begin_sync();
        assert!(applier.worker.step());
        assert_eq!(applier.synced(), 7);
        assert!(!applier.worker.step());
        assert!(applier.sync());
    }

    #[test]
    fn whoever_brings_more_waits_for_what_is_being_applied_too() {
        let (_directory, _overlay, applier) = applier();
        applier.shared.lock().left = 140;
        applier.gathered(60);
        assert_eq!(applier.shared.lock().gathered, 60);
        applier.gathered(1);
        let state = applier.shared.lock();
        assert_eq!((state.gathered, state.left), (0, 0));
    }

    #[test]
    fn the_thread_has_work_when_enough_or_long_enough_has_gathered_or_a_sync_is_wanted_and_at_the_end() {
        let (_directory, _overlay, applier) = applier();
        let has_work = |state| {
            *applier.shared.lock() = state;
            applier.shared.wait_for_work()
        };
        let now = Some(Instant::now());
        let begun = Instant::now();
        assert!(has_work(State { gathered: 100, since: now, ..State::default() }));
        assert!(has_work(State { wants_sync: true, ..State::default() }));
        assert!(has_work(State { gathered: 1, since: now, is_closing: true, ..State::default() }));
        assert!(!has_work(State { is_closing: true, ..State::default() }));
        assert!(begun.elapsed() < GATHERED_FOR);
        assert!(has_work(State { gathered: 1, since: Instant::now().checked_sub(GATHERED_FOR), ..State::default() }));
        assert!(has_work(State { gathered: 1, since: now, ..State::default() }));
        assert!(begun.elapsed() >= GATHERED_FOR);
    }

    #[test]
    fn the_thread_hears_of_the_first_batch_and_of_the_one_that_is_enough() {
        let (_directory, _overlay, applier) = applier();
        let hears = |gathered_before, more| {
            let shared = Arc::clone(&applier.shared);
            *shared.lock() = State { gathered: gathered_before, ..State::default() };
            let (waiting, is_waiting) = std::sync::mpsc::channel();
            let thread = thread::spawn(move || {
                let state = shared.lock();
                waiting.send(()).unwrap();
                !shared.changed.wait_timeout(state, Duration::from_millis(500)).unwrap().1.timed_out()
            });
            is_waiting.recv().unwrap();
            // This takes the lock, which the thread gives up when it waits.
            applier.gathered(more);
            thread.join().unwrap()
        };
        assert!(hears(0, 1));
        assert!(hears(50, 50));
        assert!(!hears(50, 49));
    }
}
