//! Claims on idempotency keys: which request may have an effect outside the store, and until when.
//!
//! A key has at most one claim. The commit that stores the response removes it, and so do a release and pruning. A start
//! removes all claims: the one process that could have made them is gone.

use payments_core::Timestamp;

use journaled_tree::Read;

use super::{
    codec::{Records, parse},
    keys,
    view::View,
};
use crate::domain::{ClaimToken, IdempotencyKey, KeyClaim};
use crate::store::{ClaimEnd, CommitError, Conflict, StoreError};

impl View<'_, '_> {
    /// Claims a key, if it is unused and no lease on it runs.
    pub(super) fn claim_key(&mut self, key: &IdempotencyKey, claim: &KeyClaim) -> Result<(), CommitError> {
        self.check_unused(&keys::idempotency(key), claim.claimed_at)?;
        let at = keys::claim(key);
        match self.read::<KeyClaim>(&at)? {
            Some(held) if held.runs_at(claim.claimed_at) => Err(Conflict::KeyClaimed(Box::new(held)).into()),
            _ => Ok(self.put(at, claim)?),
        }
    }

    /// Ends the claim on a key whose response is stored. Pruning may have removed it already.
    pub(super) fn end_claim(&mut self, key: &IdempotencyKey, end: &ClaimEnd) -> Result<(), CommitError> {
        let at = keys::claim(key);
        if let ClaimEnd::Held(token) = end
            && self.read::<KeyClaim>(&at)?.is_some_and(|held| held.token != *token)
        {
            return Err(Conflict::ClaimLost.into());
        }
        if *end != ClaimEnd::NotClaimed {
            self.remove(at);
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

    /// Drops at most `at_most` claims whose lease ended before a time, oldest first. Returns how many it dropped. There are
    /// few claims: one for each effect in progress, and those that a full disk kept from being released.
    pub(super) fn prune_claims(&mut self, ended_before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let mut ended = Vec::new();
        for entry in self.prefix(keys::CLAIMS) {
            let (key, json) = entry?;
            let claim: KeyClaim = parse(&key, &json)?;
            ended.push((claim.until, key));
        }
        ended.retain(|(until, _)| *until < ended_before);
        ended.sort();
        ended.truncate(at_most);
        ended.iter().for_each(|(_, key)| self.remove(key.clone()));
        Ok(ended.len())
    }

    /// Drops every claim, at a start.
    pub(super) fn void_claims(&mut self) -> Result<(), StoreError> {
        for entry in self.prefix(keys::CLAIMS) {
            self.remove(entry?.0);
        }
        Ok(())
    }
}
