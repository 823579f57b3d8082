//! The record of a payment.

use payments_core::{EventId, EventKind, Payment, PaymentId, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::{codec::Records, keys};
use crate::{domain::Session, store::StoreError};

/// A payment's session, its position in its developer's list of payments, and its events.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(rename = "place")]
    pub(super) position: u64,
    pub(super) session: Session,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

/// An event of a payment.
#[derive(Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) event: EventKind,
    pub(super) created_at: Timestamp,
    /// Missing if it equals the payment in this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<RawJson>,
}

impl Stored {
    /// The events, for the record of the next payment. They keep their data if that differs from this payment.
    pub(super) fn events_before(mut self, next: &Payment) -> Result<Vec<Event>, serde_json::Error> {
        if self.session.payment != *next {
            for event in self.events.iter_mut().filter(|event| event.data.is_none()) {
                event.data = Some(RawJson::of(&self.session.payment)?);
            }
        }
        Ok(self.events)
    }
}

/// Reads an event that the record `key` names: the session of its payment, the event and its data.
pub(super) fn read_event(
    records: &impl Records,
    key: &[u8],
    payment: &PaymentId,
    id: &EventId,
) -> Result<(Session, Event, RawJson), StoreError> {
    let missing = || StoreError::corrupt(key, format_args!("the event {id} of the payment {payment} is not there"));
    let Stored { session, events, .. } = records.read(&keys::session(payment))?.ok_or_else(missing)?;
    let mut event = events.into_iter().find(|event| event.id == *id).ok_or_else(missing)?;
    let data = event.data.take().map_or_else(|| RawJson::of(&session.payment), Ok);
    Ok((session, event, data.map_err(|error| StoreError::corrupt(key, error))?))
}

/// The part of an event's data that says which payment it is about.
#[derive(Deserialize)]
pub(super) struct DataHead {
    id: Option<String>,
    payment: Option<Box<DataHead>>,
}

impl DataHead {
    pub(super) fn payment(self) -> Option<String> {
        self.id.or_else(|| self.payment?.id)
    }
}
