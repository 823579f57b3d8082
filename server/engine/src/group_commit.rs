//! Group commit: one sync of the journal for all waiting changes.
//!
//! The committer's thread takes the waiting changes, lets each decide what it writes, and makes all writes durable as one
//! journal entry with one sync. Then it makes the batch visible to readers and answers every change. A change that arrives
//! alone is committed on its caller's thread instead: the way to the other thread and back takes about half as long as a
//! sync.

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
    overlay::Overlay,
    reserve::Reserve,
    stop::Stop,
    view::View,
    worker::{Work, Worker},
    writes::{APPLIED, COMMITTED_AT, Writes, bytes_of, set_number},
};

/// How many changes may wait. Further callers wait for a place.
const QUEUE: usize = 4096;
/// How many changes become durable together. Each of them waits for all, so their number is bounded.
const MAX_BATCH: usize = 256;

/// Decides what a change writes. Returns the function that answers its caller.
pub(crate) type Change = Box<dyn FnOnce(&mut View<'_>) -> Answer + Send>;
/// Answers a change, given whether the batch is durable. If not, nothing of it was written.
pub(crate) type Answer = Box<dyn FnOnce(bool) + Send>;
/// A change to commit. `None` means to maintain the journal's files, for which a caller's thread has no time.
type Job = Option<Change>;

/// Commits changes on the caller's thread or on the committer's.
pub(crate) struct GroupCommit {
    writer: Arc<Mutex<Writer>>,
    #[cfg_attr(not(feature = "simulation"), expect(dead_code, reason = "only a simulation steps it"))]
    pub(crate) committer: Worker<Committer>,
    /// The last field, so that it is dropped last. That ends the committer's thread, which then is the writer's only owner
    /// and drops it.
    queue: mpsc::Sender<Job>,
}

impl GroupCommit {
    /// Starts the committer's thread. It ends when this is dropped, after everything is in the tree.
    pub(crate) fn start(writer: Writer, has_threads: bool) -> io::Result<(Self, Option<thread::JoinHandle<()>>)> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let writer = Arc::new(Mutex::new(writer));
        let work = Committer { writer: Arc::clone(&writer), waiting, jobs: Vec::with_capacity(MAX_BATCH) };
        let (committer, thread) = Worker::start("committer", has_threads, work)?;
        Ok((Self { writer, committer, queue }, thread))
    }

    /// Commits a change, on this thread if the change is alone. Returns false if the engine has stopped.
    pub(crate) async fn commit(&self, change: Change) -> bool {
        let Some(writer) = self.writer_if_alone() else { return self.queue.send(Some(change)).await.is_ok() };
        task::block_in_place(|| self.commit_on_this_thread(writer, change));
        true
    }

    /// Locks the writer, waiting if necessary.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// Locks the writer if no other change is being committed or waits, and the last batch had only one change.
    fn writer_if_alone(&self) -> Option<MutexGuard<'_, Writer>> {
        // While this thread writes, a runtime of several threads moves its other tasks to them.
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread || self.queue.capacity() < QUEUE {
            return None;
        }
        self.writer.try_lock().ok().filter(|writer| writer.last_batch <= 1)
    }

    pub(crate) fn commit_on_this_thread(&self, mut writer: MutexGuard<'_, Writer>, change: Change) {
        writer.commit(vec![change]);
        if writer.is_file_due() || writer.has_synced() {
            // If the queue is full, the next batch does this.
            let _ = self.queue.try_send(None);
        }
    }
}

