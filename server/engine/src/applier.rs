//! The applier: writes durable batches, whose callers have their answers, to the tree.
//!
//! It has a thread of its own. It lets batches gather in the overlay, because they often write the same keys. Then it applies
//! all of them together, in the order of their keys.

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

/// The longest time for which batches gather.
const GATHERED_FOR: Duration = Duration::from_secs(1);
/// The tree is flushed after about this many bytes. sled would flush at 8 MiB, and such a long write delays the journal's
/// next syncs. Each flush wakes all of sled's threads.
const FLUSHED_AT_BYTES: usize = 256 * 1024;

/// The committer's handle of the applier. Dropping it ends the applier once everything is applied.
pub(crate) struct Applier {
    shared: Arc<Shared>,
    pub(crate) worker: Worker<Arc<Shared>>,
}

/// The state that both sides of the applier share.
pub(crate) struct Shared {
    overlay: Overlay,
    file: Arc<TreeFile>,
    stop: Arc<Stop>,
    state: Mutex<State>,
    changed: Condvar,
    /// How many bytes gather before they are applied. The overlay may have twice as many.
    gathered_bytes: usize,
}

#[derive(Default)]
struct State {
    /// The size of the gathered writes, including those that later writes have replaced.
    gathered: usize,
    /// When the first of the gathered writes came.
    since: Option<Instant>,
    /// The size of the writes that are being applied and not yet applied.
    left: usize,
    wants_sync: bool,
    /// The last entry that the tree had at its last sync.
    synced: u64,
    is_closing: bool,
    has_ended: bool,
}

impl Applier {
    /// Starts the applier, for an overlay of at most this many bytes.
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

    /// Reports that the overlay has `bytes` more. Waits while it has too many.
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

    /// Requests a sync of the tree after all batches so far.
    pub(crate) fn begin_sync(&self) {
        self.shared.lock().wants_sync = true;
        self.shared.changed.notify_all();
    }

    /// The last entry that the tree had at its last sync; 0 before the first sync.
    pub(crate) fn synced(&self) -> u64 {
        self.shared.lock().synced
    }

    /// Waits until a sync of the tree covers all batches so far. Returns false if the engine has stopped.
    #[must_use]
    pub(crate) fn sync(&self) -> bool {
        self.begin_sync();
        let mut state = self.shared.lock();
        while state.wants_sync && !state.has_ended {
            state = self.wait(state);
        }
        !state.has_ended
    }

    /// Waits until the applier makes progress.
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

    /// Waits until there is work. Returns false if none will come.
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

    /// Applies the gathered batches, and syncs the tree if requested. Returns false if the engine has stopped.
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

    /// An applier without a thread, which lets 100 bytes gather. It applies batches while somebody waits for it.
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
    fn batches_gather_up_to_twice_the_limit_and_the_next_one_waits_for_the_applier() {
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
    fn a_step_applies_gathered_batches_or_syncs_and_there_is_no_other() {
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
    fn a_batch_waits_also_for_the_bytes_that_are_being_applied() {
        let (_directory, _overlay, applier) = applier();
        applier.shared.lock().left = 140;
        applier.gathered(60);
        assert_eq!(applier.shared.lock().gathered, 60);
        applier.gathered(1);
        let state = applier.shared.lock();
        assert_eq!((state.gathered, state.left), (0, 0));
    }

    #[test]
    fn the_thread_works_after_enough_bytes_or_time_or_for_a_sync_or_the_end() {
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
    fn the_thread_wakes_for_the_first_batch_and_for_the_one_that_reaches_the_limit() {
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
            // This takes the lock, which the thread releases when it waits.
            applier.gathered(more);
            thread.join().unwrap()
        };
        assert!(hears(0, 1));
        assert!(hears(50, 50));
        assert!(!hears(50, 49));
    }
}
