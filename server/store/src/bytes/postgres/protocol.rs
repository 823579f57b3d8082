//! How a batch of changes is committed to a cell: lock, fetch, decide, write.
//!
//! There is no SQL here. A connection implements the [`Steps`]. [`Committer`] takes them in order, and holds the values of
//! the cell that a server knows from one batch to the next. Other servers do the same meanwhile, and each may stop, die or
//! come back at any step.
//!
//! A new connection begins with an empty batch, the fence. It waits for a running batch of the server's last connection. A
//! batch that the database has not read by then is refused afterwards. So the fence shows whether a batch of unknown outcome
//! was committed. Since the fence is a commit, everything that the connection reads afterwards is durable.
//!
//! The values that a server keeps are those as of one batch. They are current if that batch is the newest, by its number
//! *and* its tag: after a failover, another batch may have the same number.

use std::{collections::BTreeSet, ops::RangeInclusive};

use super::view::{CellView, Found, Known, Plan, Writes};
use crate::{
    StoreError,
    bytes::{Batch, Decision, Table},
};

/// How often a batch fetches keys that its decisions missed.
const FETCHES: u32 = 16;
/// How often a batch is tried if others overtake it.
const TRIES: u32 = 10;
/// How many batches lock the cell first, after another server's batch came between two of ours.
const LOCKING: u32 = 16;

#[derive(Debug)]
pub(super) struct Locked {
    pub(super) newest: Batch,
    pub(super) found: Found,
}

#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing was committed, the transaction is over, and the same batch may succeed.
    Overtaken(String),
    /// As [`Overtaken`](Self::Overtaken): an insertion met a value that nobody had looked for.
    Met(String),
    /// Nothing was committed, the transaction is over, and the same batch fails again.
    Refused(StoreError),
    /// Nothing was committed, and the connection is useless: another host accepts the writes, or the database is about to
    /// stop.
    Elsewhere(String),
    /// The connection is useless. If this was a commit, its outcome is unknown.
    Broken(String),
}

/// The steps of a commit to one cell, over one connection. Each is one round trip.
pub(super) trait Steps: Send {
    /// Begins, locks the cell, reads its newest batch, and fetches `always`. Fetches the hot entries `unless` too, if the
    /// newest batch is not `as_of`.
    fn lock(
        &mut self,
        as_of: Option<Batch>,
        always: Vec<Vec<u8>>,
        unless: Vec<Vec<u8>>,
    ) -> impl Future<Output = Result<Locked, Failed>> + Send;

    /// Fetches more keys while the cell is locked.
    fn fetch(&mut self, keys: Vec<Vec<u8>>) -> impl Future<Output = Result<Found, Failed>> + Send;

    /// Writes and commits while the cell is locked. Fails if the newest batch is not `after`.
    fn commit(
        &mut self,
        after: Batch,
        batch: Batch,
        writes: &Writes,
    ) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Locks, writes and commits. Fails if the newest batch is not `after`.
    fn commit_at_once(
        &mut self,
        after: Batch,
        batch: Batch,
        writes: &Writes,
    ) -> impl Future<Output = Result<(), Failed>> + Send;

    fn roll_back(&mut self) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Locks the cell and commits an empty batch after the newest one. Returns the empty batch, and whether `unknown` was
    /// committed.
    fn fence(
        &mut self,
        tag: u128,
        unknown: Option<Batch>,
    ) -> impl Future<Output = Result<(Batch, bool), Failed>> + Send;

    fn is_closed(&self) -> bool;
}

/// A change that waits for its batch.
pub(super) struct Job {
    decision: Decision,
    /// Whether the change must be durable when it is answered.
    is_synced: bool,
    /// Why the change could not be decided.
    failed: Option<StoreError>,
}

impl Job {
    pub(super) fn new(decision: Decision, is_synced: bool) -> Self {
        Self { decision, is_synced, failed: None }
    }

    /// The outcome of the change, once its batch is committed.
    pub(super) fn outcome(&mut self) -> Result<(), StoreError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// A failed try to commit. If its outcome is unknown, `may_be` is the batch that may exist.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) failed: Failed,
    pub(super) may_be: Option<Batch>,
}

impl From<Failed> for Attempt {
    fn from(failed: Failed) -> Self {
        Self { failed, may_be: None }
    }
}

/// Commits to a cell over one connection, and holds the known values. A new connection needs a new committer.
pub(super) struct Committer {
    server: u64,
    slots: RangeInclusive<u16>,
    known: Known,
    /// The batch as of which `known` is current.
    as_of: Option<Batch>,
    /// Whether that batch was this server's.
    is_mine: bool,
    /// How many batches still lock first.
    locking: u32,
}

impl Committer {
    pub(super) fn new(server: u64, slots: RangeInclusive<u16>) -> Self {
        Self { server, slots, known: Known::default(), as_of: None, is_mine: false, locking: 0 }
    }

    /// Begins on a new connection. Returns whether `unknown`, a batch of the last connection, was committed.
    pub(super) async fn begin(&mut self, steps: &mut impl Steps, unknown: Option<Batch>) -> Result<bool, Failed> {
        let (fence, is_committed) = steps.fence(self.tag(), unknown).await?;
        (self.as_of, self.is_mine) = (Some(fence), true);
        Ok(is_committed)
    }

