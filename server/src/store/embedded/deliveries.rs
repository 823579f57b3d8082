//! The record of a delivery names its event, and the payment's record holds the event's data. So an event is stored once,
//! however many endpoints get it.

use journaled_tree::{Entry, TreeError};
use payments_core::{DeliveryId, PaymentId};

use super::{
    codec::{Records, parse},
    keys::{self, List},
    lists::first_leaf_from,
    packed,
    stored::read_event,
};
use crate::{
    domain::Outgoing,
    store::{DeliveriesFrom, StoreError},
};

/// The delivery of a record, with the payload that its event has.
fn whole(records: &impl Records, key: &[u8], mut stored: Outgoing) -> Result<Outgoing, StoreError> {
    let (Some(payment), Some(id)) = (&stored.payment, &stored.event) else { return Ok(stored) };
    let (event, data) = read_event(records, key, payment, id)?;
    event.fill(&mut stored, &data).map_err(|error| StoreError::corrupt(key, error))?;
    Ok(stored)
}

/// Reads a delivery with its payload.
pub(super) fn read(records: &impl Records, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
    let key = keys::delivery(id);
    records.read(&key)?.map(|stored| whole(records, &key, stored)).transpose()
}

/// The delivery of a scanned record, with its payload.
pub(super) fn of_entry(records: &impl Records, entry: Result<Entry, TreeError>) -> Result<Outgoing, StoreError> {
    let (key, json) = entry?;
    whole(records, &key, parse(&key, &json)?)
}

/// At most `at_most` deliveries of a payment's events, oldest first.
pub(super) fn of_payment(
    records: &impl Records,
    payment: &PaymentId,
    at_most: usize,
) -> Result<Vec<Outgoing>, StoreError> {
    let named = records.bytes(&keys::deliveries_of(payment))?;
    let mut found = Vec::new();
    for id in packed::lines(&named).take(at_most).filter_map(|line| line.parse().ok()) {
        found.extend(read(records, &id)?);
    }
    Ok(found)
}

/// At most `at_most` deliveries of a list from a time on, in the order of the list.
pub(super) fn to_endpoint(
    records: &impl Records,
    list: &List,
    from: &DeliveriesFrom,
    at_most: usize,
) -> Result<Vec<Outgoing>, StoreError> {
    let count: u64 = records.read(&list.count())?.unwrap_or_default();
    let first = first_leaf_from(records, list, count, from.earliest())?.saturating_sub(1);
    let (mut found, mut is_after) = (Vec::new(), from.after.is_none());
    for number in first..count.div_ceil(keys::LEAF) {
        for line in packed::lines(&records.bytes(&list.leaf(number * keys::LEAF))?) {
            let Some(id) = line.parse().ok() else { continue };
            if !is_after {
                is_after = from.after.as_ref() == Some(&id);
            } else if found.len() < at_most {
                found.extend(read(records, &id)?);
            } else {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// Where a pending delivery is queued: in the outbox or among the retries.
pub(super) struct Queued {
    pub(super) key: Vec<u8>,
    /// In the outbox: when a further attempt was due, in milliseconds. Empty for a first attempt, which is due at once.
    pub(super) value: Vec<u8>,
    /// The record of how many are queued there.
    pub(super) count: Vec<u8>,
}

impl Queued {
    /// `None` if the delivery has ended.
    pub(super) fn of(outgoing: &Outgoing) -> Option<Self> {
        let delivery = &outgoing.delivery;
        if let Some(until) = outgoing.waits_until() {
            let key = keys::retry(until, &delivery.id);
            return Some(Self { key, value: Vec::new(), count: keys::waiting_deliveries() });
        }
        let key = keys::outbox(&delivery.webhook_id, &delivery.id);
        let value = outgoing.retry_at().map_or_else(Vec::new, |at| at.as_millis().to_string().into_bytes());
        outgoing.is_in_outbox().then(|| Self { key, value, count: keys::pending_deliveries() })
    }
}

/// The lists that name a delivery.
pub(super) fn lists_of(outgoing: &Outgoing) -> [List; 2] {
    let scope = outgoing.scope();
    [List::deliveries(&scope), List::deliveries_to(&scope, &outgoing.delivery.webhook_id)]
}
