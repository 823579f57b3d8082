//! The records of a store as every engine has them: what a migration moves.
//!
//! Everything else that a store holds follows from them: lists, counts, balances, and the indexes of what is due.

use std::{fmt, slice, vec};

use payments_core::{DeliveryId, EventId, PaymentId, Posting, WebhookId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{EventRecord, Result, Snapshot, StoreError, StoredEvent, Write};
use crate::domain::{
    ApiKey, App, Effects, Endpoint, IdempotencyKey, KeyClaim, KeyHash, LogPart, Outgoing, Session, StoredResponse,
    StoredToken, Workspace, effects,
};

/// How many records are in memory at a time.
const PAGE: usize = 256;

/// A kind of record. Records come in the order of their kinds: one that is named before one that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordKind {
    Workspace,
    ApiKey,
    App,
    GatewayToken,
    Endpoint,
    Payment,
    Event,
    PendingEvent,
    StoredResponse,
    KeyClaim,
    Delivery,
    RedactedUpTo,
    LogPart,
}

impl RecordKind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Workspace,
        Self::ApiKey,
        Self::App,
        Self::GatewayToken,
        Self::Endpoint,
        Self::Payment,
        Self::Event,
        Self::PendingEvent,
        Self::StoredResponse,
        Self::KeyClaim,
        Self::Delivery,
        Self::RedactedUpTo,
        Self::LogPart,
    ];
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workspace => "workspace",
            Self::ApiKey => "API key",
            Self::App => "app",
            Self::GatewayToken => "gateway token",
            Self::Endpoint => "webhook endpoint",
            Self::Payment => "payment",
            Self::Event => "event",
            Self::PendingEvent => "pending event",
            Self::StoredResponse => "stored response",
            Self::KeyClaim => "key claim",
            Self::Delivery => "delivery",
            Self::RedactedUpTo => "limit of redaction",
            Self::LogPart => "part of a log of requests",
        })
    }
}

/// A kind and the key of a record of it. Both engines have the same order of keys.
pub(crate) type RecordKey = (RecordKind, String);

/// A record at its present version.
#[derive(Debug, Clone)]
pub(crate) enum Record {
    Workspace(Box<Workspace>),
    ApiKey(KeyHash, Box<ApiKey>),
    App(Box<App>),
    GatewayToken(String, StoredToken),
    Endpoint(Box<Endpoint>),
    Payment(Box<PaymentRecord>),
    /// An entry of the list of events. The payment has the event itself.
    Event(EventRecord),
    PendingEvent(PendingEventRecord),
    StoredResponse(Box<ResponseRecord>),
    KeyClaim(Box<(IdempotencyKey, KeyClaim)>),
    /// Without the payload that its event has.
    Delivery(Box<Outgoing>),
    /// The delivery up to which bodies were redacted.
    RedactedUpTo(DeliveryId),
    LogPart(Box<LogPart>),
}

/// A payment with its events and with the postings of each of its versions that has some.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PaymentRecord {
    pub(crate) session: Session,
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) postings: Vec<(u64, Vec<Posting>)>,
}

impl PaymentRecord {
    /// The effects of all its changes together.
    pub(crate) fn effects(&self) -> Effects {
        let postings: Vec<Posting> = self.postings.iter().flat_map(|(_, postings)| postings).cloned().collect();
        effects(None, &self.session, &postings)
    }
}

/// A pending event, which its payment holds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PendingEventRecord {
    pub(crate) id: EventId,
    pub(crate) payment: PaymentId,
    /// The last endpoint that fan-out has handled.
    pub(crate) after: Option<WebhookId>,
}

/// The stored response of an idempotency key.
#[derive(Debug, Clone)]
pub(crate) struct ResponseRecord {
    pub(crate) key: IdempotencyKey,
    pub(crate) response: StoredResponse,
    /// The event whose data is the body.
    pub(crate) event: Option<(PaymentId, EventId)>,
}

impl Record {
    pub(crate) fn key(&self) -> RecordKey {
        match self {
            Self::Workspace(it) => (RecordKind::Workspace, it.id.to_string()),
            Self::ApiKey(hash, _) => (RecordKind::ApiKey, hex::encode(hash.digest)),
            Self::App(it) => (RecordKind::App, format!("{}/{}", it.app.developer_id, it.app.id)),
            Self::GatewayToken(name, _) => (RecordKind::GatewayToken, name.clone()),
            Self::Endpoint(it) => (RecordKind::Endpoint, it.endpoint.id.to_string()),
            Self::Payment(it) => (RecordKind::Payment, it.session.payment.id.to_string()),
            Self::Event(it) => (RecordKind::Event, it.entry.id.to_string()),
            Self::PendingEvent(it) => (RecordKind::PendingEvent, it.id.to_string()),
            Self::StoredResponse(it) => (RecordKind::StoredResponse, name_of(&it.key)),
            Self::KeyClaim(it) => (RecordKind::KeyClaim, name_of(&it.0)),
            Self::Delivery(it) => (RecordKind::Delivery, it.delivery.id.to_string()),
            Self::RedactedUpTo(_) => (RecordKind::RedactedUpTo, "1".to_owned()),
            Self::LogPart(it) => (RecordKind::LogPart, it.key()),
        }
    }

