//! The committer: what writes, one batch at a time.
//!
//! It takes the changes that wait, decides for each whether its conditions hold, and makes all of them durable at one
//! stroke: one entry in the journal, one sync. Then it shows them to readers, answers all, and hands them to the applier,
//! which brings them to sled while the next batch is made. So changes have one order, each is whole or not there, and the
//! cost of a sync is shared by everyone who waited for it. All that happens on the committer's thread, but for a change that
//! is alone: that one is made durable on the thread of whoever asks.

use std::{
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use payments_core::WebhookId;
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
    tables::View,
    telling::{self, Told},
};
use crate::{
    ambient::Ambient,
    metrics::Commits,
    store::{Change, CommitError, StoreError, Write},
};

/// How many changes may wait; who comes after waits for a place.
const QUEUE: usize = 4096;
/// How much of the disk is kept for sled: far more than what it holds back of a few batches.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;
/// How many changes become durable at one stroke. Everyone in a batch waits for all of it, so it has a bound.
const MAX_BATCH: usize = 256;

/// How many endpoints are told of events in one batch, besides one for each change of it.
const TOLD_AT_A_TIME: usize = 64;
/// How long the telling of events rests where the disk was full.
const REST: Duration = Duration::from_millis(500);

type Answer = oneshot::Sender<Result<(), CommitError>>;

/// What the committer's thread is asked for.
enum Job {
    Commit(Change, Answer),
    /// See to what others left: events to tell of, a journal file that is long.
    Tidy,
    /// Tell when the events of all that was answered before have their deliveries.
    Settle(oneshot::Sender<()>),
}

/// The way to the committer.
pub(super) struct Committer {
    writer: Arc<Mutex<Writer>>,
    /// Last, so that it is dropped last: the thread then has the writer to itself, and lets go of it before it ends.
    queue: mpsc::Sender<Job>,
}

impl Committer {
    /// Starts the thread. `outbox` is told of each endpoint that is owed something new, once that is durable.
    pub(super) fn start(
        records: Records,
        files: Files,
        retention: Arc<Retention>,
        ambient: Arc<dyn Ambient>,
        outbox: mpsc::UnboundedSender<WebhookId>,
        metrics: Commits,
    ) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let committed_at = records.read(keys::COMMITTED_AT).map_err(std::io::Error::other)?.unwrap_or_default();
        let writer = Writer {
            records,
            committed_at,
            files,
            retention,
            ambient,
            outbox,
            metrics,
            last_batch: 0,
            shown: None,
            owed: Vec::new(),
            // Maybe: the first batch sees.
            is_untold: true,
            has_told_all: false,
            is_refused: false,
        };
        let writer = Arc::new(Mutex::new(writer));
        let at_thread = Arc::clone(&writer);
        let thread =
            thread::Builder::new().name("committer".into()).spawn(move || or_stop(|| run(&at_thread, waiting)))?;
        Ok((Self { queue, writer }, thread))
    }

    /// Makes a change durable. Once it is begun or queued it will be decided, whether or not the caller still waits.
    pub(super) async fn commit(&self, change: Change) -> Result<(), CommitError> {
        if let Some(writer) = self.writer_if_alone() {
            return self.commit_here(writer, change);
        }
        let (answer, outcome) = oneshot::channel();
        self.queue.send(Job::Commit(change, answer)).await.map_err(|_| StoreError::Stopped)?;
        outcome.await.map_err(|_| StoreError::Stopped)?
    }

    /// Waits until the events of all changes that were answered have their deliveries.
    pub(super) async fn settled(&self) -> Result<(), StoreError> {
        let (asks, settled) = oneshot::channel();
        self.queue.send(Job::Settle(asks)).await.map_err(|_| StoreError::Stopped)?;
        settled.await.map_err(|_| StoreError::Stopped)
    }

    /// The writer, where nobody else is at it or waits for it, nor lately was.
    fn writer_if_alone(&self) -> Option<MutexGuard<'_, Writer>> {
        // Only in such a runtime can a thread's other tasks go on elsewhere while it writes.
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread || self.queue.capacity() < QUEUE {
            return None;
        }
        self.writer.try_lock().ok().filter(|writer| writer.last_batch <= 1 && !writer.is_untold)
    }

    /// Makes a change durable on the caller's thread: the way to the other thread and back takes about as long as half a
    /// sync.
    fn commit_here(&self, mut writer: MutexGuard<'_, Writer>, change: Change) -> Result<(), CommitError> {
        let commit = || {
            let outcomes = writer.commit(vec![change]);
            writer.pass_on();
            outcomes
        };
        let outcomes = task::block_in_place(|| or_stop(commit));
        if writer.is_untold || writer.files.journal.is_long() {
            // Where the queue is full, its next job sees to it.
            let _ = self.queue.try_send(Job::Tidy);
        }
        outcomes.into_iter().next().unwrap_or(Err(StoreError::Stopped.into()))
    }
}

