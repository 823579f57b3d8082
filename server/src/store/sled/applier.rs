//! The applier: what brings batches to sled that are durable already, and shown and answered.
//!
//! It has a thread of its own, so that the next batch becomes durable while sled takes this one. What makes a batch whole is
//! the journal; after a crash all that sled may lack is applied again.

use std::{
    fs::File,
    io,
    sync::{Arc, mpsc},
    thread,
};

use super::{
    journal::Writes,
    keys,
    records::{Batch, Records},
    squeezed,
    stop::{or_stop, stop},
};

/// How many batches may wait besides the one that is being applied, before the making of another waits too.
const WAITING: usize = 1;
/// After about so many bytes of records sled writes. By itself it would when it has 8 MiB, with so much to write at once that
/// the journal's next syncs wait for the disk.
const WRITTEN_AT_BYTES: usize = 64 * 1024;
/// About how many bytes of journal entries are applied at a stroke.
const REPLAYED_BYTES: usize = 8 * 1024 * 1024;

/// The way to the applier. It ends when this is dropped, with all applied.
pub(super) struct Applier {
    work: Option<mpsc::SyncSender<Work>>,
    thread: Option<thread::JoinHandle<()>>,
}

enum Work {
    Apply(Arc<Batch>),
    /// Make all of sled durable, and say so.
    Sync(mpsc::SyncSender<()>),
}

impl Applier {
    /// Starts the thread. `engine` is sled's own file, to sync what sled only hands to the kernel.
    pub(super) fn start(records: Records, engine: Arc<File>) -> io::Result<Self> {
        let (work, waiting) = mpsc::sync_channel(WAITING);
        let run = move || {
            let mut unwritten = 0;
            for work in waiting {
                match work {
                    Work::Apply(batch) => {
                        apply(records.tree(), &batch.writes)
                            .unwrap_or_else(|error| stop("a batch could not be applied", &error));
                        records.applied(batch.number);
                        unwritten += bytes_of(&batch.writes);
                        if unwritten > WRITTEN_AT_BYTES {
                            flush(records.tree());
                            unwritten = 0;
                        }
                    }
                    Work::Sync(done) => {
                        flush(records.tree());
                        unwritten = 0;
                        engine.sync_all().unwrap_or_else(|error| stop("sled's file could not be synced", &error));
                        // Whoever no longer waits need not know.
                        let _ = done.send(());
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("applier".into()).spawn(move || or_stop(run))?;
        Ok(Self { work: Some(work), thread: Some(thread) })
    }

    /// Has a batch applied after those before it. Waits where too many of them wait.
    pub(super) fn apply(&self, batch: Arc<Batch>) {
        self.ask(Work::Apply(batch));
    }

    /// Waits until all batches so far are applied and sled has them on the disk.
    pub(super) fn sync(&self) {
        let (done, synced) = mpsc::sync_channel(1);
        self.ask(Work::Sync(done));
        // Nobody answers only where the process is ending.
        let _ = synced.recv();
    }

    fn ask(&self, work: Work) {
        if let Some(applier) = &self.work {
            // Nobody takes it only where the process is ending.
            let _ = applier.send(work);
        }
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has ended the process already.
            let _ = thread.join();
        }
    }
}

/// Has sled write what it holds back. That it is on the disk is another matter.
fn flush(tree: &sled::Tree) {
    tree.flush().unwrap_or_else(|error| stop("sled could not be flushed", &error));
}

fn bytes_of(writes: &Writes) -> usize {
    writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
}

/// Applies journal entries to the tree, many at a stroke: what they write over and over, counts and balances, is then
/// written once. For a tree that nobody reads yet.
pub(super) struct Replay<'t> {
    tree: &'t sled::Tree,
    writes: Writes,
    bytes: usize,
    last: u64,
}

impl<'t> Replay<'t> {
    pub(super) fn new(tree: &'t sled::Tree) -> Self {
        Self { tree, writes: Writes::new(), bytes: 0, last: 0 }
    }

    pub(super) fn add(&mut self, number: u64, writes: Writes) -> Result<(), sled::Error> {
        self.last = number;
        self.bytes += bytes_of(&writes);
        self.writes.extend(writes);
        if self.bytes > REPLAYED_BYTES { self.finish() } else { Ok(()) }
    }

    /// Applies what has been added, with the number of the last entry.
    pub(super) fn finish(&mut self) -> Result<(), sled::Error> {
        if self.writes.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        self.writes.insert(keys::APPLIED.to_vec(), Some(self.last.to_string().into_bytes()));
        apply(self.tree, &std::mem::take(&mut self.writes))
    }
}

/// Applies a batch to the tree. What makes it whole is the journal: after a crash within it, it is applied again. sled's
/// own batches are whole too, but each seals a buffer and wakes all of sled's threads to write it, and holds up readers.
///
/// A reader who began before the batch was shown may see a part of it, all of which is durable; so what names a record is
/// there only while the record is.
pub(super) fn apply(tree: &sled::Tree, writes: &Writes) -> Result<(), sled::Error> {
    let mut writes: Vec<_> = writes.iter().collect();
    writes.sort_by_key(|(key, value)| turn(key, value.is_some()));
    for (key, value) in writes {
        match value {
            Some(value) => {
                tree.insert(key, &*squeezed::squeeze(key, value))?;
            }
            None => drop(tree.remove(key)?),
        }
    }
    Ok(())
}

/// When a write of a batch is applied, among the others.
fn turn(key: &[u8], is_there: bool) -> u8 {
    match (keys::names_others(key), is_there) {
        // All that it says is applied.
        _ if key == keys::APPLIED => 6,
        (true, false) => 0,
        (false, true) => 1,
        // Marks are on places, and a count is of what is there.
        (true, true) if key.starts_with(keys::LISTS) => 2,
        (true, true) if !key.starts_with(keys::COUNTS) => 3,
        (true, true) => 4,
        (false, false) => 5,
    }
}