/// A change to commit, and where its caller receives the outcome.
pub(crate) fn change<T: Send + 'static, E: Send + 'static>(
    decide: impl FnOnce(&mut View<'_>) -> Result<T, E> + Send + 'static,
) -> (Change, oneshot::Receiver<Result<T, CommitError<E>>>) {
    let (answer, outcome) = oneshot::channel();
    let change: Change = Box::new(move |view| {
        let decided = view.take(decide);
        Box::new(move |is_durable| {
            // A change may refuse because of another change in the batch, so its refusal counts only if the batch is durable.
            let outcome = if is_durable { decided.map_err(CommitError::Refused) } else { Err(CommitError::NotWritten) };
            // A caller that no longer waits can read the outcome from the database.
            let _ = answer.send(outcome);
        })
    });
    (change, outcome)
}

/// Commits the waiting changes.
pub(crate) struct Committer {
    writer: Arc<Mutex<Writer>>,
    waiting: mpsc::Receiver<Job>,
    jobs: Vec<Job>,
}

impl Work for Committer {
    fn wait(&mut self) -> bool {
        self.waiting.blocking_recv_many(&mut self.jobs, MAX_BATCH);
        self.commit()
    }

    fn step(&mut self) -> bool {
        while self.jobs.len() < MAX_BATCH
            && let Ok(job) = self.waiting.try_recv()
        {
            self.jobs.push(job);
        }
        self.commit()
    }

    fn end(&mut self) {
        lock(&self.writer).end();
    }
}

impl Committer {
    /// Commits the received changes as one batch. Returns false if it received none.
    fn commit(&mut self) -> bool {
        if self.jobs.is_empty() {
            return false;
        }
        let mut writer = lock(&self.writer);
        writer.commit(self.jobs.drain(..).flatten().collect());
        writer.look_after_files();
        true
    }
}

/// Locks the writer even after a panic: the panic has stopped the engine, and a stopped writer does nothing.
fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes batches durable, one at a time.
pub(crate) struct Writer {
    pub(crate) overlay: Overlay,
    pub(crate) journal: Journal,
    pub(crate) archivist: Archivist,
    pub(crate) file_bytes: u64,
    /// The length of the journal file at which the next file begins.
    pub(crate) next_file_at: u64,
    pub(crate) applier: Applier,
    pub(crate) reserve: Reserve,
    pub(crate) retention: Arc<Retention>,
    pub(crate) stop: Arc<Stop>,
    /// The time, in milliseconds since 1970.
    pub(crate) clock: Box<dyn Fn() -> i64 + Send>,
    pub(crate) on_sync: Box<dyn Fn(usize, Duration) + Send>,
    pub(crate) committed_at: i64,
    pub(crate) last_batch: usize,
}

impl Writer {
    /// Commits changes as one batch. After a stop it drops them, and the callers' answers with them.
    fn commit(&mut self, changes: Vec<Change>) {
        if changes.is_empty() || self.stop.has_stopped() {
            return;
        }
        let stop = Arc::clone(&self.stop);
        stop.on_panic(|| self.commit_batch(changes));
    }

    fn commit_batch(&mut self, changes: Vec<Change>) {
        self.last_batch = changes.len();
        let begun = Instant::now();
        let mut view = View::new(&self.overlay);
        let answers: Vec<Answer> = changes.into_iter().map(|change| change(&mut view)).collect();
        let decided = Instant::now();
        match self.make_durable(view.batch) {
            Ok(bytes) => {
                let durable = Instant::now();
                (self.on_sync)(answers.len(), durable - decided);
                answers.into_iter().for_each(|answer| answer(true));
                let answered = Instant::now();
                if bytes > 0 {
                    self.applier.gathered(bytes);
                }
                let micros = |from: Instant, to: Instant| (to - from).as_micros();
                tracing::debug!(
                    changes = self.last_batch,
                    bytes,
                    decided = micros(begun, decided),
                    durable = micros(decided, durable),
                    answered = micros(durable, answered),
                    waited = micros(answered, Instant::now()),
                    "committed, in microseconds"
                );
            }
            Err(error @ (AppendError::NoRoom(_) | AppendError::NotWritten(_))) => {
                tracing::error!(%error, "a batch was refused; is the disk full?");
                answers.into_iter().for_each(|answer| answer(false));
            }
            // Everything answered is on the disk once the tree is, and the next start uses a new file.
            Err(error @ AppendError::Gone { .. }) => {
                if self.applier.sync() {
                    self.list_synced();
                    self.begin_file();
                }
                self.stop.stop("the journal is not where a start would look for it", &error);
            }
            // After a failed sync the kernel may have dropped the pages. Only a fresh read of the file shows its content.
            Err(error @ AppendError::NotSynced(_)) => self.stop.stop("the journal could not be synced", &error),
        }
    }

    /// Appends a batch to the journal, then makes it visible to readers, who see only durable batches. Returns the size of
    /// its writes.
    fn make_durable(&mut self, mut writes: Writes) -> Result<usize, AppendError> {
        if writes.is_empty() {
            return Ok(0);
        }
        self.reserve.keep(self.applier.waiting() + bytes_of(&writes)).map_err(AppendError::NoRoom)?;
        // A clock may step back. Entries are ordered by number, and their times must not contradict that order.
        self.committed_at = self.committed_at.max((self.clock)());
        set_number(&mut writes, COMMITTED_AT, self.committed_at);
        let number = self.journal.append(&writes)?;
        set_number(&mut writes, APPLIED, number);
        let bytes = bytes_of(&writes);
        self.overlay.push(number, writes);
        Ok(bytes)
    }

    fn is_file_due(&self) -> bool {
        self.journal.length > self.next_file_at
    }

    /// Whether the tree's last sync covers more than the list of files says.
    fn has_synced(&self) -> bool {
        self.applier.synced() > self.journal.in_tree()
    }

    /// Records in the list what the tree has on the disk. If the journal's file is long enough, begins the next file and
    /// requests a sync of the tree, so that a start need not apply the old file again. Commits do not wait for the tree.
    fn look_after_files(&mut self) {
        if self.stop.has_stopped() {
            return;
        }
        if self.has_synced() {
            self.list_synced();
        }
        // Not on a full disk: there the tree could not be written, which would stop the engine.
        if self.is_file_due() && self.reserve.keep(self.applier.waiting()).is_ok() {
            self.begin_file();
            self.applier.begin_sync();
        }
    }

    /// Applies everything to the tree and records that, so that the next start applies nothing again.
    fn end(&mut self) {
        if self.applier.sync() && self.has_synced() {
            self.list_synced();
        }
    }

    fn list_synced(&mut self) {
        if let Err(error) = self.journal.set_in_tree(self.applier.synced()) {
            tracing::warn!(%error, "the list of journal files could not be written; a start applies more than it need");
        }
    }

    /// Begins the next file. If that fails, tries again after the present file has grown by its usual length.
    fn begin_file(&mut self) {
        self.next_file_at = self.journal.length + self.file_bytes;
        match self.journal.rotate(self.retention.needed_after()) {
            Ok(()) => {
                self.next_file_at = self.file_bytes;
                self.archivist.send(&self.journal.list);
            }
            Err(error) => tracing::warn!(%error, "no new journal file could be begun; the old one goes on"),
        }
    }
}
