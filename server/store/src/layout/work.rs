//! Due work, and the work that is due next.

use std::collections::HashSet;

use payments_core::{DeliveryId, Timestamp, WebhookId};

use super::{
    Store,
    entry::owners_at,
    keys::{self, CHECKS, EXPIRIES, RETRIES, TimeIndex},
    reads::{Reads, Scan},
};
use crate::{
    OutboxHead, Planned, Queue, Result, Work,
    bytes::{KeyValue, with_prefix},
    domain::Subject,
};

impl Store {
    /// Timed work that is planned strictly after a time, the earliest first: at most `at_most` pieces, and all others with
    /// the time of the last one. A queue of untimed work has none.
    pub async fn planned(&self, queue: Queue, after: Timestamp, at_most: usize) -> Result<Vec<Planned>> {
        let Some(index) = by_time(queue) else { return Ok(Vec::new()) };
        let mut planned: Vec<Planned> = Vec::new();
        for reads in self.cells()? {
            let mut scan = Scan::new(reads, index.after(after));
            let before = planned.len();
            while let Some((key, value)) = scan.next().await? {
                let Some(time) = index.time_of(&key) else { continue };
                let found = &planned[before..];
                if found.len() >= at_most && found.last().is_some_and(|(last, _)| *last != time) {
                    break;
                }
                planned.extend(works_at(queue, &key, &value).into_iter().map(|work| (time, work)));
            }
        }
        planned.sort_by_key(|(time, _)| *time);
        let last = planned.get(at_most.saturating_sub(1)).map(|(time, _)| *time);
        planned.retain(|(time, _)| last.is_none_or(|last| *time <= last));
        Ok(planned)
    }

    /// At most `at_most` deliveries of an endpoint's outbox, oldest first.
    pub async fn outbox(&self, endpoint: &WebhookId, at_most: usize) -> Result<OutboxHead> {
        let reads = self.of(endpoint.slot());
        // Deliveries are added and end while their keys are read. Before a delivery that only the second read has, there may
        // be another one that was added after the read had passed it. So the result ends before such a delivery, and a later
        // call returns the rest.
        loop {
            let before: HashSet<DeliveryId> = names(reads, endpoint, at_most).await?.into_iter().collect();
            let mut ids = names(reads, endpoint, at_most).await?;
            let found = ids.len();
            ids.truncate(ids.iter().take_while(|id| before.contains(id)).count());
            let is_all = ids.len() == found && found < at_most;
            if is_all || !ids.is_empty() {
                return Ok(OutboxHead { ids, is_all });
            }
        }
    }

    /// Since when the oldest of all outboxes waits: the time at which the attempt of its first delivery became due. A first
    /// attempt is due when the delivery is made.
    pub async fn oldest_in_outbox(&self) -> Result<Option<Timestamp>> {
        let mut oldest: Option<Timestamp> = None;
        for reads in self.cells()? {
            for (lane, _) in reads.all_with(&keys::lanes()).await? {
                let Some(endpoint) = keys::id_at_end::<WebhookId>(&lane) else { continue };
                let first = reads.range(with_prefix(&keys::outbox_of(&endpoint)), 1).await?;
                oldest = oldest.into_iter().chain(first.first().and_then(due_since)).min();
            }
        }
        Ok(oldest)
    }
}

pub(super) struct Candidate {
    /// Its key in the queue, by which work sorts.
    pub(super) key: Vec<u8>,
    pub(super) work: Work,
    /// The payment or payout whose work is done in order, if any. While an earlier piece is claimed, a later one waits.
    pub(super) subject: Option<Subject>,
}

/// The due work of a queue of a cell, the earliest first.
pub(super) struct DueWork<'b> {
    queue: Queue,
    scan: Scan<'b>,
    of_key: std::vec::IntoIter<Candidate>,
}

