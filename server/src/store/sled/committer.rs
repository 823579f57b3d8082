//! The committer: what writes, one batch at a time.
//!
//! It takes the changes that wait, lets each decide what it writes, and makes all of them durable with one entry in the
//! journal and one sync. Then it shows them to readers, answers all, and hands them to the applier, which brings them to
//! sled while the next batch is made. So changes have one order, each is whole or not there, and the cost of a sync is
//! shared by everyone who waited for it. The committer's thread does all of this. A change that arrives alone is committed
//! on the caller's thread instead.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{mpsc, oneshot},
    task,
};

use super::{
    applier::Applier,
    journal::{AppendError, Archivist, Journal, Retention, Writes},
    keys,
    records::{Batch, Records},
    stop::{or_stop, stop},
    view::View,
};
use crate::{
    ambient::Ambient,
    metrics::Commits,
    store::{CommitError, StoreError},
};

/// How many changes may wait; who comes after waits for a place.
const QUEUE: usize = 4096;
/// How much of the disk is kept for sled: far more than what it holds back of a few batches.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;
/// How many changes become durable with one sync. Everyone in a batch waits for all of it, so it has a bound.
const MAX_BATCH: usize = 256;

/// A change: decides what it writes, and says whom to answer.
type Decide = Box<dyn FnOnce(&mut View<'_>) -> Answer + Send>;
/// Answers whoever waits for a change, once it is known whether the batch is durable.
type Answer = Box<dyn FnOnce(bool) + Send>;

/// The way to the committer.
pub(super) struct Committer {
    writer: Arc<Mutex<Writer>>,
    /// Last, so that it is dropped last: the thread then has the writer to itself, and lets go of it before it ends.
    queue: mpsc::Sender<Decide>,
}

impl Committer {
    /// Starts the thread.
    pub(super) fn start(
        records: Records,
        files: Files,
        retention: Arc<Retention>,
        ambient: Arc<dyn Ambient>,
        metrics: Commits,
    ) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let committed_at = records.read(keys::COMMITTED_AT).map_err(std::io::Error::other)?.unwrap_or_default();
        let writer = Writer { records, files, retention, ambient, metrics, committed_at, last_batch: 0 };
        let writer = Arc::new(Mutex::new(writer));
        let at_thread = Arc::clone(&writer);
        let thread =
            thread::Builder::new().name("committer".into()).spawn(move || or_stop(|| run(&at_thread, waiting)))?;
        Ok((Self { queue, writer }, thread))
    }

    /// Makes durable what `decide` writes, all of it or, where it fails, nothing. Once it is begun or queued it will be
    /// decided, whether or not the caller still waits.
    pub(super) async fn commit<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (answer, outcome) = oneshot::channel();
        let decide: Decide = Box::new(move |view| {
            let decided = view.stage(decide);
            Box::new(move |is_durable| {
                // A conflict with another change of the batch counts only if that change is durable.
                let outcome = if is_durable {
                    decided
                } else {
                    Err(StoreError::unavailable("nothing could be written; is the disk full?").into())
                };
                // Whoever no longer waits will read it.
                let _ = answer.send(outcome);
            })
        });
        if let Some(decide) = self.commit_if_alone(decide) {
            self.queue.send(decide).await.map_err(|_| StoreError::Stopped)?;
        }
        outcome.await.map_err(|_| StoreError::Stopped)?
    }

    /// Makes a change durable on the caller's thread if no other waits: the way to the other thread and back takes about as
    /// long as half a sync. Otherwise it is given back.
    fn commit_if_alone(&self, decide: Decide) -> Option<Decide> {
        let Some(mut writer) = self.writer_if_alone() else { return Some(decide) };
        task::block_in_place(|| or_stop(|| writer.commit(vec![decide])));
        if writer.files.journal.is_long() {
            // The committer's thread begins a new file with the next change it takes, at the latest with this empty one.
            let _ = self.queue.try_send(Box::new(|_| Box::new(|_| ())));
        }
        None
    }

    /// The writer, where nobody else is at it or waits for it, nor lately was.
    fn writer_if_alone(&self) -> Option<MutexGuard<'_, Writer>> {
        // Only in such a runtime can a thread's other tasks go on elsewhere while it writes.
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread || self.queue.capacity() < QUEUE {
            return None;
        }
        self.writer.try_lock().ok().filter(|writer| writer.last_batch <= 1)
    }
}

/// Commits what waits until every way to the queue is gone.
fn run(writer: &Mutex<Writer>, mut waiting: mpsc::Receiver<Decide>) {
    let mut changes = Vec::with_capacity(MAX_BATCH);
    while waiting.blocking_recv_many(&mut changes, MAX_BATCH) > 0 {
        // A panic while it is held ends the process.
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.commit(std::mem::take(&mut changes));
        if writer.files.journal.is_long() {
            writer.rotate();
        }
    }
    writer.lock().unwrap_or_else(PoisonError::into_inner).files.applier.sync();
}

