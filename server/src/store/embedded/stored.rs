//! The record of a payment.

use payments_core::{EventId, PaymentId, RawJson};
use serde::{Deserialize, Serialize};

use super::{codec::Records, keys};
use crate::{
    domain::Session,
    store::{StoreError, StoredEvent},
};

/// A payment's session, its position in its developer's list of payments, and its events.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(rename = "place")]
    pub(super) position: u64,
    pub(super) session: Session,
    #[serde(default)]
    pub(super) events: Vec<StoredEvent>,
}

/// Reads an event that the record `key` names: the session of its payment, the event and its data.
pub(super) fn read_event(
    records: &impl Records,
    key: &[u8],
    payment: &PaymentId,
    id: &EventId,
) -> Result<(Session, StoredEvent, RawJson), StoreError> {
    let missing = || StoreError::corrupt(key, format_args!("the event {id} of the payment {payment} is not there"));
    let Stored { session, events, .. } = records.read(&keys::session(payment))?.ok_or_else(missing)?;
    let mut event = events.into_iter().find(|event| event.id == *id).ok_or_else(missing)?;
    let data = event.take_data(|| RawJson::of(&session.payment)).map_err(|error| StoreError::corrupt(key, error))?;
    Ok((session, event, data))
}
