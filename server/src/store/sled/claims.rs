//! Claims on idempotency keys: which request has an effect outside the store, and until when.
//!
//! A claim is a record under the key it is on. It is made where there is none or its lease has ended, and it is removed
//! with the commit that keeps the response, by its release, by pruning, or at a start: this engine has one process, so
//! whoever made a claim before is gone.

use payments_core::Timestamp;

use super::{journal::Writes, keys, view::View};
use crate::domain::{ClaimToken, IdempotencyKey, KeptResponse, KeyClaim};
use crate::store::{ClaimEnd, CommitError, Conflict, StoreError};

impl View<'_> {
    /// Makes a claim, if the key is unused and nobody else's lease runs.
    pub(super) fn claim_key(&mut self, key: &IdempotencyKey, claim: &KeyClaim) -> Result<(), CommitError> {
        let used = keys::idempotency(key);
        if let Some(used_at) = self.read::<Timestamp>(&used)?
            && KeptResponse::is_fresh_at(used_at, claim.claimed_at)
        {
            return Err(self.used(&used, used_at)?.into());
        }
        let at = keys::claim(key);
        match self.read::<KeyClaim>(&at)? {
            Some(held) if held.until > claim.claimed_at => Err(Conflict::KeyClaimed(Box::new(held)).into()),
            _ => Ok(self.put(at, claim)?),
        }
    }

    /// Ends the claim on a key whose response is kept.
    pub(super) fn end_claim(&mut self, key: &IdempotencyKey, end: &ClaimEnd) -> Result<(), CommitError> {
        let at = keys::claim(key);
        match end {
            ClaimEnd::NotClaimed => {}
            ClaimEnd::Held(token) => match self.read::<KeyClaim>(&at)? {
                Some(held) if held.token != *token => return Err(Conflict::ClaimLost.into()),
                Some(_) => self.remove(at),
                // It was pruned, and nobody has claimed the key since.
                None => {}
            },
            ClaimEnd::Any => self.remove(at),
        }
        Ok(())
    }

    /// Ends a claim, if it is still held.
    pub(super) fn release_key(&mut self, key: &IdempotencyKey, token: &ClaimToken) -> Result<(), StoreError> {
        let at = keys::claim(key);
        if self.read::<KeyClaim>(&at)?.is_some_and(|held| held.token == *token) {
            self.remove(at);
        }
        Ok(())
    }

    /// Drops claims whose lease ended before a time, the oldest first; how many it dropped. There are few claims: one for
    /// each effect under way, and those that a full disk kept from being released.
    pub(super) fn prune_claims(&mut self, ended_before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let mut ended = Vec::new();
        for entry in self.records().under(keys::CLAIMS) {
            let (key, _) = entry?;
            // As this batch leaves it: somebody may take it over in it.
            let claim = self.read::<KeyClaim>(&key)?;
            ended.extend(claim.map(|claim| (claim.until, key)).filter(|(until, _)| *until < ended_before));
        }
        ended.sort();
        ended.truncate(at_most);
        ended.iter().for_each(|(_, key)| self.remove(key.to_vec()));
        Ok(ended.len())
    }
}

