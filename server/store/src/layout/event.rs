//! The record of an event. Its data is the payment of that moment. Until the payment changes, only the payment's record holds
//! the data. The payment's next change first writes the data to the event.

use payments_core::{EventId, EventKind, PaymentId, RawJson, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    booking::StoredMoney,
    entry::{Entry, Record},
    keys,
    list::{List, item_of_event},
    payment::StoredPayment,
    reads::Reads,
};
use crate::{EventEntry, StoreError, domain::Scope};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredEvent {
    pub(super) id: EventId,
    pub(super) event: EventKind,
    pub(super) created_at: Timestamp,
    pub(super) scope: Scope,
    pub(super) payment: PaymentId,
    /// The version of its payment when it happened.
    pub(super) version: u64,
    /// Missing while the payment's record still has this version.
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
        EventEntry { id: self.id.clone(), kind: self.event.clone(), payment: self.payment.clone() }
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
            let value = self.payment.as_str().as_bytes().to_vec();
            entries.push(Entry::Key { key: keys::pending_event(&self.id), value });
        }
        entries
    }
}

pub(super) struct WholeEvent {
    pub(super) event: StoredEvent,
    pub(super) data: RawJson,
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
                None => of_payments.push((*nth, event)),
            }
        }
        let keys: Vec<_> = of_payments.iter().map(|(_, event)| keys::payment(&event.payment)).collect();
        let payments = reads.get(keys.clone()).await?;
        wanted.clear();
        for (((nth, event), key), payment) in of_payments.into_iter().zip(keys).zip(payments) {
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
