//! Claims on work: one holder for each piece of it.
//!
//! If several servers share the store, claims are stored as values of the cell, the leases. If one process has the
//! store, it keeps them in memory, and they end when it starts again. A crash may lose leases: changes under a lost
//! lease fail, and the work is claimed again.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use payments_core::{Timestamp, WebhookId};
use tokio::time::{Instant, interval_at};

use super::{
    Store,
    draft::Draft,
    keys, store_error,
    work::{Candidate, DueWork, due_after},
};
use crate::{
    Claim, CommitError, Lease, Leases, Queue, Result, StoreError, Work, bytes::Cell, domain::Subject, leases::Held,
};

/// How often the claim on long work is renewed: several times in a lease.
const RENEWAL: Duration = Duration::from_secs(3);

#[derive(Clone)]
pub enum Claims {
    InMemory(Arc<Leases>),
    /// As values. Epochs count on from a random number, so that no other server's claims have the same.
    Stored(Arc<AtomicU64>),
}

/// Payments and payouts with a claimed event. Their later events wait.
#[derive(Default)]
struct Waiting(HashSet<Subject>);

impl Waiting {
    /// Whether a piece of work waits for an earlier one of its subject.
    fn has(&self, subject: Option<&Subject>) -> bool {
        subject.is_some_and(|subject| self.0.contains(subject))
    }
}