/// What removes the claims of a process that is gone.
pub(super) fn of_a_gone_process(tree: &sled::Tree) -> Result<Writes, StoreError> {
    let claims = tree.scan_prefix(keys::CLAIMS).keys();
    claims.map(|key| Ok((key.map_err(StoreError::unavailable)?.to_vec(), None))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use payments_core::{Environment, RawJson};

    use super::super::SledStore;
    use crate::{
        ambient::OperatingSystem,
        domain::Scope,
        metrics::Metrics,
        store::{Change, Keep, Prunable, Store, Write},
    };

    use super::*;

    const LEASE: i64 = 20_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn open(directory: &std::path::Path) -> SledStore {
        SledStore::open(directory, Arc::new(OperatingSystem), Metrics::new().commits).unwrap().0
    }

    fn key() -> IdempotencyKey {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        IdempotencyKey::new(&scope, "POST", "/api/v1/webhooks/wh_1/test", "ping-1")
    }

    fn token(number: u8) -> ClaimToken {
        ClaimToken::new([number; 16])
    }

    async fn claim(store: &SledStore, number: u8, now: i64) -> Result<(), CommitError> {
        let claim =
            KeyClaim { token: token(number), fingerprint: "v2:1".into(), claimed_at: at(now), until: at(now + LEASE) };
        store.commit(Change::of(Write::KeyClaimed(Box::new((key(), claim))))).await
    }

    async fn finish(store: &SledStore, claim: ClaimEnd, now: i64) -> Result<(), CommitError> {
        let body = RawJson::new("{}").unwrap();
        let keep = Keep { key: key(), fingerprint: "v2:1".into(), created_at: at(now), body, claim };
        store.commit(Change { idempotency: Some(keep), ..Change::default() }).await
    }

    fn is_claimed(outcome: Result<(), CommitError>) -> bool {
        matches!(outcome, Err(CommitError::Conflict(Conflict::KeyClaimed(_))))
    }

    fn is_used(outcome: Result<(), CommitError>) -> bool {
        matches!(outcome, Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(_))))
    }

    #[tokio::test]
    async fn a_key_has_one_holder_until_it_finishes_releases_or_its_lease_ends() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        claim(&store, 1, 0).await.unwrap();
        assert!(is_claimed(claim(&store, 2, LEASE - 1).await));
        // Somebody else's release does nothing.
        store.commit(Change::of(Write::KeyReleased(key(), token(2)))).await.unwrap();
        assert!(is_claimed(claim(&store, 2, 1).await));
        store.commit(Change::of(Write::KeyReleased(key(), token(1)))).await.unwrap();
        claim(&store, 2, 1).await.unwrap();
        claim(&store, 3, 1 + LEASE).await.unwrap();
        let late = finish(&store, ClaimEnd::Held(token(2)), 2 + LEASE).await;
        assert!(matches!(late, Err(CommitError::Conflict(Conflict::ClaimLost))), "it was taken over");
        finish(&store, ClaimEnd::Held(token(3)), 2 + LEASE).await.unwrap();
        assert!(is_used(claim(&store, 4, 3 + LEASE).await));
        assert!(is_used(finish(&store, ClaimEnd::Held(token(2)), 3 + LEASE).await));
        // After a day the key is as good as new.
        let next_day = 2 + LEASE + 24 * 60 * 60 * 1000;
        claim(&store, 5, next_day).await.unwrap();
        finish(&store, ClaimEnd::Any, next_day + 1).await.unwrap();
        assert!(is_used(claim(&store, 6, next_day + 2).await));
        assert!(store.records.under(keys::CLAIMS).next().is_none());
    }

    #[tokio::test]
    async fn a_lease_that_ended_is_pruned_and_a_start_voids_every_claim() {
        let directory = tempfile::tempdir().unwrap();
        let opened = SledStore::open(directory.path(), Arc::new(OperatingSystem), Metrics::new().commits);
        let (store, closing) = opened.unwrap();
        claim(&store, 1, 0).await.unwrap();
        let prune = |time| store.prune(Prunable::KeyClaims, at(time), 9);
        assert_eq!(prune(LEASE).await.unwrap(), 0);
        assert!(is_claimed(claim(&store, 2, 1).await));
        assert_eq!(prune(LEASE + 1).await.unwrap(), 1);
        // One that has outlived its lease may finish as long as nobody has taken over.
        store.commit(Change::of(Write::KeyReleased(key(), token(1)))).await.unwrap();
        finish(&store, ClaimEnd::Held(token(1)), 1).await.unwrap();
        claim(&store, 2, 24 * 60 * 60 * 1000 + 1).await.unwrap();
        drop(store);
        tokio::task::spawn_blocking(|| closing.wait()).await.unwrap();
        claim(&open(directory.path()), 3, 24 * 60 * 60 * 1000 + 2).await.unwrap();
    }
}
