//! The applier: applies batches to the tree that are durable, shown and answered.
//!
//! It has a thread of its own, so that the next batch becomes durable while the tree takes this one.

use std::{
    error::Error,
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use crate::{
    overlay::{Batch, Overlay},
    stop::Stop,
    tree::TreeFile,
    writes::bytes_of,
};

/// How many batches may wait besides the one that is being applied, before the next batch waits too.
const WAITING: usize = 1;
/// After about this many bytes the tree writes. By itself it would at 8 MiB, with so much to write at once that the journal's
/// next syncs wait for the disk.
const FLUSHED_AT_BYTES: usize = 64 * 1024;

/// Sends work to the applier's thread. The thread ends, with all batches applied, when this is dropped.
pub(crate) struct Applier(mpsc::SyncSender<Work>);

enum Work {
    Apply(Arc<Batch>),
    /// Make the tree durable, and answer.
    Sync(mpsc::SyncSender<()>),
}

impl Applier {
    /// Starts the thread.
    pub(crate) fn start(overlay: Overlay, file: Arc<TreeFile>, stop: Arc<Stop>) -> io::Result<(Self, JoinHandle<()>)> {
        let (work, waiting) = mpsc::sync_channel(WAITING);
        let work_on = move || {
            let outcome = stop.on_panic(|| run(&overlay, &file, waiting));
            if let Some(Err((what, error))) = outcome {
                stop.stop(what, &*error);
            }
        };
        let thread = thread::Builder::new().name("applier".into()).spawn(work_on)?;
        Ok((Self(work), thread))
    }

    /// Has a batch applied after those before it. Waits while too many of them wait.
    pub(crate) fn apply(&self, batch: Arc<Batch>) {
        // The thread ends early only if the engine has stopped.
        let _ = self.0.send(Work::Apply(batch));
    }

    /// Waits until the tree has all batches so far on the disk. False if the engine has stopped.
    #[must_use]
    pub(crate) fn sync(&self) -> bool {
        let (done, synced) = mpsc::sync_channel(1);
        self.0.send(Work::Sync(done)).is_ok() && synced.recv().is_ok()
    }
}

/// What failed, and why.
type Failure = (&'static str, Box<dyn Error>);

/// The thread: works until nobody can send work any more.
fn run(overlay: &Overlay, file: &TreeFile, waiting: mpsc::Receiver<Work>) -> Result<(), Failure> {
    let flush = || overlay.tree.flush().map_err(|error| ("the tree could not be flushed", error.into()));
    let mut unflushed = 0;
    for work in waiting {
        match work {
            Work::Apply(batch) => {
                let applied = overlay.tree.apply(&batch.writes);
                applied.map_err(|error| ("a batch could not be applied to the tree", error.into()))?;
                overlay.applied(batch.number);
                unflushed += bytes_of(&batch.writes);
                if unflushed > FLUSHED_AT_BYTES {
                    flush()?;
                    unflushed = 0;
                }
            }
            Work::Sync(done) => {
                flush()?;
                file.sync().map_err(|error| ("the tree's file could not be synced", error.into()))?;
                unflushed = 0;
                // The other end waits, or its thread has panicked.
                let _ = done.send(());
            }
        }
    }
    Ok(())
}
