//! Group commit: one sync of the journal for all changes that wait.
//!
//! The committer's thread takes the changes that wait, lets each decide what it writes, and makes all of it durable as one
//! entry of the journal with one sync. Then it shows the batch to readers, answers every change, and hands the batch to the
//! applier, which brings it to the tree while the next batch is made. So changes have one order, each is whole or not there,
//! and those that wait share the cost of a sync. A change that is alone is committed on its caller's thread instead: the way
//! to the other thread and back takes about as long as half a sync.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{mpsc, oneshot},
    task,
};

use crate::{
    applier::Applier,
    error::{AppendError, CommitError},
    journal::{Archivist, Journal, Retention},
    overlay::{Batch, Overlay},
    reserve::Reserve,
    stop::Stop,
    view::View,
    writes::{APPLIED, COMMITTED_AT, Writes, set_number},
};

/// How many changes may wait; the next caller waits for a place.
const QUEUE: usize = 4096;
/// How many changes become durable together. Each of them waits for all of them, so their number has a bound.
const MAX_BATCH: usize = 256;

/// Decides what a change writes, and returns the answer to its caller.
type Change = Box<dyn FnOnce(&mut View<'_>) -> Answer + Send>;
/// Answers a change: with what it decided, or that the batch could not be written.
type Answer = Box<dyn FnOnce(Result<(), NotWritten>) + Send>;
/// Nothing of the batch was written.
struct NotWritten;

/// A caller's end of a change.
type Outcome<T, E> = oneshot::Receiver<Result<T, CommitError<E>>>;

enum Job {
    Commit(Change),
    /// Begin a new journal file: a caller's thread has no time for it.
    Checkpoint,
}

/// The way to the writer.
pub(crate) struct GroupCommit {
    writer: Arc<Mutex<Writer>>,
    /// The last field, so that it is dropped last: the thread then has the writer to itself, and drops it before it ends.
    queue: mpsc::Sender<Job>,
}

impl GroupCommit {
    /// Starts the committer's thread. It ends, with everything in the tree, when this is dropped.
    pub(crate) fn start(writer: Writer) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let writer = Arc::new(Mutex::new(writer));
        let of_thread = Arc::clone(&writer);
        let thread = thread::Builder::new().name("committer".into()).spawn(move || run(&of_thread, waiting))?;
        Ok((Self { writer, queue }, thread))
    }

    /// Makes a change durable. Once this was polled the change may be decided, whether or not its caller still waits.
    pub(crate) async fn commit<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        let (change, outcome) = change(decide);
        if let Some(writer) = self.writer_if_alone() {
            task::block_in_place(|| self.commit_on_this_thread(writer, change));
        } else {
            self.queue.send(Job::Commit(change)).await.map_err(|_| CommitError::Stopped)?;
        }
        outcome.await.map_err(|_| CommitError::Stopped)?
    }

    /// Makes a change durable on this thread, which waits until the batch before it is done.
    pub(crate) fn commit_blocking<T: Send + 'static, E: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, CommitError<E>> {
        let (change, mut outcome) = change(decide);
        self.commit_on_this_thread(lock(&self.writer), change);
        outcome.try_recv().map_err(|_| CommitError::Stopped)?
    }

    /// The writer, if nobody else uses it or waits for it, nor did lately.
    fn writer_if_alone(&self) -> Option<MutexGuard<'_, Writer>> {
        // Only such a runtime moves a thread's other tasks elsewhere while it writes.
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread || self.queue.capacity() < QUEUE {
            return None;
        }
        self.writer.try_lock().ok().filter(|writer| writer.last_batch <= 1)
    }

    fn commit_on_this_thread(&self, mut writer: MutexGuard<'_, Writer>, change: Change) {
        writer.commit(vec![change]);
        if writer.journal.is_long() {
            // Where the queue is full, the next batch sees to it.
            let _ = self.queue.try_send(Job::Checkpoint);
        }
    }
}

/// A change and its caller's end.
fn change<T: Send + 'static, E: Send + 'static>(
    decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
) -> (Change, Outcome<T, E>) {
    let (answer, outcome) = oneshot::channel();
    let change: Change = Box::new(move |view| {
        let decided = view.take(decide);
        Box::new(move |written| {
            // A change's refusal may rest on another change of the batch, so it counts only if the batch is durable.
            let outcome = match written {
                Ok(()) => decided.map_err(CommitError::Refused),
                Err(NotWritten) => Err(CommitError::NotWritten),
            };
            // Who no longer waits will read it.
            let _ = answer.send(outcome);
        })
    });
    (change, outcome)
}

