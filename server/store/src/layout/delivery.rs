//! The record of a delivery. It names its event, which holds the payload, so an event is stored once however many endpoints
//! get it.

use payments_core::{DeliveryId, Envelope, RawJson};
use serde::{Deserialize, Serialize};

use super::{
    entry::{Entry, Record, gauge},
    event::{self, WholeEvent},
    keys::{self, BODIES, RETRIES},
    list::{List, item_of_delivery},
    reads::{Reads, parse},
};
use crate::{StoreError, domain::Outgoing};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredDelivery {
    /// Its positions in the lists of its scope, of its endpoint and of its subject.
    pub(super) positions: [u64; 3],
    /// Whether pruning has reached it. It is then redacted, or will be when it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_passed: bool,
    /// Without the payload that its event has.
    pub(super) delivery: Outgoing,
}

impl StoredDelivery {
    pub(super) fn lists(outgoing: &Outgoing) -> impl Iterator<Item = List> {
        let (scope, endpoint) = (outgoing.scope(), &outgoing.delivery.webhook_id);
        let own = [List::deliveries(&scope), List::deliveries_to(&scope, endpoint)];
        own.into_iter().chain(outgoing.subject.as_ref().map(List::deliveries_of))
    }
}

impl Record for StoredDelivery {
    fn key(&self) -> Vec<u8> {
        keys::delivery(&self.delivery.delivery.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let Self { positions, is_passed, delivery: outgoing } = self;
        let delivery = &outgoing.delivery;
        let item = item_of_delivery(&delivery.id);
        let mut entries: Vec<Entry> = Self::lists(outgoing)
            .zip(positions)
            .map(|(list, position)| Entry::Item { list, position: *position, item: item.clone() })
            .collect();
        let owner = delivery.id.as_str().as_bytes().to_vec();
        if let Some(time) = outgoing.waits_until() {
            entries.push(Entry::At { index: RETRIES, time, owner: owner.clone() });
            entries.push(gauge("waiting".to_owned()));
        }
        if outgoing.is_in_outbox() {
            // The value is the time at which a further attempt became due, in milliseconds. A first attempt is due at once.
            let value = outgoing.retry_at().map_or_else(Vec::new, |at| at.as_millis().to_string().into_bytes());
            entries.push(Entry::Key { key: keys::outbox(&delivery.webhook_id, &delivery.id), value });
            entries.push(Entry::Lane { scope: outgoing.scope(), endpoint: delivery.webhook_id.clone() });
            entries.push(gauge("outbox".to_owned()));
        }
        if !is_passed {
            entries.push(Entry::At { index: BODIES, time: delivery.created_at, owner });
        }
        entries
    }
}

/// A delivery with the payload of its event, which is one of `events`.
pub(super) fn with_payload(mut outgoing: Outgoing, events: &[WholeEvent]) -> Result<Outgoing, StoreError> {
    let Some(id) = &outgoing.event else { return Ok(outgoing) };
    let key = keys::delivery(&outgoing.delivery.id);
    let missing = || StoreError::corrupt(&key, format_args!("its event {id} is not there"));
    let WholeEvent { event, data } = events.iter().find(|whole| whole.event.id == *id).ok_or_else(missing)?;
    let envelope = Envelope { id: &event.id, event: event.event.clone(), created_at: event.created_at, data };
    outgoing.delivery.payload = RawJson::of(&envelope).map_err(|error| StoreError::corrupt(&key, error))?;
    Ok(outgoing)
}

/// The existing deliveries of these ids, with their payloads, in the order of the ids.
pub(super) async fn read(reads: Reads<'_>, ids: &[DeliveryId]) -> Result<Vec<Outgoing>, StoreError> {
    let keys = ids.iter().map(keys::delivery).collect();
    let stored: Vec<StoredDelivery> = reads.records(keys, |key, record| parse(key, &record)).await?;
    let mut events: Vec<_> = stored.iter().filter_map(|it| it.delivery.event.clone()).collect();
    events.sort();
    events.dedup();
    let whole = event::whole_events(reads, &events).await?;
    let sent = |StoredDelivery { delivery, .. }| with_payload(delivery, &whole);
    stored.into_iter().map(sent).collect()
}
