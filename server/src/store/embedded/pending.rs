//! Pending events.

use payments_core::{EventId, PaymentId, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    codec::{Records, parse},
    keys,
    stored::read_event_and_session,
    view::View,
};
use crate::{
    domain::PendingEvent,
    store::{Due, StoreError, StoredEvent, Work},
};

/// The record of a pending event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PendingRecord {
    /// The event's payment.
    pub(super) payment: PaymentId,
    /// The last endpoint that fan-out has handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<WebhookId>,
}

impl View<'_, '_> {
    /// Records that fan-out has handled the endpoints up to `after`, or all of them if it is `None`.
    pub(super) fn fanned_out(&mut self, event: &EventId, after: Option<WebhookId>) -> Result<(), StoreError> {
        let key = keys::pending_event(event);
        match (self.read::<PendingRecord>(&key)?, after) {
            (Some(pending), Some(after)) => self.put(key, &PendingRecord { after: Some(after), ..pending })?,
            (_, None) => self.remove(key),
            (None, Some(_)) => {}
        }
        Ok(())
    }
}

/// A pending event with its envelope.
pub(super) fn read(records: &impl Records, id: &EventId) -> Result<Option<PendingEvent>, StoreError> {
    let key = keys::pending_event(id);
    let Some(PendingRecord { payment, after }) = records.read(&key)? else { return Ok(None) };
    let (session, StoredEvent { event, created_at, .. }, data) = read_event_and_session(records, &key, &payment, id)?;
    let pending = PendingEvent::new(&session, id.clone(), event, created_at, &data);
    let pending = pending.map_err(|error| StoreError::corrupt(&key, error))?;
    Ok(Some(PendingEvent { after, ..pending }))
}

/// All pending events, oldest first. Unreadable ones too: reading them says what is wrong, and does not stop the others.
pub(super) fn due(records: &impl Records) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.prefix(keys::PENDING_EVENTS).filter_map(|entry| {
        let due = || {
            let (key, value) = entry?;
            let Some(event) = keys::id_after(keys::PENDING_EVENTS, &key) else { return Ok(None) };
            let work = Work::FanOut(event);
            let payment = parse(&key, &value).ok().map(|record: PendingRecord| record.payment);
            Ok(Some((work, payment)))
        };
        due().transpose()
    })
}
