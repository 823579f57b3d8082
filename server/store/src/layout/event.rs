//! The record of an event. Its data is the payment of that moment. Until the payment changes, only the payment's record holds
//! the data. The payment's next change first writes the data to the event.

use payments_core::{EventId, EventKind, RawJson, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    booking::StoredMoney,
    entry::{Entry, Record},
    keys,
    list::{List, item_of_event},
    payment::StoredPayment,
    reads::Reads,
};
use crate::{
    EventEntry, EventWrite, StoreError,
    domain::{Scope, Subject},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredEvent {
    pub(super) id: EventId,
    pub(super) event: EventKind,
    pub(super) created_at: Timestamp,
    pub(super) scope: Scope,
    #[serde(alias = "payment")]
    pub(super) subject: Subject,
    /// The version of its subject when it happened.
    pub(super) version: u64,
    /// Missing while its payment's record still has this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<RawJson>,
    /// Its position in the list of its scope's events.
    pub(super) position: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) money: Option<StoredMoney>,
    /// The progress of fan-out, until it is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Pending>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The last endpoint that fan-out has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<WebhookId>,
}

impl StoredEvent {
    pub(super) fn entry(&self) -> EventEntry {
        EventEntry { id: self.id.clone(), kind: self.event.clone() }
    }

    pub(super) fn parse(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        super::reads::parse(key, value)
    }

    pub(super) async fn read(reads: Reads<'_>, id: &EventId) -> Result<Option<Self>, StoreError> {
        reads.json(keys::event(id)).await
    }
}

impl Record for StoredEvent {
    fn key(&self) -> Vec<u8> {
        keys::event(&self.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let (scope, item) = (&self.scope, item_of_event(&self.id));
        let mut entries = vec![Entry::Item { list: List::events(scope), position: self.position, item: item.clone() }];
        entries.extend(self.money.iter().flat_map(|money| money.entries(scope, item.clone())));
        if self.pending.is_some() {
            let value = self.subject.as_str().as_bytes().to_vec();
            entries.push(Entry::Key { key: keys::pending_event(&self.id), value });
        }
        entries
    }
}

pub(super) struct WholeEvent {
    pub(super) event: StoredEvent,
    pub(super) data: RawJson,
}

impl From<WholeEvent> for EventWrite {
    fn from(WholeEvent { event, data }: WholeEvent) -> Self {
        let StoredEvent { id, event: kind, created_at, .. } = event;
        Self { id, kind, created_at, data }
    }
}

/// How often to read events whose payments change meanwhile.
const READINGS: usize = 16;

/// The events of these ids with their data, in the order of the ids. Leaves out missing events.
pub(super) async fn whole_events(reads: Reads<'_>, ids: &[EventId]) -> Result<Vec<WholeEvent>, StoreError> {
    let mut found: Vec<(usize, WholeEvent)> = Vec::new();
    let mut wanted: Vec<(usize, EventId)> = ids.iter().cloned().enumerate().collect();
    for _ in 0..READINGS {
        let keys: Vec<_> = wanted.iter().map(|(_, id)| keys::event(id)).collect();
        let records = reads.get(keys.clone()).await?;
        let mut of_payments = Vec::new();
        for (((nth, _), key), record) in wanted.iter().zip(keys).zip(records) {
            let Some(record) = record else { continue };
            let mut event = StoredEvent::parse(&key, &record)?;
            match event.data.take() {
                Some(data) => found.push((*nth, WholeEvent { event, data })),
                None => match event.subject.payment().map(keys::payment) {
                    Some(payment) => of_payments.push((*nth, event, payment)),
                    None => return Err(StoreError::corrupt(&key, "it has no data")),
                },
            }
        }
        let keys: Vec<_> = of_payments.iter().map(|(.., payment)| payment.clone()).collect();
        let payments = reads.get(keys.clone()).await?;
        wanted.clear();
        for (((nth, event, _), key), payment) in of_payments.into_iter().zip(keys).zip(payments) {
            let missing =
                || StoreError::corrupt(&key, format_args!("the payment of the event {} is not there", event.id));
            let payment = StoredPayment::parse(&key, &payment.ok_or_else(missing)?)?;
            match payment.data_of(&event.id) {
                Some(data) => found.push((nth, WholeEvent { event, data })),
                // The payment has changed meanwhile, so now the event has its data: read it again.
                None => wanted.push((nth, event.id)),
            }
        }
        if wanted.is_empty() {
            break;
        }
    }
    if let Some((_, id)) = wanted.first() {
        return Err(StoreError::corrupt(&keys::event(id), "neither it nor its payment has its data"));
    }
    found.sort_by_key(|(nth, _)| *nth);
    Ok(found.into_iter().map(|(_, whole)| whole).collect())
}