impl<'b> DueWork<'b> {
    pub(super) fn new(reads: Reads<'b>, queue: Queue, now: Timestamp) -> Self {
        let keys = match queue {
            Queue::FanOut => with_prefix(&keys::pending_events()),
            Queue::Lanes => with_prefix(&keys::lanes()),
            Queue::Retries => RETRIES.before(now),
            Queue::Expiry => EXPIRIES.before(now),
            Queue::GatewayChecks => CHECKS.before(now),
        };
        Self { queue, scan: Scan::new(reads, keys), of_key: Vec::new().into_iter() }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Candidate>> {
        loop {
            if let Some(due) = self.of_key.next() {
                return Ok(Some(due));
            }
            let Some((key, value)) = self.scan.next().await? else { return Ok(None) };
            self.of_key = due_of(self.queue, &key, &value).into_iter();
        }
    }
}

/// When the next work of a queue becomes due after a time; `None` if there is none, or if its work is untimed.
pub(super) async fn due_after(reads: Reads<'_>, queue: Queue, now: Timestamp) -> Result<Option<Timestamp>> {
    let Some(index) = by_time(queue) else { return Ok(None) };
    let first = reads.range(index.before(now).end..index.all().end, 1).await?;
    Ok(first.first().and_then(|(key, _)| index.time_of(key)))
}

/// The work that a key of a queue names.
fn due_of(queue: Queue, key: &[u8], value: &[u8]) -> Vec<Candidate> {
    let works = match by_time(queue) {
        Some(_) => works_at(queue, key, value),
        // This includes work on an unreadable record. Doing that work reports the error, and does not stop other work.
        None => keys::rest_of(key).and_then(|id| queue.work(id)).into_iter().collect(),
    };
    let subject: Option<Subject> =
        str::from_utf8(value).ok().filter(|_| queue == Queue::FanOut).and_then(|id| id.parse().ok());
    works.into_iter().map(|work| Candidate { key: key.to_vec(), work, subject: subject.clone() }).collect()
}

fn works_at(queue: Queue, key: &[u8], value: &[u8]) -> Vec<Work> {
    let Some(index) = by_time(queue) else { return Vec::new() };
    let owners = owners_at(index, key, value).into_iter();
    owners.filter_map(|owner| queue.work(str::from_utf8(&owner).ok()?)).collect()
}

/// The time index of a queue of timed work. Its owners are the ids of the work.
fn by_time(queue: Queue) -> Option<TimeIndex> {
    match queue {
        Queue::FanOut | Queue::Lanes => None,
        Queue::Retries => Some(RETRIES),
        Queue::Expiry => Some(EXPIRIES),
        Queue::GatewayChecks => Some(CHECKS),
    }
}

/// The first deliveries of an outbox. A key without a valid name does not count.
async fn names(reads: Reads<'_>, endpoint: &WebhookId, at_most: usize) -> Result<Vec<DeliveryId>> {
    let found = reads.range(with_prefix(&keys::outbox_of(endpoint)), at_most).await?;
    Ok(found.iter().filter_map(|(key, _)| keys::id_at_end(key)).collect())
}

/// Since when a delivery of an outbox is due.
fn due_since((key, value): &KeyValue) -> Option<Timestamp> {
    let millis = str::from_utf8(value).ok().and_then(|millis| millis.parse().ok());
    let due_since = millis.and_then(|millis| Timestamp::from_millis(millis).ok());
    due_since.or_else(|| keys::id_at_end::<DeliveryId>(key)?.created_at())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Lease, layout::MemoryStore};

    #[tokio::test]
    async fn work_before_unreadable_work_is_claimed_and_the_next_call_reports_the_error() {
        let store = Arc::new(MemoryStore::default());
        let lane = |nth: u8| keys::lane(&format!("wh_{nth}").parse().unwrap());
        (1..=4).for_each(|nth| store.bytes.set(&lane(nth), Vec::new()));
        store.bytes.damage(&lane(3));
        let lease = Lease::new(Timestamp::UNIX_EPOCH, 10);
        let claims = store.claim(Queue::Lanes, &lease, 9).await.unwrap();
        let names: Vec<_> = claims.iter().map(|claim| claim.work.clone()).collect();
        assert_eq!(names, ["wh_1", "wh_2"].map(|id| Work::Lane(id.parse().unwrap())));
        assert!(store.claim(Queue::Lanes, &lease, 9).await.is_err());
        store.bytes.mend();
        assert_eq!(store.claim(Queue::Lanes, &lease, 1).await.unwrap().len(), 1);
    }
}
