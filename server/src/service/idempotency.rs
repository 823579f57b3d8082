//! One `Idempotency-Key`, one effect (API specification, "Idempotency").
//!
//! One commit stores the response and the effect, and the store accepts only the first commit under a key. So a key has
//! both its effect and its response, or neither, even after a race or a crash. For an effect outside the store, the
//! request [claims](super::claims) the key first.

use bytes::Bytes;
use payments_core::{RawJson, Timestamp};

use super::{Result, Service, ServiceError, canonical, records::Records};
use crate::domain::{ClaimToken, IdempotencyKey, Scope, StoredResponse};
use crate::store::{Change, ClaimEnd, CommitError, Conflict, NewResponse, Write};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    key: IdempotencyKey,
    /// The body's [fingerprint](canonical::fingerprint).
    fingerprint: String,
    /// What storing the response does to the claim on the key.
    claim: ClaimEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub body: RawJson,
    /// Whether this is the stored response of an earlier request with the same key.
    pub replayed: bool,
}

impl Answer {
    pub fn fresh(body: RawJson) -> Self {
        Self { body, replayed: false }
    }
}

impl IdempotentRequest {
    /// A request with this method, path and body. The path is the route with its parameter; `text` is the `Idempotency-Key`
    /// header.
    pub fn new(scope: &Scope, method: &str, path: &str, text: &str, body: &Bytes) -> Self {
        Self {
            key: IdempotencyKey::new(scope, method, path, text),
            fingerprint: canonical::fingerprint(body),
            claim: ClaimEnd::NotClaimed,
        }
    }

    /// Whether a stored fingerprint belongs to this request.
    pub(super) fn has(&self, fingerprint: &str) -> bool {
        self.fingerprint == fingerprint
    }

    pub(super) fn matches(&self, parts: &(IdempotencyKey, String)) -> bool {
        self.key == parts.0 && self.fingerprint == parts.1
    }

    /// The idempotency record to commit if the request succeeds with this body.
    fn to_record(&self, body: RawJson, now: Timestamp) -> NewResponse {
        let (key, fingerprint) = self.to_parts();
        NewResponse { key, fingerprint, created_at: now, body, claim: self.claim.clone() }
    }

    pub(super) fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    /// The request with a claim on its key.
    pub(super) fn holding(self, token: ClaimToken) -> Self {
        Self { claim: ClaimEnd::Held(token), ..self }
    }

    /// The key and the fingerprint, to store while the request is in progress.
    pub(super) fn to_parts(&self) -> (IdempotencyKey, String) {
        (self.key.clone(), self.fingerprint.clone())
    }

    /// Restores a request from its stored parts.
    pub(super) fn of_parts((key, fingerprint): (IdempotencyKey, String)) -> Self {
        // Several workers may finish the request. The payment's version admits only the first.
        Self { key, fingerprint, claim: ClaimEnd::Any }
    }

    /// Replays a stored response if it belongs to this request.
    pub(super) fn answer_from(&self, stored: StoredResponse) -> Result<Answer> {
        if self.fingerprint == stored.fingerprint {
            Ok(Answer { body: stored.body, replayed: true })
        } else {
            Err(ServiceError::IdempotencyKeyReused)
        }
    }
}

impl Records<'_> {
    /// Commits a request's change with its response. If another request with the same key committed first, returns its response.
    pub(super) async fn commit_once(
        self,
        writes: Vec<Write>,
        body: RawJson,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        let idempotency = request.map(|request| request.to_record(body.clone(), self.ambient.now()));
        match (self.commit(Change { idempotency, writes, ..Change::default() }).await, request) {
            (Ok(()), _) => Ok(Answer::fresh(body)),
            (Err(CommitError::Conflict(Conflict::IdempotencyKeyUsed(stored))), Some(request)) => {
                request.answer_from(*stored)
            }
            (Err(error), _) => Err(error.into()),
        }
    }
}

impl Service {
    /// The stored response of this request, if there is one. It is durable, so it is final.
    pub async fn replay(&self, request: &IdempotentRequest) -> Result<Option<Answer>> {
        let stored = self.store.stored_response(&request.key).await?;
        stored
            .filter(|it| StoredResponse::is_fresh_at(it.created_at, self.ambient.now()))
            .map(|it| request.answer_from(it))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use payments_core::Environment;

    use super::*;

    fn request(body: &str) -> IdempotentRequest {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        IdempotentRequest::new(&scope, "POST", "/api/v1/payments", "order-1", &Bytes::copy_from_slice(body.as_bytes()))
    }

    fn stored(fingerprint: String) -> StoredResponse {
        let body = RawJson::of(&()).unwrap();
        StoredResponse { fingerprint, created_at: Timestamp::from_millis(0).unwrap(), body }
    }

    #[test]
    fn a_stored_response_answers_only_requests_with_the_same_meaning() {
        let (first, spaced, other) = (request(r#"{"a":1,"b":2}"#), request(r#"{"b":2, "a":1}"#), request(r#"{"a":1}"#));
        let present = first.to_parts().1;
        for (request, is_same) in [(&first, true), (&spaced, true), (&other, false)] {
            assert_eq!(request.answer_from(stored(present.clone())).is_ok(), is_same, "{request:?}");
        }
        assert!(spaced.matches(&first.to_parts()) && !other.matches(&first.to_parts()));
        let restored = IdempotentRequest::of_parts(first.to_parts());
        assert!(restored.answer_from(stored(present)).is_ok());
    }
}
