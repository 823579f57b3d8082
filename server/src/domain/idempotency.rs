//! What is kept of an `Idempotency-Key`: who claims it, and the response that it got.

use payments_core::{RawJson, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Scope;

/// What makes an `Idempotency-Key` one key: the developer, the environment, the method, the path, and the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct IdempotencyKey {
    pub(crate) scope: Scope,
    /// SHA-256 over method, path and the header's text.
    pub(crate) digest: [u8; 32],
}

impl IdempotencyKey {
    pub(crate) fn new(scope: &Scope, method: &str, path: &str, text: &str) -> Self {
        // None of the three can hold a newline, so no two of them run together.
        let digest = Sha256::new()
            .chain_update(method)
            .chain_update("\n")
            .chain_update(path)
            .chain_update("\n")
            .chain_update(text)
            .finalize();
        Self { scope: scope.clone(), digest: digest.into() }
    }
}

/// A request's right to have its effect outside the store, under its idempotency key: a lease with a fencing token.
///
/// The request that made the claim has the effect, the others wait for its answer. The lease ends what a crash leaves
/// behind; the token tells a request that outlived its lease that another one has taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyClaim {
    pub(crate) token: ClaimToken,
    /// As [`KeptResponse::fingerprint`]: another request under the key is a mistake.
    pub(crate) fingerprint: String,
    pub(crate) claimed_at: Timestamp,
    /// When the lease ends.
    pub(crate) until: Timestamp,
}

/// Tells one claim from every other: it is random and never used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ClaimToken(String);

impl ClaimToken {
    pub(crate) fn new(random: [u8; 16]) -> Self {
        Self(hex::encode(random))
    }
}

/// How long a response is kept for its idempotency key (API specification, "Limits").
const KEPT_FOR_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// The response that a key's first success got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptResponse {
    /// What the request's body means, in hex after a mark of how it was made: the same key with another request is a
    /// mistake.
    pub(crate) fingerprint: String,
    /// When it was kept; it counts for 24 hours.
    pub(crate) created_at: Timestamp,
    /// The body of the response. Its status follows from the route.
    pub(crate) body: RawJson,
}

impl KeptResponse {
    /// Whether it still counts; after 24 hours the key is as good as new.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        Self::is_fresh_at(self.created_at, now)
    }

    /// Whether what was kept at a time still counts.
    pub(crate) fn is_fresh_at(kept: Timestamp, now: Timestamp) -> bool {
        now.as_millis() - kept.as_millis() < KEPT_FOR_MILLIS
    }

    /// What was kept before this time no longer counts.
    pub(crate) fn stale_before(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() - KEPT_FOR_MILLIS).unwrap_or(now)
    }
}
