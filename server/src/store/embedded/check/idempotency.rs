//! Stored responses and claims on idempotency keys.

use payments_core::{RawJson, Timestamp};
use serde::Deserialize;

use super::{
    super::{keys, packed, responses::StoredResponse},
    Check,
};
use crate::{
    domain::{KeptResponse, KeyClaim},
    store::StoreError,
};

#[derive(Deserialize)]
struct BodyHead {
    id: Option<String>,
}

impl Check<'_> {
    /// A used key has a stored response.
    pub(super) fn used(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(used_at) = self.parse::<Timestamp>(key, value) else { return Ok(()) };
        let responses = self.bytes(&keys::responses(used_at))?;
        let name = keys::name_of_used_key(key);
        let is_there = packed::values::<StoredResponse>(&responses).flatten().any(|kept| Some(kept.of) == name);
        self.expect(is_there, key, "was used and has no response");
        Ok(())
    }

    /// A claimed key has no response that counts, and the lease ends.
    pub(super) fn claim(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(claim) = self.parse::<KeyClaim>(key, value) else { return Ok(()) };
        let Some(used) = keys::used_of_claim(key) else {
            self.find(key, "is on no idempotency key");
            return Ok(());
        };
        self.expect(claim.until > claim.claimed_at, key, "has a lease that ends before it begins");
        let is_answered =
            self.other::<Timestamp>(&used)?.is_some_and(|used_at| KeptResponse::is_fresh_at(used_at, claim.claimed_at));
        self.expect(!is_answered, key, "claims a key that has its response");
        Ok(())
    }

    /// Stored responses describe effects that exist, and their keys point back to them.
    pub(super) fn responses(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for kept in packed::values::<StoredResponse>(value) {
            let kept = match kept {
                Ok(kept) => kept,
                Err(error) => {
                    self.find(key, format_args!("cannot be read: {error}"));
                    break;
                }
            };
            self.expect(key == keys::responses(kept.created_at), key, "has a response of another time");
            let used = keys::used(&kept.of);
            let used_at = used.map(|used| self.other::<Timestamp>(&used)).transpose()?.flatten();
            self.expect(used_at == Some(kept.created_at), key, "has a response whose key does not know of it");
            let is_there = match (&kept.body, &kept.told) {
                (None, Some(told)) => {
                    let stored = self.stored(told.payment.as_str())?;
                    stored.is_some_and(|stored| stored.event_data(&told.event).is_some())
                }
                (Some(body), None) => self.has_effect(key, body)?,
                _ => false,
            };
            self.expect(is_there, key, "tells of an effect that is not there");
        }
        Ok(())
    }

    pub(super) fn has_effect(&mut self, key: &[u8], body: &RawJson) -> Result<bool, StoreError> {
        let Some(BodyHead { id: Some(id) }) = self.parse::<BodyHead>(key, body.as_str().as_bytes()) else {
            return Ok(false);
        };
        // An endpoint may have been removed since.
        Ok(match id.split_once('_').map_or("", |(prefix, _)| prefix) {
            "wh" => true,
            "del" => id.parse().ok().map(|id| self.is_there(&keys::delivery(&id))).transpose()?.unwrap_or_default(),
            _ => self.stored(&id)?.is_some(),
        })
    }
}