impl Store {
    /// Claims at most `at_most` pieces of due and unclaimed work.
    pub async fn claim(&self, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<Claim>> {
        if let Claims::InMemory(leases) = &self.claims {
            leases.drop_ended(lease);
        }
        let each = self.bytes.cells()?.into_iter().map(|cell| self.free_in(cell, queue, lease, at_most));
        let mut failed = None;
        let mut free = succeeded(join_all(each).await, &mut failed)?;
        free.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
        free.truncate(at_most);
        let claims = by_cell(free).into_iter().map(|(cell, free)| self.claim_in(cell, free, lease));
        let mut claimed = succeeded(join_all(claims).await, &mut failed)?;
        claimed.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(claimed.into_iter().map(|(_, claim)| claim).collect())
    }

    /// The first pieces of due and unclaimed work of a cell.
    async fn free_in(&self, cell: Cell, queue: Queue, lease: &Lease, at_most: usize) -> Result<Vec<(Cell, Candidate)>> {
        // Read this before looking: then a commit during the look causes another look.
        let newest = self.bytes.newest(cell).await?;
        if self.looks.is_vain(cell.0, queue, newest, lease.now) {
            return Ok(Vec::new());
        }
        let mut due = DueWork::new(self.in_cell(cell), queue, lease.now);
        let (mut free, mut waiting, mut held) = (Vec::new(), Waiting::default(), None);
        while free.len() < at_most {
            let candidate = match due.next().await {
                Ok(Some(candidate)) => candidate,
                Ok(None) => break,
                Err(_) if !free.is_empty() => break,
                Err(error) => return Err(error),
            };
            let held = match &held {
                Some(held) => held,
                None => held.insert(self.held_in(cell, queue, lease).await?),
            };
            if waiting.has(candidate.subject.as_ref()) {
                continue;
            }
            if held.contains(&candidate.work) {
                waiting.0.extend(candidate.subject);
            } else {
                free.push((cell, candidate));
            }
        }
        // If work is claimed, look again next time: a lease ends without a commit.
        if let Some(newest) = newest.filter(|_| held.is_none()) {
            let until = due_after(self.in_cell(cell), queue, lease.now).await?;
            self.looks.note(cell.0, queue, newest, until);
        }
        Ok(free)
    }

    /// The claimed work of a queue.
    async fn held_in(&self, cell: Cell, queue: Queue, lease: &Lease) -> Result<HashSet<Work>> {
        if let Claims::InMemory(leases) = &self.claims {
            return Ok(leases.running(lease));
        }
        let prefix = keys::leases(queue.name());
        let found = self.in_cell(cell).all_with(&prefix).await?;
        let running = found.iter().filter_map(|(key, value)| {
            let is_running = Held::decode(value).is_some_and(|held| held.runs_under(lease));
            is_running.then(|| queue.work(str::from_utf8(&key[prefix.len()..]).ok()?)).flatten()
        });
        Ok(running.collect())
    }

    /// Claims pieces of work of a cell, unless somebody was faster.
    async fn claim_in(&self, cell: Cell, free: Vec<Candidate>, lease: &Lease) -> Result<Vec<(Vec<u8>, Claim)>> {
        let epochs = match &self.claims {
            Claims::InMemory(leases) => {
                return claim_each(&free, |work| Ok(leases.claim(work.clone(), lease)));
            }
            Claims::Stored(epochs) => epochs.fetch_add(free.len() as u64, Ordering::Relaxed),
        };
        let lease = lease.clone();
        let claimed = self.decide(cell, false, move |draft| {
            let mut epoch = epochs;
            claim_each(&free, |work| {
                epoch = epoch.wrapping_add(1);
                draft.claim(work, epoch, &lease)
            })
        });
        claimed.await.map_err(store_error)
    }

    /// Claims an endpoint's lane; `None` if its outbox is empty or the lane is claimed.
    pub async fn claim_lane(&self, endpoint: &WebhookId, lease: &Lease) -> Result<Option<Claim>> {
        let (key, work) = (keys::lane(endpoint), Work::Lane(endpoint.clone()));
        let epoch = match &self.claims {
            Claims::InMemory(leases) => {
                let is_pending = self.of(endpoint.slot()).one(key).await?.is_some();
                return Ok(if is_pending { leases.claim(work, lease) } else { None });
            }
            Claims::Stored(epochs) => epochs.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
        };
        let lease = lease.clone();
        let claimed = self.decide(self.bytes.cell_of(endpoint.slot()), false, move |draft| {
            let (is_pending, held) = (draft.get(&key)?.is_some(), draft.held_on(&work)?);
            let is_free = is_pending && !held.is_some_and(|held| held.runs_under(&lease));
            Ok(is_free.then(|| draft.give(&work, epoch, &lease)))
        });
        claimed.await.map_err(store_error)
    }

    /// Drops leases that ended before a time, at most `at_most` in each cell. Such a lease stays if its server dies when the
    /// work is done.
    pub(super) async fn drop_ended_leases(&self, before: Timestamp, at_most: usize) -> Result<()> {
        if let Claims::InMemory(_) = self.claims {
            return Ok(());
        }
        for cell in self.bytes.cells()? {
            let reads = self.in_cell(cell);
            let has_ended = move |value: &[u8]| Held::decode(value).is_none_or(|held| held.until < before);
            let mut ended = reads.all_with(&keys::all_leases()).await?;
            ended.retain(|(_, value)| has_ended(value));
            ended.truncate(at_most);
            if ended.is_empty() {
                continue;
            }
            let dropped = self.decide(cell, false, move |draft| {
                for (key, _) in &ended {
                    if draft.get(key)?.is_some_and(|value| has_ended(&value)) {
                        draft.remove(key.clone());
                    }
                }
                Ok(())
            });
            dropped.await.map_err(store_error)?;
        }
        Ok(())
    }

    /// Extends a claim to the end of `lease`. Returns whether it still counts.
    pub async fn renew(&self, claim: &Claim, lease: &Lease) -> Result<bool> {
        if let Claims::InMemory(leases) = &self.claims {
            return Ok(leases.renew(claim, lease));
        }
        let (claim, until) = (claim.clone(), lease.until);
        let cell = self.bytes.cell_of(claim.work.slot());
        let renewed = self.decide(cell, false, move |draft| {
            let holds = draft.holds(&claim)?;
            if holds {
                draft.put(keys::lease_on(&claim.work), Held { epoch: claim.epoch, until }.encode());
            }
            Ok(holds)
        });
        renewed.await.map_err(store_error)
    }

    /// Renews a claim until it no longer counts.
    pub async fn renew_until_lost(&self, claim: &Claim, lease: impl Fn() -> Lease) {
        let mut ticks = interval_at(Instant::now() + RENEWAL, RENEWAL);
        loop {
            ticks.tick().await;
            match self.renew(claim, &lease()).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "cannot renew a claim; retrying"),
            }
        }
    }

    /// Ends claims. The rest of the work can be claimed again at once.
    pub async fn release(&self, claims: &[Claim]) -> Result<()> {
        if let Claims::InMemory(leases) = &self.claims {
            claims.iter().for_each(|claim| leases.release(claim));
            return Ok(());
        }
        let claims = claims.iter().map(|claim| (self.bytes.cell_of(claim.work.slot()), claim.clone()));
        let releases = by_cell(claims).into_iter().map(|(cell, claims)| {
            self.decide(cell, false, move |draft| claims.iter().try_for_each(|claim| draft.release(claim)))
        });
        for released in join_all(releases).await {
            released.map_err(store_error)?;
        }
        Ok(())
    }
}

