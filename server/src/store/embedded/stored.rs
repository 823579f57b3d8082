//! A payment as it is stored: the session, its place in the list of payments, and its events.

use payments_core::{Envelope, EventId, EventKind, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::Session;

/// A payment's session, its place in its developer's list of payments, and what was ever told of it.
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
    /// Missing where it is the payment as the record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<RawJson>,
}

impl Stored {
    /// The data of an event.
    pub(super) fn told(&self, event: &EventId) -> Option<Result<RawJson, serde_json::Error>> {
        let event = self.events.iter().find(|told| told.id == *event)?;
        Some(event.data.clone().map_or_else(|| RawJson::of(&self.session.payment), Ok))
    }

    /// The events, for a record that will have the payment otherwise.
    pub(super) fn events_in_full(mut self) -> Result<Vec<Event>, serde_json::Error> {
        for event in self.events.iter_mut().filter(|event| event.data.is_none()) {
            event.data = Some(RawJson::of(&self.session.payment)?);
        }
        Ok(self.events)
    }

    /// An event of the payment as it is sent.
    pub(super) fn envelope(&self, id: &EventId) -> Option<Result<RawJson, serde_json::Error>> {
        let event = self.events.iter().find(|event| event.id == *id)?;
        let data = self.told(id)?;
        Some(data.and_then(|data| {
            RawJson::of(&Envelope { id, event: event.event.clone(), created_at: event.created_at, data: &data })
        }))
    }
}
