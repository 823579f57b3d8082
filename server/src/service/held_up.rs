//! Replans work that comes late because the clock went back.
//!
//! Queues are sorted by time, so work that was planned before the clock went back comes late. The server examines all planned
//! work once when the clock goes back, and once at each start: the clock may have gone back while the server was down.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Result, Service, ServiceError, retry_on_conflict};
use crate::store::{Change, Queue, StoreError, Work, Write};

/// How often the worker looks at the clock and reads a page of each queue.
const EVERY: Duration = Duration::from_secs(1);
/// How many entries of a queue the worker reads each time.
const PAGE: usize = 256;
/// A step back of at most this much is ignored: it delays nothing for long, and slewing a clock makes smaller steps.
const TOLERANCE_MILLIS: i64 = 2_000;
/// The queues that are sorted by time.
const QUEUES: [Queue; 3] = [Queue::GatewayChecks, Queue::Retries, Queue::Expiry];

/// Tells whether the clock went back since the last look, by comparing it with a monotonic clock.
struct Watch {
    seen: Timestamp,
    at: Instant,
}

impl Watch {
    fn went_back(&mut self, now: Timestamp) -> bool {
        let passed = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let expected = self.seen.as_millis().saturating_add(passed);
        *self = Self { seen: now, at: Instant::now() };
        now.as_millis() + TOLERANCE_MILLIS < expected
    }
}

impl Service {
    /// Replans delayed work, forever.
    pub async fn plan_held_up_work(self: Arc<Self>) {
        let mut watch = Watch { seen: self.ambient.now(), at: Instant::now() };
        // The time up to which each queue was read; `None` at its end.
        let mut looked_at = QUEUES.map(|queue| (queue, Some(watch.seen)));
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = self.ambient.now();
            if watch.went_back(now) {
                tracing::warn!("the clock went back; all scheduled work is planned again");
                looked_at = QUEUES.map(|queue| (queue, Some(now)));
            }
            for (queue, after) in &mut looked_at {
                let Some(from) = *after else { continue };
                match self.plan_page(*queue, from).await {
                    Ok(last) => *after = last,
                    Err(error) => tracing::error!(%error, ?queue, "could not read scheduled work; trying again"),
                }
            }
        }
    }

    /// Reads a page of a queue. Returns the time of its last piece of work; `None` at the queue's end.
    async fn plan_page(&self, queue: Queue, after: Timestamp) -> Result<Option<Timestamp>> {
        let page = self.store.planned(queue, after, PAGE).await?;
        for (_, work) in &page {
            match self.plan_anew(work).await {
                // The worker that handles this work reports the error.
                Err(ServiceError::Unavailable(error @ StoreError::Corrupt { .. })) => {
                    tracing::debug!(%error, ?work, "cannot read planned work");
                }
                outcome => outcome?,
            }
        }
        Ok(page.last().map(|(time, _)| *time))
    }

    async fn plan_anew(&self, work: &Work) -> Result<()> {
        match work {
            // Most sessions need no change: only a session created in the future lives too long.
            Work::Expiry(id) if id.created_at().is_some_and(|at| at <= self.ambient.now()) => Ok(()),
            Work::Expiry(id) | Work::GatewayCheck(id) => {
                retry_on_conflict(|| async {
                    let planned = self.store.session(id).await?;
                    let Some(next) = planned.and_then(|it| it.unheld(self.ambient.now())) else { return Ok(()) };
                    self.commit_without_event(next).await
                })
                .await
            }
            Work::Retry(id) => {
                retry_on_conflict(|| async {
                    let waiting = self.store.outgoing(id).await?;
                    let Some(due) = waiting.and_then(|it| it.unheld(self.ambient.now())) else { return Ok(()) };
                    Ok(self.commit(Change::of(Write::DeliveryChanged(Box::new(due)))).await?)
                })
                .await
            }
            Work::FanOut(_) | Work::Lane(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_clock_that_steps_back_is_noticed_and_only_once() {
        let at = |millis: i64| Timestamp::from_millis(1_700_000_000_000 + millis).unwrap();
        let mut watch = Watch { seen: at(0), at: Instant::now() };
        for (says, went_back) in
            [(10_000, false), (18_000, false), (40_000_000, false), (40_007_999, true), (40_017_999, false), (0, true)]
        {
            sleep(Duration::from_secs(10)).await;
            assert_eq!(watch.went_back(at(says)), went_back, "{says}");
        }
    }
}
