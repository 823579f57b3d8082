//! Stored responses of idempotency keys.

use journaled_tree::Read;
use payments_core::{EventId, PaymentId, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::{codec::Records, keys, packed, stored::read_event, view::View};
use crate::{
    domain::StoredResponse,
    store::{CommitError, Conflict, NewResponse, StoreError, Write},
};

/// The record of a stored response: its body, or the event that has the same data.
#[derive(Serialize, Deserialize)]
pub(super) struct ResponseRecord {
    /// The name of its idempotency key.
    pub(super) of: String,
    pub(super) fingerprint: String,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<RawJson>,
    /// The event whose data is the body.
    #[serde(rename = "told", default, skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<EventRef>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct EventRef {
    pub(super) payment: PaymentId,
    pub(super) event: EventId,
}

/// Reads the response of a key that was used at a time. `None` if the response is just being replaced.
pub(super) fn read(
    records: &impl Records,
    used: &[u8],
    used_at: Timestamp,
) -> Result<Option<StoredResponse>, StoreError> {
    Ok(find(records, used, used_at)?.map(|(response, _)| response))
}

/// As [`read`], with the event that holds the body.
pub(super) fn find(
    records: &impl Records,
    used: &[u8],
    used_at: Timestamp,
) -> Result<Option<(StoredResponse, Option<EventRef>)>, StoreError> {
    let record = keys::bucket(keys::RESPONSES, used_at);
    let of = keys::name_of_used_key(used).unwrap_or_default();
    let bytes = records.bytes(&record)?;
    // A damaged value behind it does not hide a response.
    let mut responses = packed::values::<ResponseRecord>(&bytes);
    let response = responses.find(|response| response.as_ref().map_or(true, |response| response.of == of)).transpose();
    let response = response.map_err(|error| StoreError::corrupt(&record, error))?;
    let Some(ResponseRecord { fingerprint, created_at, body, event, .. }) = response else { return Ok(None) };
    let body = match (body, &event) {
        (Some(body), _) => body,
        (None, Some(EventRef { payment, event })) => read_event(records, &record, payment, event)?.1,
        (None, None) => return Err(StoreError::corrupt(&record, "it has no body")),
    };
    Ok(Some((StoredResponse { fingerprint, created_at, body }, event)))
}

/// The responses in a record.
pub(super) fn all_in(record: &[u8], values: &[u8]) -> Result<Vec<ResponseRecord>, StoreError> {
    packed::values(values).collect::<Result<_, _>>().map_err(|error| StoreError::corrupt(record, error))
}

impl View<'_, '_> {
    pub(super) fn keep(&mut self, keep: NewResponse, writes: &[Write]) -> Result<(), CommitError> {
        let NewResponse { key, fingerprint, created_at, body, claim } = keep;
        let used = keys::idempotency(&key);
        let of = keys::name_of_used_key(&used).unwrap_or_default();
        if let Some(used_at) = self.check_unused(&used, created_at)? {
            let record = keys::bucket(keys::RESPONSES, used_at);
            let mut others = all_in(&record, &self.bytes(&record)?)?;
            others.retain(|other| other.of != of);
            self.remove(record.clone());
            self.add_responses(record, &others)?;
        }
        self.end_claim(&key, &claim)?;
        // A body that equals the data of this change's event is stored once.
        let event = writes.iter().find_map(|write| {
            let Write::Payment(write) = write else { return None };
            let event = write.event.as_ref().filter(|event| event.data == body)?;
            Some(EventRef { payment: write.session.payment.id.clone(), event: event.id.clone() })
        });
        Ok(self.store_response(used, of, StoredResponse { fingerprint, created_at, body }, event)?)
    }

    /// Stores the response of a used key, whose name is `of`. If an event has its body, the response names the event instead.
    pub(super) fn store_response(
        &mut self,
        used: Vec<u8>,
        of: String,
        response: StoredResponse,
        event: Option<EventRef>,
    ) -> Result<(), StoreError> {
        let StoredResponse { fingerprint, created_at, body } = response;
        let body = event.is_none().then_some(body);
        self.put(used, &created_at)?;
        let response = ResponseRecord { of, fingerprint, created_at, body, event };
        self.add_responses(keys::bucket(keys::RESPONSES, created_at), &[response])
    }

    /// Checks that a key has no valid response. Returns the time of a response that is no longer valid.
    pub(super) fn check_unused(&self, used: &[u8], now: Timestamp) -> Result<Option<Timestamp>, CommitError> {
        let used_at = self.read(used)?;
        if let Some(used_at) = used_at.filter(|used_at| StoredResponse::is_fresh_at(*used_at, now)) {
            let missing = || StoreError::corrupt(used, "its response is not there");
            let kept = read(&**self, used, used_at)?.ok_or_else(missing)?;
            return Err(Conflict::IdempotencyKeyUsed(Box::new(kept)).into());
        }
        Ok(used_at)
    }

    /// Appends responses to a record.
    pub(super) fn add_responses(&mut self, record: Vec<u8>, added: &[ResponseRecord]) -> Result<(), StoreError> {
        // Room for a response that names its event.
        let mut values = Vec::with_capacity(384 * added.len());
        for response in added {
            packed::push_value(&mut values, response).map_err(|error| StoreError::corrupt(&record, error))?;
        }
        if values.is_empty() { Ok(()) } else { self.append_bytes(record, &values) }
    }

    /// Drops at most `at_most` responses that were stored before a time, oldest first. Returns how many it dropped.
    pub(super) fn prune_responses(&mut self, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let mut dropped = 0;
        for entry in self.range(keys::buckets_before(keys::RESPONSES, before)) {
            let (record, values) = entry?;
            let mut old = all_in(&record, &values)?;
            let left = old.split_off(old.len().min(at_most - dropped));
            dropped += old.len();
            old.iter().filter_map(|response| keys::used(&response.of)).for_each(|used| self.remove(used));
            self.remove(record.clone());
            self.add_responses(record, &left)?;
            if dropped == at_most {
                break;
            }
        }
        Ok(dropped)
    }
}
