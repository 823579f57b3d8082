//! Reads the records that a migration moves.

use journaled_tree::Read;
use payments_core::Posting;

use super::{
    EmbeddedStore, codec,
    codec::Records,
    events, keys,
    pending::PendingRecord,
    responses::{self, EventRef},
    stored::Stored,
};
use crate::{
    domain::{IdempotencyKey, KeyHash},
    store::{PaymentRecord, PendingEventRecord, Record, RecordKind, ResponseRecord, StoreError},
};

impl EmbeddedStore {
    /// At most `at_most` records of a kind strictly after a key.
    pub(super) fn record_page(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<Record>, StoreError> {
        if kind == RecordKind::Event {
            return Ok(events::records_after(&self.database, after, at_most)?.into_iter().map(Record::Event).collect());
        }
        let prefix = prefix_of(kind);
        let unknown = || StoreError::corrupt(after.unwrap_or_default().as_bytes(), "no record has this key");
        let after = after.map(|key| key_of(kind, key).ok_or_else(unknown)).transpose()?;
        let entries = self.database.prefix_after(prefix, &after.unwrap_or_default()).take(at_most);
        let read = entries.map(|entry| {
            let (key, value) = entry?;
            self.record(kind, &key, &value, &key[prefix.len()..])
        });
        read.collect()
    }

    pub(super) fn record_count(&self, kind: RecordKind) -> Result<u64, StoreError> {
        if kind == RecordKind::Event {
            return events::count(&self.database);
        }
        Ok(self.database.count_prefix(prefix_of(kind), usize::MAX)? as u64)
    }

    /// The record of a key, of which `name` is the part after the kind's prefix.
    fn record(&self, kind: RecordKind, key: &[u8], value: &[u8], name: &[u8]) -> Result<Record, StoreError> {
        let corrupt = || StoreError::corrupt(key, "its key cannot be read");
        Ok(match kind {
            RecordKind::Workspace => Record::Workspace(codec::parse(key, value)?),
            RecordKind::ApiKey => {
                Record::ApiKey(KeyHash(name.try_into().map_err(|_| corrupt())?), codec::parse(key, value)?)
            }
            RecordKind::App => Record::App(codec::parse(key, value)?),
            RecordKind::GatewayToken => {
                let name = str::from_utf8(name).map_err(|_| corrupt())?;
                Record::GatewayToken(name.to_owned(), codec::parse(key, value)?)
            }
            RecordKind::Endpoint => Record::Endpoint(codec::parse(key, value)?),
            RecordKind::Payment => {
                let Stored { session, events, .. } = Stored::parse(key, value)?;
                let postings = self.postings_of(&keys::postings_of(&session.payment.id))?;
                Record::Payment(Box::new(PaymentRecord { session, events, postings }))
            }
            RecordKind::PendingEvent => {
                let PendingRecord { payment, after } = codec::parse(key, value)?;
                let id = keys::id_after(keys::PENDING_EVENTS, key).ok_or_else(corrupt)?;
                Record::PendingEvent(PendingEventRecord { id, payment, after })
            }
            RecordKind::StoredResponse => {
                let missing = || StoreError::corrupt(key, "its response is not there");
                let found = responses::find(&self.database, key, codec::parse(key, value)?)?;
                let (response, event) = found.ok_or_else(missing)?;
                let event = event.map(|EventRef { payment, event }| (payment, event));
                let key = idempotency_key(key).ok_or_else(corrupt)?;
                Record::StoredResponse(Box::new(ResponseRecord { key, response, event }))
            }
            RecordKind::KeyClaim => {
                let used = keys::used_of_claim(key).ok_or_else(corrupt)?;
                let claimed = idempotency_key(&used).ok_or_else(corrupt)?;
                Record::KeyClaim(Box::new((claimed, codec::parse(key, value)?)))
            }
            RecordKind::Delivery => Record::Delivery(codec::parse(key, value)?),
            // A record has several of them.
            RecordKind::Event => return Err(corrupt()),
            RecordKind::RedactedUpTo => Record::RedactedUpTo(codec::parse(key, value)?),
            RecordKind::LogPart => Record::LogPart(codec::parse(key, value)?),
        })
    }

    /// The postings of a payment with the versions of its changes.
    fn postings_of(&self, prefix: &[u8]) -> Result<Vec<(u64, Vec<Posting>)>, StoreError> {
        let postings = self.database.prefix(prefix).map(|entry| {
            let (key, json) = entry?;
            let version = str::from_utf8(&key[prefix.len()..]).ok().and_then(|version| version.parse().ok());
            let version = version.ok_or_else(|| StoreError::corrupt(&key, "its key cannot be read"))?;
            Ok((version, codec::parse(&key, &json)?))
        });
        postings.collect()
    }
}

fn prefix_of(kind: RecordKind) -> &'static [u8] {
    match kind {
        RecordKind::Workspace => keys::WORKSPACES,
        RecordKind::ApiKey => keys::API_KEYS,
        RecordKind::App => keys::APPS,
        RecordKind::GatewayToken => keys::GATEWAY_TOKENS,
        RecordKind::Endpoint => keys::ENDPOINTS,
        RecordKind::Payment => keys::SESSIONS,
        RecordKind::PendingEvent => keys::PENDING_EVENTS,
        RecordKind::StoredResponse => keys::KEYS_USED,
        RecordKind::KeyClaim => keys::CLAIMS,
        RecordKind::Delivery => keys::DELIVERIES,
        RecordKind::Event => keys::EVENT_PLACES,
        RecordKind::RedactedUpTo => keys::REDACTED_UP_TO,
        RecordKind::LogPart => keys::LOGS,
    }
}

/// The key of a record from the key that it has in every engine.
fn key_of(kind: RecordKind, key: &str) -> Option<Vec<u8>> {
    let prefix = prefix_of(kind);
    Some(match kind {
        RecordKind::ApiKey => [prefix, &hex::decode(key).ok()?].concat(),
        RecordKind::StoredResponse => keys::used(key)?,
        RecordKind::KeyClaim => [prefix, keys::used(key)?.strip_prefix(keys::KEYS_USED)?].concat(),
        _ => [prefix, key.as_bytes()].concat(),
    })
}

/// The idempotency key of a used key.
fn idempotency_key(used: &[u8]) -> Option<IdempotencyKey> {
    let scope = keys::scope_of(&keys::name_of_used_key(used)?)?;
    Some(IdempotencyKey { scope, digest: *used.last_chunk()? })
}
