//! The applier: brings batches to the tree that are durable, shown and answered.
//!
//! It has a thread of its own, so that the next batch becomes durable while the tree takes this one.

use std::{
    error::Error,
    io,
    sync::{Arc, mpsc},
    thread,
};

use crate::{
    overlay::{Batch, Overlay},
    stop::Stop,
    tree::TreeFile,
    writes::bytes_of,
};

/// How many batches may wait besides the one that is being applied, before the next batch waits too.
const WAITING: usize = 1;
/// After about so many bytes the tree writes. By itself it would at 8 MiB, with so much to write at once that the journal's
/// next syncs wait for the disk.
const FLUSHED_AT_BYTES: usize = 64 * 1024;

/// The way to the applier's thread, which ends when this is dropped, with all batches applied.
pub(crate) struct Applier {
    work: Option<mpsc::SyncSender<Work>>,
    thread: Option<thread::JoinHandle<()>>,
}

enum Work {
    Apply(Arc<Batch>),
    /// Make the tree durable, and answer.
    Sync(mpsc::SyncSender<()>),
}

impl Applier {
    /// Starts the thread.
    pub(crate) fn start(overlay: Overlay, file: Arc<TreeFile>, stop: Arc<Stop>) -> io::Result<Self> {
        let (work, waiting) = mpsc::sync_channel(WAITING);
        let mut applying = Applying { overlay, file, unflushed: 0 };
        let run = move || {
            let outcome = stop.on_panic(|| applying.run(&waiting));
            if let Some(Err((what, error))) = outcome {
                stop.stop(what, &*error);
            }
        };
        let thread = thread::Builder::new().name("applier".into()).spawn(run)?;
        Ok(Self { work: Some(work), thread: Some(thread) })
    }

    /// Has a batch applied after those before it. Waits where too many of them wait.
    pub(crate) fn apply(&self, batch: Arc<Batch>) {
        self.ask(Work::Apply(batch));
    }

    /// Waits until the tree has all batches so far on the disk. False where the engine has stopped.
    #[must_use]
    pub(crate) fn sync(&self) -> bool {
        let (done, synced) = mpsc::sync_channel(1);
        self.ask(Work::Sync(done));
        synced.recv().is_ok()
    }

    fn ask(&self, work: Work) {
        if let Some(applier) = &self.work {
            // The thread ends early only where the engine has stopped.
            let _ = applier.send(work);
        }
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it has stopped the engine.
            let _ = thread.join();
        }
    }
}

/// What failed, and why.
type Failure = (&'static str, Box<dyn Error + Send + Sync>);

/// The thread's part.
struct Applying {
    overlay: Overlay,
    file: Arc<TreeFile>,
    /// How many bytes the tree was given since it was last flushed.
    unflushed: usize,
}

impl Applying {
    /// Works until nobody can ask any more.
    fn run(&mut self, waiting: &mpsc::Receiver<Work>) -> Result<(), Failure> {
        for work in waiting {
            match work {
                Work::Apply(batch) => self.apply(&batch)?,
                Work::Sync(done) => {
                    self.sync()?;
                    // The other end waits, or its thread has panicked.
                    let _ = done.send(());
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, batch: &Batch) -> Result<(), Failure> {
        let applied = self.overlay.tree().apply(&batch.writes);
        applied.map_err(|error| ("a batch could not be applied to the tree", error.into()))?;
        self.overlay.applied(batch.number);
        self.unflushed += bytes_of(&batch.writes);
        if self.unflushed > FLUSHED_AT_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.unflushed = 0;
        self.overlay.tree().flush().map_err(|error| ("the tree could not be flushed", error.into()))
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.flush()?;
        self.file.sync().map_err(|error| ("the tree's file could not be synced", error.into()))
    }
}