/// What the committer makes changes durable with.
pub(super) struct Files {
    pub(super) journal: Journal,
    pub(super) archivist: Archivist,
    pub(super) applier: Applier,
    pub(super) reserve: Reserve,
}

/// Room on the disk that is sled's alone. sled writes what it is given some time later and cannot go on where that fails;
/// so a batch is taken only while there is room for it to be written, whoever else fills the disk meanwhile.
pub(super) struct Reserve {
    /// sled's own file.
    engine: Arc<File>,
    /// How long it was when it was last looked at.
    length: u64,
    /// Up to where its blocks are its own.
    until: u64,
}

impl Reserve {
    pub(super) fn of(engine: Arc<File>) -> Self {
        Self { engine, length: 0, until: 0 }
    }

    /// Sees to it that at least half of the reserve is left.
    fn keep(&mut self) -> std::io::Result<()> {
        let length = self.engine.metadata()?.len();
        let is_shorter = std::mem::replace(&mut self.length, length) > length;
        if is_shorter || length + RESERVE_BYTES / 2 > self.until {
            match fallocate(&self.engine, FallocateFlags::KEEP_SIZE, length, RESERVE_BYTES) {
                // Some file systems know no such thing; there a full disk stops the server.
                Ok(()) | Err(Errno::OPNOTSUPP) => self.until = length + RESERVE_BYTES,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// What writes: one at a time.
struct Writer {
    records: Records,
    files: Files,
    retention: Arc<Retention>,
    ambient: Arc<dyn Ambient>,
    metrics: Commits,
    /// When the last batch was committed, in milliseconds since 1970.
    committed_at: i64,
    /// How many changes the last batch had.
    last_batch: usize,
}

impl Writer {
    /// Makes what these changes decide durable, lets it be read, answers, and has it applied.
    fn commit(&mut self, changes: Vec<Decide>) {
        let mut view = View::new(&self.records);
        let answers: Vec<_> = changes.into_iter().map(|decide| decide(&mut view)).collect();
        self.last_batch = answers.len();
        let writes = view.into_writes();
        let begun = Instant::now();
        let batch = if writes.is_empty() { Ok(None) } else { self.make_durable(writes).map(Some) };
        if batch.is_ok() {
            self.metrics.synced(answers.len(), begun.elapsed());
        }
        for answer in answers {
            answer(batch.is_ok());
        }
        if let Ok(Some(batch)) = batch {
            self.files.applier.apply(batch);
        }
    }

    /// Journal first, then readers: what they can see is durable. Fails if nothing was written.
    fn make_durable(&mut self, mut writes: Writes) -> Result<Arc<Batch>, NotWritten> {
        if let Err(error) = self.files.reserve.keep() {
            tracing::error!(%error, "a batch was refused because sled would have no room for it");
            return Err(NotWritten);
        }
        // A clock may step back. The order of entries is that of their numbers, and their times never contradict it.
        self.committed_at = self.committed_at.max(self.ambient.now().as_millis());
        writes.insert(keys::COMMITTED_AT.to_vec(), Some(self.committed_at.to_string().into_bytes()));
        match self.files.journal.append(&writes) {
            Ok(number) => {
                writes.insert(keys::APPLIED.to_vec(), Some(number.to_string().into_bytes()));
                let batch = Arc::new(Batch { number, writes });
                self.records.show(Arc::clone(&batch));
                Ok(batch)
            }
            Err(AppendError::NotWritten(error)) => {
                tracing::error!(%error, "a batch was refused because the journal could not be written; is the disk full?");
                Err(NotWritten)
            }
            // All that was answered is on the disk once sled is, and a start goes on from a new file.
            Err(error @ AppendError::Gone { .. }) => {
                self.rotate();
                stop("the journal is not where a start would look for it", &error)
            }
            // After a failed sync the kernel may have thrown the pages away; only a fresh read of the file tells.
            Err(AppendError::NotSynced(error)) => stop("the journal could not be synced", &error),
        }
    }

    /// Makes sled durable for once, so that the journal so far need not be applied again.
    fn rotate(&mut self) {
        self.files.applier.sync();
        match self.files.journal.rotate(self.retention.needed_after()) {
            Ok(()) => self.files.archivist.closed_before_last(self.files.journal.list()),
            Err(error) => tracing::warn!(%error, "no new journal file could be begun; the old one goes on"),
        }
    }
}

/// Nothing of a batch was written.
struct NotWritten;
