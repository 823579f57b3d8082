//! The one writer of a cell in a server. It commits waiting changes together.

use std::{ops::RangeInclusive, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};

use super::protocol::{Attempt, Committer, Failed, Job, Steps};
use crate::{StoreError, bytes::Batch};

/// How many changes are committed together at most.
const MAX_BATCH: usize = 128;
/// How long changes wait for a database that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries to connect.
const RECONNECT: Duration = Duration::from_millis(200);

pub(super) trait Connect: Send + 'static {
    type Steps: Steps;
    /// Returns a reason if the database cannot be reached.
    fn connect(&self) -> impl Future<Output = Result<Self::Steps, String>> + Send;
}

pub(super) struct Waiting {
    pub(super) job: Job,
    /// Where the change's outcome goes.
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

type Outcomes = Vec<Result<(), StoreError>>;

/// Commits batches over one connection, one at a time.
pub(super) struct Writer<C: Connect> {
    connect: C,
    slots: RangeInclusive<u16>,
    server: u64,
    /// The connection, and its committer.
    connected: Option<(C::Steps, Committer)>,
    /// Why the last try of the batch under way failed.
    reason: Option<String>,
}

impl<C: Connect> Writer<C> {
    pub(super) fn new(connect: C, slots: RangeInclusive<u16>, server: u64) -> Self {
        Self { connect, slots, server, connected: None, reason: None }
    }

    /// Commits waiting changes until all senders are dropped. After each batch, calls `synced` with the number of its
    /// changes, how long it took, and the newest known batch.
    pub(super) async fn run(
        mut self,
        mut queue: mpsc::Receiver<Waiting>,
        synced: impl Fn(usize, Duration, Option<Batch>),
    ) {
        let mut waiting = Vec::with_capacity(MAX_BATCH);
        while queue.recv_many(&mut waiting, MAX_BATCH).await > 0 {
            let begun = Instant::now();
            let (mut jobs, answers): (Vec<_>, Vec<_>) = waiting.drain(..).map(|it| (it.job, it.answer)).unzip();
            let outcomes = self.commit(&mut jobs).await;
            let newest = self.connected.as_ref().and_then(|(_, committer)| committer.newest());
            synced(jobs.len(), begun.elapsed(), newest);
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // The caller may be gone.
                let _ = answer.send(outcome);
            }
            // Callers that were just answered make their next changes here. Otherwise these would miss the next batch.
            tokio::task::yield_now().await;
        }
    }

    /// Commits changes together, or one by one if the database refuses them together.
    async fn commit(&mut self, jobs: &mut [Job]) -> Outcomes {
        match self.commit_batch(jobs).await {
            Ok(()) => jobs.iter_mut().map(Job::outcome).collect(),
            Err(error) if jobs.len() > 1 && !matches!(error, StoreError::Unknown) && self.connected.is_some() => {
                tracing::warn!(%error, changes = jobs.len(), "a batch is refused; its changes are committed one by one");
                let mut outcomes = Vec::new();
                for job in jobs {
                    let committed = self.commit_batch(std::slice::from_mut(job)).await;
                    outcomes.push(committed.and_then(|()| job.outcome()));
                }
                outcomes
            }
            Err(error) => jobs.iter().map(|_| Err(error.repeated())).collect(),
        }
    }

    /// Commits, over a new connection if the last one breaks.
    async fn commit_batch(&mut self, jobs: &mut [Job]) -> Result<(), StoreError> {
        let until = Instant::now() + PATIENCE;
        let mut unknown = None;
        self.reason = None;
        loop {
            let Err(Attempt { failed, may_be }) = self.try_commit(jobs, until, &mut unknown).await else {
                return Ok(());
            };
            let error = match failed {
                // The new connection refused the fence, so the batch's outcome stays unknown.
                _ if unknown.is_some() && !matches!(failed, Failed::Broken(_) | Failed::Elsewhere(_)) => {
                    return Err(StoreError::Unknown);
                }
                Failed::Refused(error) => return Err(error),
                Failed::Overtaken(what) | Failed::Met(what) => return Err(StoreError::unavailable(what)),
                Failed::Broken(what) | Failed::Elsewhere(what) => what,
            };
            self.connected = None;
            self.reason = Some(error.clone());
            unknown = may_be.or(unknown);
            if Instant::now() + RECONNECT >= until {
                tracing::error!(%error, "the database cannot be reached");
                return Err(match unknown {
                    Some(_) => StoreError::Unknown,
                    None => StoreError::unavailable(format!("the database cannot be reached: {error}")),
                });
            }
            sleep(RECONNECT).await;
        }
    }

    async fn try_commit(
        &mut self,
        jobs: &mut [Job],
        until: Instant,
        unknown: &mut Option<Batch>,
    ) -> Result<(), Attempt> {
        self.connected.take_if(|(steps, _)| steps.is_closed());
        if self.connected.is_none() {
            let silent = |_| Failed::Broken(self.reason.clone().unwrap_or_else(|| "it does not answer".to_owned()));
            let connected = timeout_at(until, self.connect.connect()).await.map_err(silent)?;
            let mut steps = connected.map_err(Failed::Broken)?;
            let mut committer = Committer::new(self.server, self.slots.clone());
            let is_committed = committer.begin(&mut steps, *unknown).await?;
            *unknown = None;
            self.connected = Some((steps, committer));
            if is_committed {
                return Ok(());
            }
        }
        let Some((steps, committer)) = &mut self.connected else { return Ok(()) };
        committer.commit(steps, jobs).await
    }
}
