//! One `Idempotency-Key`, one effect (API specification, "Idempotency").
//!
//! The response is kept in the same commit as what it tells of, and the store lets only the first of two such commits
//! through. So whatever races or crashes, a key has either had its effect and its response, or neither.

use payments_core::{RawJson, Timestamp};
use sha2::{Digest, Sha256};

use super::{Refused, Service};
use crate::store::{IdempotencyKey, Keep, KeptResponse, Scope, Text};

/// A request that may come again under the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotentRequest {
    key: IdempotencyKey,
    fingerprint: String,
}

/// What a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The body.
    pub(crate) body: RawJson,
    /// Whether it is the answer that an earlier request with the same key got.
    pub(crate) replayed: bool,
}

impl Answer {
    pub(crate) fn fresh(body: RawJson) -> Self {
        Self { body, replayed: false }
    }
}

impl IdempotentRequest {
    /// A request, told by its method, path and body's bytes, under the header's text.
    pub(crate) fn new(scope: &Scope, method: &str, path: &str, text: &str, body: &[u8]) -> Self {
        Self { key: IdempotencyKey::new(scope, method, path, text), fingerprint: hex::encode(Sha256::digest(body)) }
    }

    /// What to keep when the request has succeeded with this body.
    pub(super) fn keep(&self, body: Text, now: Timestamp) -> Keep {
        Keep { key: self.key.clone(), fingerprint: self.fingerprint.clone(), created_at: now, body }
    }

    /// What to remember of the request while what it asks for is under way.
    pub(super) fn to_parts(&self) -> (IdempotencyKey, String) {
        (self.key.clone(), self.fingerprint.clone())
    }

    /// The request that was remembered so.
    pub(super) fn of_parts((key, fingerprint): (IdempotencyKey, String)) -> Self {
        Self { key, fingerprint }
    }

    /// The first request's answer, if this is the same request.
    pub(super) fn answer_from(&self, kept: KeptResponse) -> Result<Answer, Refused> {
        if kept.fingerprint == self.fingerprint {
            Ok(Answer { body: kept.body, replayed: true })
        } else {
            Err(Refused::IdempotencyKeyReused)
        }
    }
}

impl Service {
    /// The answer that this request already got, if it did. What the store shows is durable, so the answer is final.
    pub(crate) async fn replay(&self, request: &IdempotentRequest) -> Result<Option<Answer>, Refused> {
        let kept = self.store.kept_response(&request.key).await?;
        kept.filter(|kept| kept.is_fresh(self.ambient.now())).map(|kept| request.answer_from(kept)).transpose()
    }
}
