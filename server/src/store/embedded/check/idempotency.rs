//! Stored responses and claims on idempotency keys.

use payments_core::{RawJson, Timestamp};
use serde::de::IgnoredAny;

use super::{
    super::{
        keys, packed,
        responses::{ResponseRecord, all_in},
    },
    Check,
};
use crate::{
    domain::KeyClaim,
    store::{
        StoreError,
        invariants::{Effect, claim_faults, effect_of},
    },
};

impl Check<'_> {
    /// A used key has a stored response.
    pub(super) fn used(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(used_at) = self.parse(key, value) else { return Ok(()) };
        let record = keys::bucket(keys::RESPONSES, used_at);
        let values = self.get(&record)?.unwrap_or_default().into_owned();
        let name = keys::name_of_used_key(key);
        let mut responses = packed::values::<ResponseRecord>(&values).flatten();
        let is_there = responses.any(|response| Some(response.of) == name);
        self.expect(is_there, key, "was used and has no response");
        Ok(())
    }

    /// A claimed key has no response that counts, and the lease ends.
    pub(super) fn claim(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(claim) = self.parse::<KeyClaim>(key, value) else { return Ok(()) };
        let used = keys::used_of_claim(key);
        self.expect(used.is_some(), key, "is on no idempotency key");
        let used_at = used.map_or(Ok(None), |used| self.other::<Timestamp>(&used))?;
        for fault in claim_faults(&claim, used_at) {
            self.find(key, fault);
        }
        Ok(())
    }

    /// Stored responses describe effects that exist, and their keys point back to them.
    pub(super) fn responses(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let responses = all_in(key, value).map_err(|error| self.find(key, error)).unwrap_or_default();
        for ResponseRecord { of, created_at, body, event, .. } in responses {
            self.expect(key == keys::bucket(keys::RESPONSES, created_at), key, "has a response of another time");
            let used_at = keys::used(&of).map_or(Ok(None), |used| self.other(&used))?;
            self.expect(used_at == Some(created_at), key, "has a response whose key does not know of it");
            let is_there = match (body, event) {
                (None, Some(event)) => self.has_event(&event.payment, &event.event)?,
                (Some(body), None) => self.has_effect(key, &body)?,
                _ => false,
            };
            self.expect(is_there, key, "tells of an effect that is not there");
        }
        Ok(())
    }

    fn has_effect(&mut self, key: &[u8], body: &RawJson) -> Result<bool, StoreError> {
        let effect = effect_of(body).map_err(|error| self.find(key, format_args!("cannot be read: {error}")));
        Ok(match effect {
            Err(()) | Ok(None) => false,
            Ok(Some(Effect::Endpoint)) => true,
            Ok(Some(Effect::Delivery(id))) => self.named::<_, IgnoredAny>(Some(&id), keys::delivery)?.is_some(),
            Ok(Some(Effect::Payment(id))) => self.stored(Some(&id))?.is_some(),
        })
    }
}
