//! The events of a payment as its record holds them.

use payments_core::{Envelope, EventId, EventKind, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::EventWrite;
use crate::domain::Outgoing;

/// An event of a payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredEvent {
    pub(crate) id: EventId,
    pub(crate) event: EventKind,
    pub(crate) created_at: Timestamp,
    /// Missing if it equals the payment in the same record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<RawJson>,
}

impl StoredEvent {
    /// The event of a change, in the record of the payment as it is after the change.
    pub(crate) fn new(write: EventWrite, payment: &RawJson) -> Self {
        let EventWrite { id, kind, created_at, data } = write;
        Self { id, event: kind, created_at, data: (data != *payment).then_some(data) }
    }

    /// Moves the events of a payment's record to the record of the next payment. They keep their data if that differs from
    /// this payment.
    pub(crate) fn carry_over(events: &mut [Self], payment: &RawJson, next: &RawJson) {
        if payment != next {
            for event in events.iter_mut().filter(|event| event.data.is_none()) {
                event.data = Some(payment.clone());
            }
        }
    }

    /// Takes the data of an event out of its payment's record.
    pub(crate) fn take_data(
        &mut self,
        payment: impl FnOnce() -> Result<RawJson, serde_json::Error>,
    ) -> Result<RawJson, serde_json::Error> {
        self.data.take().map_or_else(payment, Ok)
    }

    /// Gives a delivery the payload that its event holds.
    pub(crate) fn fill(&self, outgoing: &mut Outgoing, data: &RawJson) -> Result<(), serde_json::Error> {
        let envelope = Envelope { id: &self.id, event: self.event.clone(), created_at: self.created_at, data };
        outgoing.delivery.payload = RawJson::of(&envelope)?;
        Ok(())
    }
}

/// The id of the payment that an event's data is about.
pub(super) fn payment_of(data: &RawJson) -> Result<Option<String>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<String>,
        payment: Option<Box<Head>>,
    }
    let Head { id, payment } = serde_json::from_str(data.as_str())?;
    Ok(id.or_else(|| payment?.id))
}
