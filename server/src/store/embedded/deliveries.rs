//! The record of a delivery names its event, and the payment's record holds the event's data. So an event is stored once,
//! however many endpoints get it.

use journaled_tree::{Entry, TreeError};
use payments_core::{DeliveryId, PaymentId, RawJson};

use super::{
    codec::{Records, parse},
    keys,
    stored::Stored,
};
use crate::domain::Outgoing;
use crate::store::StoreError;

/// The delivery as it is stored: without the payload that its event has.
pub(super) fn stored(outgoing: &Outgoing) -> Result<Outgoing, serde_json::Error> {
    let mut stored = outgoing.clone();
    if stored.event.is_some() {
        stored.delivery.payload = RawJson::of(&serde_json::Map::new())?;
    }
    Ok(stored)
}

/// The delivery with its payload. `payment` reads a payment.
pub(super) fn whole(
    key: &[u8],
    mut stored: Outgoing,
    payment: impl FnOnce(&PaymentId) -> Result<Option<Stored>, StoreError>,
) -> Result<Outgoing, StoreError> {
    let (Some(of), Some(event)) = (&stored.payment, &stored.event) else { return Ok(stored) };
    let envelope = payment(of)?.and_then(|payment| payment.envelope(event));
    let missing = || Err(serde::de::Error::custom(format_args!("its event {event} is not there")));
    stored.delivery.payload = envelope.unwrap_or_else(missing).map_err(|error| StoreError::corrupt(key, error))?;
    Ok(stored)
}

/// Reads a delivery with its payload.
pub(super) fn read(records: &impl Records, id: &DeliveryId) -> Result<Option<Outgoing>, StoreError> {
    let key = keys::delivery(id);
    let found = records.read(&key)?;
    found.map(|stored| whole(&key, stored, |payment| records.read(&keys::session(payment)))).transpose()
}

/// The delivery of a scanned record, with its payload.
pub(super) fn of_entry(records: &impl Records, entry: Result<Entry, TreeError>) -> Result<Outgoing, StoreError> {
    let (key, json) = entry?;
    whole(&key, parse(&key, &json)?, |payment| records.read(&keys::session(payment)))
}
