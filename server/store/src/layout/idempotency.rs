//! The records of idempotency keys: stored responses, and claims.

use payments_core::{EventId, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Store,
    draft::Draft,
    entry::{Entry, Record},
    event,
    keys::{self, CLAIMS, RESPONSES},
};
use crate::{
    ClaimEnd, CommitError, Conflict, NewResponse, StoreError, Write,
    domain::{ClaimToken, IdempotencyKey, KeyClaim, StoredResponse},
};

/// A response as it is stored: with its body, or with the event whose data is the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    pub(super) fingerprint: String,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<RawJson>,
    /// The event whose data is the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<EventId>,
}

pub(super) struct ResponseOf {
    pub(super) key: IdempotencyKey,
    pub(super) kept: ResponseRecord,
}

impl Record for ResponseOf {
    fn key(&self) -> Vec<u8> {
        keys::response(&self.key)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self.kept)
    }

    fn entries(&self) -> Vec<Entry> {
        vec![Entry::At { index: RESPONSES, time: self.kept.created_at, owner: self.key() }]
    }
}

pub(super) struct ClaimOn {
    pub(super) key: IdempotencyKey,
    pub(super) claim: KeyClaim,
}

impl Record for ClaimOn {
    fn key(&self) -> Vec<u8> {
        keys::claim(&self.key)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&self.claim)
    }

    fn entries(&self) -> Vec<Entry> {
        vec![Entry::At { index: CLAIMS, time: self.claim.until, owner: self.key() }]
    }
}

impl ResponseRecord {
    /// The response with its body. `data` is the data of its event, if it names one.
    fn whole(self, at: &[u8], data: Option<RawJson>) -> Result<StoredResponse, StoreError> {
        let Self { fingerprint, created_at, body, .. } = self;
        let missing = || StoreError::corrupt(at, "it has no body, and names no event that has it");
        Ok(StoredResponse { fingerprint, created_at, body: body.or(data).ok_or_else(missing)? })
    }
}

impl Store {
    /// The stored response of an idempotency key, however old.
    pub async fn stored_response(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>, StoreError> {
        let (reads, at) = (self.of_scope(&key.scope), keys::response(key));
        let Some(kept) = reads.json::<ResponseRecord>(at.clone()).await? else { return Ok(None) };
        let whole = event::whole_events(reads, kept.event.as_slice()).await?.pop();
        kept.whole(&at, whole.map(|whole| whole.data)).map(Some)
    }
}

impl Draft<'_> {
    /// Stores the response of a change with these writes.
    pub(super) fn keep(&mut self, keep: &NewResponse, writes: &[Write]) -> Result<(), CommitError> {
        let NewResponse { key, fingerprint, created_at, body, claim } = keep;
        let before = self.check_unused(key, *created_at)?;
        self.end_claim(key, claim)?;
        // A body that equals the data of this change's event is stored once.
        let event = writes.iter().find_map(|write| {
            let Write::Payment(write) = write else { return None };
            write.event.as_ref().filter(|event| event.data == *body).map(|event| event.id.clone())
        });
        let body = event.is_none().then(|| body.clone());
        let kept = ResponseRecord { fingerprint: fingerprint.clone(), created_at: *created_at, body, event };
        let before = before.map(|kept| ResponseOf { key: key.clone(), kept });
        self.replace(before.as_ref(), &ResponseOf { key: key.clone(), kept })
    }

    /// Checks that a key has no valid response. Returns one that is no longer valid.
    fn check_unused(&mut self, key: &IdempotencyKey, now: Timestamp) -> Result<Option<ResponseRecord>, CommitError> {
        let at = keys::response(key);
        let Some(kept) = self.json::<ResponseRecord>(&at)? else { return Ok(None) };
        if !StoredResponse::is_fresh_at(kept.created_at, now) {
            return Ok(Some(kept));
        }
        let data = kept.event.as_ref().map(|event| self.data_of(event)).transpose()?.flatten();
        Err(Conflict::IdempotencyKeyUsed(Box::new(kept.whole(&at, data)?)).into())
    }

    /// Claims a key, if it is unused and no lease on it runs.
    pub(super) fn claim_key(&mut self, key: &IdempotencyKey, claim: &KeyClaim) -> Result<(), CommitError> {
        self.check_unused(key, claim.claimed_at)?;
        let held = self.held(key)?;
        match held {
            Some(held) if held.claim.runs_at(claim.claimed_at) => {
                Err(Conflict::KeyClaimed(Box::new(held.claim)).into())
            }
            held => self.replace(held.as_ref(), &ClaimOn { key: key.clone(), claim: claim.clone() }),
        }
    }

    /// Ends the claim on a key whose response is stored. Pruning may have removed the claim already.
    fn end_claim(&mut self, key: &IdempotencyKey, end: &ClaimEnd) -> Result<(), CommitError> {
        if *end == ClaimEnd::NotClaimed {
            return Ok(());
        }
        let Some(held) = self.held(key)? else { return Ok(()) };
        if matches!(end, ClaimEnd::Held(token) if held.claim.token != *token) {
            return Err(Conflict::ClaimLost.into());
        }
        self.delete(&held)
    }

    /// Ends a claim, if it is still held.
    pub(super) fn release_key(&mut self, key: &IdempotencyKey, token: &ClaimToken) -> Result<(), CommitError> {
        match self.held(key)? {
            Some(held) if held.claim.token == *token => self.delete(&held),
            _ => Ok(()),
        }
    }

    fn held(&mut self, key: &IdempotencyKey) -> Result<Option<ClaimOn>, CommitError> {
        let claim = self.json(&keys::claim(key))?;
        Ok(claim.map(|claim| ClaimOn { key: key.clone(), claim }))
    }

    /// Drops the claim at a key.
    pub(super) fn drop_claim(&mut self, at: &[u8]) -> Result<(), CommitError> {
        match keys::idempotency_key(at).map(|key| self.held(&key)).transpose()?.flatten() {
            Some(held) => self.delete(&held),
            None => Ok(()),
        }
    }

    /// Drops the response or claim at a key, if it is still older than a time.
    pub(super) fn drop_if_older(&mut self, at: &[u8], before: Timestamp) -> Result<(), CommitError> {
        let Some(key) = keys::idempotency_key(at) else { return Ok(()) };
        match keys::kind_of(at) {
            Some((_, "response")) => match self.json::<ResponseRecord>(at)? {
                Some(kept) if kept.created_at < before => self.delete(&ResponseOf { key, kept }),
                _ => Ok(()),
            },
            _ => match self.held(&key)? {
                Some(held) if held.claim.until < before => self.delete(&held),
                _ => Ok(()),
            },
        }
    }
}