/// Joins what was found. Returns an error only if nothing was found: the next call meets it again.
fn succeeded<T>(each: Vec<Result<Vec<T>>>, failed: &mut Option<StoreError>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for found in each {
        match found {
            Ok(found) => all.extend(found),
            Err(error) => *failed = Some(error),
        }
    }
    failed.take_if(|_| all.is_empty()).map_or(Ok(all), Err)
}

fn by_cell<T>(each: impl IntoIterator<Item = (Cell, T)>) -> BTreeMap<Cell, Vec<T>> {
    let mut cells: BTreeMap<Cell, Vec<T>> = BTreeMap::new();
    for (cell, it) in each {
        cells.entry(cell).or_default().push(it);
    }
    cells
}

/// Claims pieces of work in their order. A later piece of a subject waits while an earlier one is claimed.
fn claim_each<E>(
    free: &[Candidate],
    mut claim: impl FnMut(&Work) -> Result<Option<Claim>, E>,
) -> Result<Vec<(Vec<u8>, Claim)>, E> {
    let (mut claimed, mut waiting) = (Vec::new(), Waiting::default());
    for Candidate { key, work, subject } in free {
        if waiting.has(subject.as_ref()) {
            continue;
        }
        match claim(work)? {
            Some(claim) => claimed.push((key.clone(), claim)),
            None => waiting.0.extend(subject.clone()),
        }
    }
    Ok(claimed)
}

impl Claims {
    /// Whether all these claims count.
    pub(super) fn hold(&self, draft: &mut Draft<'_>, claims: &[Claim]) -> Result<bool, CommitError> {
        let mut hold = true;
        for claim in claims {
            hold &= match self {
                Self::InMemory(leases) => leases.holds(claim),
                Self::Stored(_) => draft.holds(claim)?,
            };
        }
        Ok(hold)
    }
}

impl Draft<'_> {
    fn held_on(&mut self, work: &Work) -> Result<Option<Held>, CommitError> {
        let key = keys::lease_on(work);
        let Some(value) = self.get(&key)? else { return Ok(None) };
        Ok(Some(Held::decode(&value).ok_or_else(|| StoreError::corrupt(&key, "it is no lease"))?))
    }

    fn claim(&mut self, work: &Work, epoch: u64, lease: &Lease) -> Result<Option<Claim>, CommitError> {
        let is_held = self.held_on(work)?.is_some_and(|held| held.runs_under(lease));
        Ok((!is_held).then(|| self.give(work, epoch, lease)))
    }

    fn give(&mut self, work: &Work, epoch: u64, lease: &Lease) -> Claim {
        self.put(keys::lease_on(work), Held { epoch, until: lease.until }.encode());
        Claim { work: work.clone(), epoch }
    }

    fn holds(&mut self, claim: &Claim) -> Result<bool, CommitError> {
        Ok(self.held_on(&claim.work)?.is_some_and(|held| held.epoch == claim.epoch))
    }

    fn release(&mut self, claim: &Claim) -> Result<(), CommitError> {
        if self.holds(claim)? {
            self.remove(keys::lease_on(&claim.work));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use payments_core::Timestamp;

    use crate::{Lease, Prunable, Queue, bytes::Bytes as _, bytes::Cell, layout::MemoryStore};

    use super::keys;

    #[tokio::test]
    async fn an_ended_lease_on_finished_work_is_dropped() {
        let store = MemoryStore::default();
        let lane = keys::lane(&"wh_1".parse().unwrap());
        store.bytes.set(&lane, Vec::new());
        let at = |seconds| Timestamp::UNIX_EPOCH.plus_seconds(seconds);
        let claims = store.claim(Queue::Lanes, &Lease::new(at(0), 10), 9).await.unwrap();
        // The server dies when the lane's work is done.
        store.bytes.lose(&lane);
        let key = keys::lease_on(&claims[0].work);
        for (before, is_there) in [(10, true), (11, false)] {
            store.prune(Prunable::KeyClaims, at(before), 9).await.unwrap();
            let found = store.bytes.get(Cell(0), vec![key.clone()]).await.unwrap();
            assert_eq!(found[0].is_some(), is_there, "{before}");
        }
    }
}