/// The committer's thread.
fn run(writer: &Mutex<Writer>, mut waiting: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(MAX_BATCH);
    while waiting.blocking_recv_many(&mut jobs, MAX_BATCH) > 0 {
        let changes = jobs.drain(..).filter_map(|job| match job {
            Job::Commit(change) => Some(change),
            Job::Checkpoint => None,
        });
        let mut writer = lock(writer);
        writer.commit(changes.collect());
        if writer.journal.is_long() {
            writer.checkpoint();
        }
    }
    // Where the engine has stopped there is nothing to wait for.
    let _ = lock(writer).applier.sync();
}

/// A panic while the writer is locked stops the engine, and a stopped writer does nothing.
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What makes batches durable, one at a time.
pub(crate) struct Writer {
    pub(crate) overlay: Overlay,
    pub(crate) journal: Journal,
    pub(crate) archivist: Archivist,
    pub(crate) applier: Applier,
    pub(crate) reserve: Reserve,
    pub(crate) retention: Arc<Retention>,
    pub(crate) stop: Arc<Stop>,
    /// Milliseconds since 1970.
    pub(crate) clock: Box<dyn Fn() -> i64 + Send>,
    /// Told of each batch how many changes it had, and how long it took to write and sync it.
    pub(crate) on_sync: Box<dyn Fn(usize, Duration) + Send>,
    /// The time of the last batch.
    pub(crate) committed_at: i64,
    /// How many changes the last batch had.
    pub(crate) last_batch: usize,
}

/// Why a batch is not durable.
enum NotDurable {
    NotWritten,
    /// Nobody knows whether it is.
    Stopped,
}

impl Writer {
    /// Commits changes as one batch. Where the engine has stopped it drops them, and with them the callers' answers.
    fn commit(&mut self, changes: Vec<Change>) {
        if changes.is_empty() || self.stop.has_stopped() {
            return;
        }
        let stop = Arc::clone(&self.stop);
        stop.on_panic(|| self.commit_batch(changes));
    }

    fn commit_batch(&mut self, changes: Vec<Change>) {
        self.last_batch = changes.len();
        let mut view = View::new(&self.overlay);
        let answers: Vec<Answer> = changes.into_iter().map(|change| change(&mut view)).collect();
        let writes = view.into_writes();
        let begun = Instant::now();
        match self.make_durable(writes) {
            Ok(batch) => {
                (self.on_sync)(answers.len(), begun.elapsed());
                answers.into_iter().for_each(|answer| answer(Ok(())));
                if let Some(batch) = batch {
                    self.applier.apply(batch);
                }
            }
            Err(NotDurable::NotWritten) => answers.into_iter().for_each(|answer| answer(Err(NotWritten))),
            Err(NotDurable::Stopped) => {}
        }
    }

    /// Appends a batch to the journal, then shows it to readers: they see what is durable. No batch where nothing is
    /// written.
    fn make_durable(&mut self, mut writes: Writes) -> Result<Option<Arc<Batch>>, NotDurable> {
        if writes.is_empty() {
            return Ok(None);
        }
        if let Err(error) = self.reserve.keep() {
            tracing::error!(%error, "a batch was refused because the tree would have no room for it");
            return Err(NotDurable::NotWritten);
        }
        // A clock may step back. The order of entries is that of their numbers, and their times never contradict it.
        self.committed_at = self.committed_at.max((self.clock)());
        set_number(&mut writes, COMMITTED_AT, self.committed_at);
        match self.journal.append(&writes) {
            Ok(number) => {
                set_number(&mut writes, APPLIED, number);
                let batch = Arc::new(Batch { number, writes });
                self.overlay.push(Arc::clone(&batch));
                Ok(Some(batch))
            }
            Err(AppendError::NotWritten(error)) => {
                tracing::error!(%error, "a batch was refused because the journal could not be written; is the disk full?");
                Err(NotDurable::NotWritten)
            }
            // Everything answered is on the disk once the tree is, and a start goes on from a new file.
            Err(error @ AppendError::Gone { .. }) => {
                self.checkpoint();
                self.stop.stop("the journal is not where a start would look for it", &error);
                Err(NotDurable::Stopped)
            }
            // After a failed sync the kernel may have thrown the pages away; only a fresh read of the file tells.
            Err(error @ AppendError::NotSynced(_)) => {
                self.stop.stop("the journal could not be synced", &error);
                Err(NotDurable::Stopped)
            }
        }
    }

    /// Makes the tree durable and begins a new journal file, so that a start need not apply the old ones again.
    fn checkpoint(&mut self) {
        if !self.applier.sync() {
            return;
        }
        match self.journal.rotate(self.retention.needed_after()) {
            Ok(()) => self.archivist.closed_before_last(self.journal.list()),
            Err(error) => tracing::warn!(%error, "no new journal file could be begun; the old one goes on"),
        }
    }
}
