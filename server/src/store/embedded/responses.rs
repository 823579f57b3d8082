//! Stored responses of idempotency keys.

use journaled_tree::Read;
use payments_core::{EventId, PaymentId, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::{codec::Records, keys, packed, stored::Stored, view::View};
use crate::{
    domain::KeptResponse,
    store::{CommitError, Conflict, Keep, StoreError, Write},
};

/// The record of a stored response: its body, or the event that has the same data.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResponse {
    /// The name of its idempotency key.
    pub(super) of: String,
    pub(super) fingerprint: String,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<RawJson>,
    /// The event whose data is the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<EventRef>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct EventRef {
    pub(super) payment: PaymentId,
    pub(super) event: EventId,
}

impl StoredResponse {
    /// The response with its body, which may be an event's data. `payment` reads a payment.
    pub(super) fn resolve(
        self,
        key: &[u8],
        payment: impl FnOnce(&PaymentId) -> Result<Option<Stored>, StoreError>,
    ) -> Result<KeptResponse, StoreError> {
        let body = match (self.body, self.told) {
            (Some(body), _) => body,
            (None, Some(EventRef { payment: id, event })) => payment(&id)?
                .and_then(|stored| stored.event_data(&event))
                .unwrap_or_else(|| Err(serde::de::Error::custom("the event that tells its body is not there")))
                .map_err(|error| StoreError::corrupt(key, error))?,
            (None, None) => return Err(StoreError::corrupt(key, "it has no body")),
        };
        Ok(KeptResponse { fingerprint: self.fingerprint, created_at: self.created_at, body })
    }
}

impl View<'_, '_> {
    pub(super) fn keep(&mut self, keep: Keep, writes: &[Write]) -> Result<(), CommitError> {
        let Keep { key, fingerprint, created_at, body, claim } = keep;
        let at = keys::idempotency(&key);
        let of = keys::name_of_used_key(&at).unwrap_or_default();
        if let Some(used_at) = self.read::<Timestamp>(&at)? {
            if KeptResponse::is_fresh_at(used_at, created_at) {
                return Err(self.used(&at, used_at)?.into());
            }
            let record = keys::responses(used_at);
            let responses = self.bytes(&record)?;
            let others = responses_without(&record, &responses, &of)?;
            self.set_unless_empty(record, others);
        }
        self.end_claim(&key, &claim)?;
        // A body that equals the data of this change's event is stored once.
        let told = writes.iter().find_map(|write| {
            let Write::Payment(write) = write else { return None };
            let event = write.event.as_ref().filter(|event| event.data == body)?;
            Some(EventRef { payment: write.session.payment.id.clone(), event: event.id.clone() })
        });
        let body = told.is_none().then_some(body);
        self.put(at, &created_at)?;
        let record = keys::responses(created_at);
        let mut responses = self.bytes(&record)?;
        packed::push_value(&mut responses, &StoredResponse { of, fingerprint, created_at, body, told })
            .map_err(|error| StoreError::corrupt(&record, error))?;
        self.set(record, responses);
        Ok(())
    }

    /// The conflict of a second use of an idempotency key.
    pub(super) fn used(&self, at: &[u8], used_at: Timestamp) -> Result<Conflict, StoreError> {
        let record = keys::responses(used_at);
        let missing = || StoreError::corrupt(&record, "a response is not there");
        let of = keys::name_of_used_key(at).unwrap_or_default();
        let kept = response_of(&record, &self.bytes(&record)?, &of)?.ok_or_else(missing)?;
        let kept = kept.resolve(&record, |id| self.read(&keys::session(id)))?;
        Ok(Conflict::IdempotencyKeyUsed(Box::new(kept)))
    }

    /// Drops at most `at_most` responses that were stored before a time, oldest first. Returns how many it dropped.
    pub(super) fn prune_responses(&mut self, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let mut dropped = 0;
        for entry in self.range(keys::responses_before(before)) {
            let key = entry?.0;
            let mut left = Vec::new();
            for response in packed::values::<StoredResponse>(&self.bytes(&key)?) {
                let response = response.map_err(|error| StoreError::corrupt(&key, error))?;
                if dropped == at_most {
                    packed::push_value(&mut left, &response).map_err(|error| StoreError::corrupt(&key, error))?;
                    continue;
                }
                dropped += 1;
                if let Some(used) = keys::used(&response.of) {
                    self.remove(used);
                }
            }
            self.set_unless_empty(key, left);
            if dropped == at_most {
                break;
            }
        }
        Ok(dropped)
    }
}

/// Finds an idempotency key's response in the record of its time.
pub(super) fn response_of(record: &[u8], responses: &[u8], of: &str) -> Result<Option<StoredResponse>, StoreError> {
    let mut responses = packed::values::<StoredResponse>(responses);
    let found = responses.find(|response| response.as_ref().map_or(true, |response| response.of == of));
    found.transpose().map_err(|error| StoreError::corrupt(record, error))
}

/// The record of its time without an idempotency key's response.
fn responses_without(record: &[u8], responses: &[u8], of: &str) -> Result<Vec<u8>, StoreError> {
    let mut others = Vec::new();
    for response in packed::values::<StoredResponse>(responses) {
        let response = response.map_err(|error| StoreError::corrupt(record, error))?;
        if response.of != of {
            packed::push_value(&mut others, &response).map_err(|error| StoreError::corrupt(record, error))?;
        }
    }
    Ok(others)
}
