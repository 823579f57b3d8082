//! The idempotency record of an `Idempotency-Key`: its claim and its stored response.

use payments_core::{RawJson, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Scope;

/// Identifies an `Idempotency-Key` by developer, environment, method, route with its parameter, and header text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdempotencyKey {
    pub scope: Scope,
    /// SHA-256 of method, route and header text.
    pub digest: [u8; 32],
}

impl IdempotencyKey {
    /// `path` is the route with its parameter.
    pub fn new(scope: &Scope, method: &str, path: &str, text: &str) -> Self {
        // None of the three contains a newline, so the separators are unambiguous.
        let digest = Sha256::digest(format!("{method}\n{path}\n{text}")).into();
        Self { scope: scope.clone(), digest }
    }
}

/// A request's claim on its idempotency key while it acts outside the store: a lease with a fencing token.
///
/// Other requests with the key wait for the holder's response. The lease frees the key after a crash. The token tells a
/// request that outlived its lease that another request took over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyClaim {
    pub token: ClaimToken,
    /// See [`StoredResponse::fingerprint`].
    pub fingerprint: String,
    pub claimed_at: Timestamp,
    pub until: Timestamp,
}

/// A claim's fencing token: random, so unique to the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimToken(String);

impl ClaimToken {
    pub fn new(random: [u8; 16]) -> Self {
        Self(hex::encode(random))
    }
}

/// How long a stored response is valid (API specification, "Limits").
const VALID_FOR_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// The stored response of an idempotency key: the response of its first successful request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The fingerprint of the request's body: a version prefix, then hex. A request with the same key and another fingerprint
    /// is an error.
    pub fingerprint: String,
    /// When the response was stored. It is valid for 24 hours.
    pub created_at: Timestamp,
    /// The body of the response. Its status follows from the route.
    pub body: RawJson,
}

impl StoredResponse {
    /// Whether a response stored at `stored_at` is still valid. Afterwards its key can be used for another request.
    pub fn is_fresh_at(stored_at: Timestamp, now: Timestamp) -> bool {
        now.as_millis() - stored_at.as_millis() < VALID_FOR_MILLIS
    }

    /// Responses stored before this time are no longer valid.
    pub fn stale_before(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() - VALID_FOR_MILLIS).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_valid_for_a_day() {
        let now = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let before = StoredResponse::stale_before(now);
        assert_eq!(now.as_millis() - before.as_millis(), 86_400_000);
        assert!(StoredResponse::is_fresh_at(before.plus_millis(1), now));
        assert!(!StoredResponse::is_fresh_at(before, now));
    }
}
