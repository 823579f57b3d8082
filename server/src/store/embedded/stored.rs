//! The record of a payment.

use payments_core::{Envelope, EventId, EventKind, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::Session;

/// A payment's session, its place in its developer's list of payments, and its events.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) place: u64,
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
    /// The data of an event.
    pub(super) fn event_data(&self, event: &EventId) -> Option<Result<RawJson, serde_json::Error>> {
        let event = self.events.iter().find(|told| told.id == *event)?;
        Some(event.data.clone().map_or_else(|| RawJson::of(&self.session.payment), Ok))
    }

    /// The events with all their data, for a record whose payment changes.
    pub(super) fn events_in_full(mut self) -> Result<Vec<Event>, serde_json::Error> {
        for event in self.events.iter_mut().filter(|event| event.data.is_none()) {
            event.data = Some(RawJson::of(&self.session.payment)?);
        }
        Ok(self.events)
    }

    /// The envelope of an event.
    pub(super) fn envelope(&self, id: &EventId) -> Option<Result<RawJson, serde_json::Error>> {
        let event = self.events.iter().find(|event| event.id == *id)?;
        let data = self.event_data(id)?;
        Some(data.and_then(|data| {
            RawJson::of(&Envelope { id, event: event.event.clone(), created_at: event.created_at, data: &data })
        }))
    }
}