/// Commits what waits until every way to the queue is gone.
fn run(writer: &Mutex<Writer>, mut waiting: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(MAX_BATCH);
    let mut settling: Vec<oneshot::Sender<()>> = Vec::new();
    while waiting.blocking_recv_many(&mut jobs, MAX_BATCH) > 0 {
        // A panic while it is held ends the process.
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut changes, mut answers) = (Vec::new(), Vec::new());
        for job in jobs.drain(..) {
            match job {
                Job::Commit(change, answer) => {
                    changes.push(change);
                    answers.push(answer);
                }
                Job::Tidy => {}
                Job::Settle(asks) => settling.push(asks),
            }
        }
        let mut is_settled = !writer.is_untold;
        if !changes.is_empty() {
            for (answer, outcome) in answers.into_iter().zip(writer.commit(changes)) {
                // Whoever no longer waits will read it.
                let _ = answer.send(outcome);
            }
            is_settled |= writer.has_told_all;
        }
        writer.finish();
        // Whoever waits goes first, and takes the next deliveries along.
        while writer.is_untold && waiting.is_empty() && !waiting.is_closed() {
            writer.commit(Vec::new());
            is_settled |= writer.has_told_all;
            writer.finish();
            if writer.is_refused {
                thread::sleep(REST);
            }
        }
        if is_settled {
            for asks in settling.drain(..) {
                let _ = asks.send(());
            }
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
    outbox: mpsc::UnboundedSender<WebhookId>,
    metrics: Commits,
    /// When the last batch was committed, in milliseconds since 1970.
    committed_at: i64,
    /// How many changes the last batch had.
    last_batch: usize,
    /// That batch, until it is passed on.
    shown: Option<Arc<Batch>>,
    /// The endpoints that it owes something new.
    owed: Vec<WebhookId>,
    /// Whether there are events whose deliveries are still to be made.
    is_untold: bool,
    /// Whether the last batch has the last deliveries of all events before it.
    has_told_all: bool,
    /// Whether the last batch could not be written.
    is_refused: bool,
}

impl Writer {
    /// Makes those of these changes durable whose conditions hold, and lets them be read. Then [`pass_on`](Self::pass_on).
    fn commit(&mut self, changes: Vec<Change>) -> Vec<Result<(), CommitError>> {
        let mut view = View::new(&self.records);
        let told = match self.is_untold {
            true => telling::tell(&mut view, TOLD_AT_A_TIME + changes.len(), &*self.ambient),
            false => Told::default(),
        };
        let mut outcomes = Vec::new();
        let mut over = 0;
        for change in changes {
            let ends = deliveries_ended(&change);
            let outcome = view.take(change);
            over += if outcome.is_ok() { ends } else { 0 };
            outcomes.push(outcome);
        }
        self.last_batch = outcomes.len();
        let writes = view.into_writes();
        let is_untold = told.is_more || telling::is_owed_in(&writes);
        let begun = Instant::now();
        self.is_refused = !self.make_durable(writes);
        self.has_told_all = !self.is_refused && !told.is_more;
        if self.is_refused {
            // A conflict with another change of this batch counts only if that change is durable.
            return outcomes.iter().map(|_| Err(StoreError::NotWritten.into())).collect();
        }
        self.is_untold = is_untold;
        if !outcomes.is_empty() {
            self.metrics.synced(outcomes.len(), begun.elapsed());
        }
        self.metrics.outbox.inc_by(i64::try_from(told.owed.len()).unwrap_or(i64::MAX) - over);
        self.owed.extend(told.owed);
        outcomes
    }

    /// Journal first, then readers: what they can see is durable. False if nothing was written.
    fn make_durable(&mut self, mut writes: Writes) -> bool {
        if writes.is_empty() {
            return true;
        }
        if let Err(error) = self.files.reserve.keep() {
            tracing::error!(%error, "a batch was refused because sled would have no room for it");
            return false;
        }
        // A clock may step back. The order of entries is that of their numbers, and their times never contradict it.
        self.committed_at = self.committed_at.max(self.ambient.now().as_millis());
        writes.insert(keys::COMMITTED_AT.to_vec(), Some(self.committed_at.to_string().into_bytes()));
        match self.files.journal.append(&writes) {
            Ok(number) => {
                writes.insert(keys::APPLIED.to_vec(), Some(number.to_string().into_bytes()));
                let batch = Arc::new(Batch { number, writes });
                self.records.show(Arc::clone(&batch));
                self.shown = Some(batch);
                true
            }
            Err(AppendError::NotWritten(error)) => {
                tracing::error!(%error, "a batch was refused because the journal could not be written; is the disk full?");
                false
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

    /// Tells the dispatcher and the applier of the last batch, once it is answered.
    fn pass_on(&mut self) {
        for endpoint in self.owed.drain(..) {
            let _ = self.outbox.send(endpoint);
        }
        if let Some(batch) = self.shown.take() {
            self.files.applier.apply(batch);
        }
    }

    /// The same, and begins a new journal file where it is time.
    fn finish(&mut self) {
        self.pass_on();
        if self.files.journal.is_long() {
            self.rotate();
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

/// How many deliveries leave the outbox.
fn deliveries_ended(change: &Change) -> i64 {
    change.writes.iter().map(|write| i64::from(matches!(write, Write::DeliveryEnded(_)))).sum()
}
