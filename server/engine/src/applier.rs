//! The applier: applies batches to the tree that are durable, shown and answered.
//!
//! It is a worker of its own, so that the next batch becomes durable while the tree takes this one.

use std::{
    error::Error,
    io,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use crate::{
    overlay::{Batch, Overlay},
    stop::Stop,
    tree::TreeFile,
    worker::Worker,
    writes::bytes_of,
};

/// How many batches may wait besides the one that is being applied, before the next batch waits too.
const WAITING: usize = 1;
/// After about this many bytes the tree writes. By itself it would at 8 MiB, with so much to write at once that the journal's
/// next syncs wait for the disk.
const FLUSHED_AT_BYTES: usize = 64 * 1024;

/// Sends work to the applier. The applier ends, with all batches applied, when this is dropped.
pub(crate) struct Applier(Worker<Work>);

enum Work {
    Apply(Arc<Batch>),
    /// Make the tree durable, and answer.
    Sync(mpsc::SyncSender<()>),
}

impl Applier {
    /// Starts the applier.
    pub(crate) fn start(
        overlay: Overlay,
        file: Arc<TreeFile>,
        stop: Arc<Stop>,
        has_threads: bool,
    ) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        let mut unflushed = 0;
        let work = move |work| match stop.on_panic(|| apply(&overlay, &file, &mut unflushed, work)) {
            Some(Ok(())) => true,
            Some(Err((what, error))) => {
                stop.stop(what, &*error);
                false
            }
            None => false,
        };
        let (worker, thread) = Worker::start("applier", WAITING, has_threads, Box::new(work))?;
        Ok((Self(worker), thread))
    }

    /// Has a batch applied after those before it. Waits while too many of them wait.
    pub(crate) fn apply(&self, batch: Arc<Batch>) {
        // The applier ends early only if the engine has stopped.
        let _ = self.0.send(Work::Apply(batch));
    }

    /// Waits until the tree has all batches so far on the disk. False if the engine has stopped.
    #[must_use]
    pub(crate) fn sync(&self) -> bool {
        let (done, synced) = mpsc::sync_channel(1);
        let is_sent = self.0.send(Work::Sync(done));
        self.0.finish();
        is_sent && synced.recv().is_ok()
    }

    /// Where there are no threads, does a piece of work. False if none waits.
    #[cfg(feature = "simulation")]
    pub(crate) fn step(&self) -> bool {
        self.0.step()
    }
}

/// What failed, and why.
type Failure = (&'static str, Box<dyn Error>);

/// Does a piece of work.
fn apply(overlay: &Overlay, file: &TreeFile, unflushed: &mut usize, work: Work) -> Result<(), Failure> {
    let flush = || overlay.tree.flush().map_err(|error| ("the tree could not be flushed", error.into()));
    match work {
        Work::Apply(batch) => {
            let applied = overlay.tree.apply(&batch.writes);
            applied.map_err(|error| ("a batch could not be applied to the tree", error.into()))?;
            overlay.applied(batch.number);
            *unflushed += bytes_of(&batch.writes);
            if *unflushed > FLUSHED_AT_BYTES {
                flush()?;
                *unflushed = 0;
            }
        }
        Work::Sync(done) => {
            flush()?;
            file.sync().map_err(|error| ("the tree's file could not be synced", error.into()))?;
            *unflushed = 0;
            // The other end waits, or its thread has panicked.
            let _ = done.send(());
        }
    }
    Ok(())
}
