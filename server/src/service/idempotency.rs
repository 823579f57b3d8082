//! One `Idempotency-Key`, one effect (API specification, "Idempotency").
//!
//! The response is kept in the same commit as what it tells of, and the store lets only the first of two such commits
//! through. So whatever races or crashes, a key has either had its effect and its response, or neither. An effect outside
//! the store is [claimed](super::claims) before.

use bytes::Bytes;
use payments_core::{RawJson, Timestamp};
use sha2::{Digest, Sha256};

use super::{Refused, Service, canonical};
use crate::domain::{ClaimToken, IdempotencyKey, KeptResponse, Scope};
use crate::store::{ClaimEnd, Keep};

/// A request that may come again under the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotentRequest {
    key: IdempotencyKey,
    /// What its body means: [`MEANING`] and a [fingerprint](canonical::fingerprint).
    fingerprint: String,
    /// Its body, to compare by the rule of earlier versions. Unknown where the request itself is gone.
    body: Option<Bytes>,
    /// What keeping its response does about the claim on its key.
    claim: ClaimEnd,
}

/// Marks the fingerprints of what a body means. Those of its bytes, which earlier versions stored, have no mark.
const MEANING: &str = "v2:";

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
    /// A request, told by its method, its path and what its body means, under the header's text.
    pub(crate) fn new(scope: &Scope, method: &str, path: &str, text: &str, body: &Bytes) -> Self {
        Self {
            key: IdempotencyKey::new(scope, method, path, text),
            fingerprint: format!("{MEANING}{}", canonical::fingerprint(body)),
            body: Some(body.clone()),
            claim: ClaimEnd::NotClaimed,
        }
    }

    /// Whether a stored fingerprint is of the same request: by the rule of the version that stored it.
    pub(super) fn is_same_as(&self, stored: &str) -> bool {
        if stored.starts_with(MEANING) {
            return stored == self.fingerprint;
        }
        self.body.as_ref().is_some_and(|body| stored == hex::encode(Sha256::digest(body)))
    }

    /// Whether these are the parts that were remembered of this very request.
    pub(super) fn is_of(&self, parts: &(IdempotencyKey, String)) -> bool {
        self.key == parts.0 && self.is_same_as(&parts.1)
    }

    /// What to keep when the request has succeeded with this body.
    pub(super) fn keep(&self, body: RawJson, now: Timestamp) -> Keep {
        let (key, fingerprint, claim) = (self.key.clone(), self.fingerprint.clone(), self.claim.clone());
        Keep { key, fingerprint, created_at: now, body, claim }
    }

    pub(super) fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The request that holds a claim on its key.
    pub(super) fn holding(self, token: ClaimToken) -> Self {
        Self { claim: ClaimEnd::Held(token), ..self }
    }

    /// What to remember of the request while what it asks for is under way.
    pub(super) fn to_parts(&self) -> (IdempotencyKey, String) {
        (self.key.clone(), self.fingerprint.clone())
    }

    /// The request that was remembered so.
    pub(super) fn of_parts((key, fingerprint): (IdempotencyKey, String)) -> Self {
        // Several may see such an effect through; the payment's version says who was first.
        Self { key, fingerprint, body: None, claim: ClaimEnd::Any }
    }

    /// The first request's answer, if this is the same request.
    pub(super) fn answer_from(&self, kept: KeptResponse) -> Result<Answer, Refused> {
        if self.is_same_as(&kept.fingerprint) {
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

#[cfg(test)]
mod tests {
    use payments_core::Environment;

    use super::*;

    fn request(body: &str) -> IdempotentRequest {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        IdempotentRequest::new(&scope, "POST", "/api/v1/payments", "order-1", &Bytes::copy_from_slice(body.as_bytes()))
    }

    fn stored(fingerprint: String) -> KeptResponse {
        let body = RawJson::of(&()).unwrap();
        KeptResponse { fingerprint, created_at: Timestamp::from_millis(0).unwrap(), body }
    }

    #[test]
    fn a_record_of_an_earlier_version_is_compared_by_its_bytes_and_one_of_this_by_what_it_means() {
        let (first, spaced, other) = (request(r#"{"a":1,"b":2}"#), request(r#"{"b":2, "a":1}"#), request(r#"{"a":1}"#));
        let earlier = hex::encode(Sha256::digest(br#"{"a":1,"b":2}"#));
        let present = first.to_parts().1;
        for (fingerprint, request, is_same) in [
            (&earlier, &first, true),
            (&earlier, &spaced, false),
            (&earlier, &other, false),
            (&present, &first, true),
            (&present, &spaced, true),
            (&present, &other, false),
        ] {
            assert_eq!(request.answer_from(stored(fingerprint.clone())).is_ok(), is_same, "{fingerprint} {request:?}");
        }
        assert!(spaced.is_of(&first.to_parts()) && !other.is_of(&first.to_parts()));
    }

    #[test]
    fn a_refund_that_an_earlier_version_left_under_way_is_finished_for_the_request_that_asked_for_it() {
        let request = request("{}");
        let left = (request.key.clone(), hex::encode(Sha256::digest(b"{}")));
        assert!(request.is_of(&left));
        assert!(request.answer_from(stored(IdempotentRequest::of_parts(left).fingerprint)).is_ok());
    }
}