    /// Decides and commits jobs together. On an error, nothing was committed, or the outcome is unknown.
    pub(super) async fn commit(&mut self, steps: &mut impl Steps, jobs: &mut [Job]) -> Result<(), Attempt> {
        let (mut looked_for, mut tries) = (BTreeSet::new(), 0);
        // Decide by the values known from the last batch. If they are not enough, the plan says which keys to fetch.
        let mut plan = self.plan(jobs);
        if self.is_mine
            && self.locking == 0
            && plan.missed.is_empty()
            && !plan.writes.is_empty()
            && let Some(after) = self.as_of
        {
            match self.commit_at_once(steps, after, plan.writes).await? {
                None => return Ok(()),
                Some(inserted) => looked_for = inserted,
            }
            plan = self.plan(jobs);
        }
        self.locking = self.locking.saturating_sub(1);
        loop {
            tries += 1;
            let attempt = match self.commit_locked(steps, jobs, plan, &mut looked_for).await {
                Err(attempt) => attempt,
                Ok(()) => return Ok(()),
            };
            if tries == TRIES || !matches!(attempt.failed, Failed::Overtaken(_) | Failed::Met(_)) {
                return Err(attempt);
            }
            plan = self.plan(jobs);
        }
    }

    /// Runs all decisions in order. Each sees the writes of those before it.
    fn decide(&self, jobs: &mut [Job]) -> Plan {
        let mut view = CellView::new(&self.known, &self.slots);
        for Job { decision, failed, .. } in jobs.iter_mut() {
            *failed = view.decide(decision).err();
        }
        let mut plan = view.into_plan();
        plan.writes.is_synced = jobs.iter().any(|job| job.is_synced);
        plan
    }

    fn plan(&mut self, jobs: &mut [Job]) -> Plan {
        self.known.drop_fetched();
        self.decide(jobs)
    }

    /// Commits in one round trip, if no other server was faster. If nothing was committed, returns the keys to look for: an
    /// insertion may have met one of them.
    async fn commit_at_once(
        &mut self,
        steps: &mut impl Steps,
        after: Batch,
        writes: Writes,
    ) -> Result<Option<BTreeSet<Vec<u8>>>, Attempt> {
        let batch = self.next(after);
        match steps.commit_at_once(after, batch, &writes).await {
            Ok(()) => {
                self.keep(batch, writes);
                Ok(None)
            }
            Err(Failed::Overtaken(_)) => {
                self.locking = LOCKING;
                Ok(Some(BTreeSet::new()))
            }
            Err(Failed::Met(_)) => Ok(Some(keys(writes))),
            Err(failed @ (Failed::Refused(_) | Failed::Elsewhere(_))) => Err(failed.into()),
            Err(failed) => Err(Attempt { failed, may_be: Some(batch) }),
        }
    }

    async fn commit_locked(
        &mut self,
        steps: &mut impl Steps,
        jobs: &mut [Job],
        plan: Plan,
        looked_for: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), Attempt> {
        let mut always: Vec<_> = plan.missed.union(looked_for).cloned().collect();
        let (unless, others) = plan.kept.into_iter().partition(|key| Table::of(key) == Some(Table::Hot));
        always.extend::<Vec<_>>(others);
        let Locked { newest, found } = steps.lock(self.as_of, always, unless).await?;
        if self.as_of != Some(newest) {
            self.known.drop_kept();
        }
        (self.as_of, self.is_mine) = (Some(newest), false);
        self.known.learn(found);
        let mut fetches = 0;
        let writes = loop {
            let Plan { missed, writes, .. } = self.decide(jobs);
            if missed.is_empty() {
                break writes;
            }
            if fetches == FETCHES {
                steps.roll_back().await?;
                let what = "the decisions of a batch read ever more keys";
                return Err(Failed::Refused(StoreError::unavailable(what)).into());
            }
            fetches += 1;
            let found = steps.fetch(missed.into_iter().collect()).await?;
            self.known.learn(found);
        };
        if writes.is_empty() {
            return Ok(steps.roll_back().await?);
        }
        let batch = self.next(newest);
        match steps.commit(newest, batch, &writes).await {
            Ok(()) => {
                self.keep(batch, writes);
                Ok(())
            }
            Err(Failed::Broken(what)) => Err(Attempt { failed: Failed::Broken(what), may_be: Some(batch) }),
            Err(failed) => {
                if matches!(failed, Failed::Met(_)) {
                    looked_for.extend(keys(writes));
                }
                Err(failed.into())
            }
        }
    }

    /// The newest batch that this server knows.
    pub(super) fn newest(&self) -> Option<Batch> {
        self.as_of
    }

    fn next(&self, newest: Batch) -> Batch {
        Batch { number: newest.number + 1, tag: self.tag() }
    }

    fn tag(&self) -> u128 {
        u128::from(self.server) << 64 | u128::from(fastrand::u64(..))
    }

    /// Keeps the values that the server's own batch wrote.
    fn keep(&mut self, batch: Batch, writes: Writes) {
        (self.as_of, self.is_mine) = (Some(batch), true);
        self.known.keep_written(batch.number, writes);
    }
}

fn keys(writes: Writes) -> BTreeSet<Vec<u8>> {
    writes.inserted.into_iter().map(|(key, _)| key).collect()
}