    /// Its content, by which two records with one key are compared.
    pub(crate) fn json(&self) -> Result<String> {
        let json = match self {
            Self::Workspace(it) => serde_json::to_string(it),
            Self::ApiKey(_, it) => serde_json::to_string(it),
            Self::App(it) => serde_json::to_string(it),
            Self::GatewayToken(_, it) => serde_json::to_string(it),
            Self::Endpoint(it) => serde_json::to_string(it),
            Self::Payment(it) => serde_json::to_string(it),
            Self::Event(it) => serde_json::to_string(it),
            Self::PendingEvent(it) => serde_json::to_string(it),
            Self::StoredResponse(it) => {
                let StoredResponse { fingerprint, created_at, body } = &it.response;
                serde_json::to_string(&(fingerprint, created_at, body, &it.event))
            }
            Self::KeyClaim(it) => serde_json::to_string(&it.1),
            Self::Delivery(it) => serde_json::to_string(it),
            Self::RedactedUpTo(it) => serde_json::to_string(it),
            Self::LogPart(it) => serde_json::to_string(it),
        };
        json.map_err(|error| StoreError::corrupt(self.key().1.as_bytes(), error))
    }
}

/// How a store takes in a record of another one.
pub(crate) enum Taking {
    /// As a change writes it.
    Write(Write),
    /// Changes write these in several steps, so each engine has a way of its own.
    Payment(Box<PaymentRecord>),
    Event(EventRecord),
    PendingEvent(PendingEventRecord),
    StoredResponse(Box<ResponseRecord>),
    RedactedUpTo(DeliveryId),
}

impl From<Record> for Taking {
    fn from(record: Record) -> Self {
        Self::Write(match record {
            Record::Workspace(it) => Write::Workspace(*it),
            Record::ApiKey(hash, it) => Write::ApiKey(hash, it),
            Record::App(it) => Write::App(it),
            Record::GatewayToken(name, it) => Write::GatewayToken(name.into(), it),
            Record::Endpoint(endpoint) => Write::EndpointAdded { endpoint, at_most: usize::MAX },
            Record::KeyClaim(it) => Write::KeyClaimed(it),
            Record::Delivery(it) => Write::Delivery(it),
            Record::LogPart(it) => Write::LogPart(it),
            Record::Payment(it) => return Self::Payment(it),
            Record::Event(it) => return Self::Event(it),
            Record::PendingEvent(it) => return Self::PendingEvent(it),
            Record::StoredResponse(it) => return Self::StoredResponse(it),
            Record::RedactedUpTo(id) => return Self::RedactedUpTo(id),
        })
    }
}

/// The scope and the digest of an idempotency key. Ids of developers have one length, so the order is that of the parts.
fn name_of(key: &IdempotencyKey) -> String {
    format!("{}/{}/{}", key.scope.developer_id, key.scope.environment, hex::encode(key.digest))
}

/// Every record of a store strictly after a key, in the order of the keys.
pub(crate) struct Records<'s> {
    store: &'s dyn Snapshot,
    kinds: slice::Iter<'static, RecordKind>,
    kind: Option<RecordKind>,
    after: Option<String>,
    page: vec::IntoIter<Record>,
}

impl<'s> Records<'s> {
    pub(crate) fn of(store: &'s dyn Snapshot, after: Option<RecordKey>) -> Self {
        let (kind, after) = after.unzip();
        let mut kinds = RecordKind::ALL.iter();
        let kind = kinds.find(|it| kind.is_none_or(|kind| kind == **it)).copied();
        Self { store, kinds, kind, after, page: Vec::new().into_iter() }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        loop {
            if let Some(record) = self.page.next() {
                return Some(Ok(record));
            }
            let page = match self.store.page(self.kind?, self.after.as_deref(), PAGE) {
                Ok(page) => page,
                Err(error) => {
                    self.kind = None;
                    return Some(Err(error));
                }
            };
            self.after = page.last().filter(|_| page.len() == PAGE).map(|last| last.key().1);
            if self.after.is_none() {
                self.kind = self.kinds.next().copied();
            }
            self.page = page.into_iter();
        }
    }
}

/// The digest of records in their order: SHA-256 over the kind, the key and the content of each, each with its length.
#[derive(Default)]
pub(crate) struct RecordDigest(Sha256);

impl RecordDigest {
    pub(crate) fn add(&mut self, (kind, key): &RecordKey, json: &str) {
        for part in [&kind.to_string(), key, json] {
            self.0.update((part.len() as u64).to_be_bytes());
            self.0.update(part);
        }
    }

    pub(crate) fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}
