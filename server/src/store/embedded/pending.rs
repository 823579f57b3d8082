//! Events whose deliveries are not all made.

use payments_core::{EventId, PaymentId, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    codec::{Records, parse},
    keys,
    stored::Stored,
    view::View,
};
use crate::{
    domain::PendingEvent,
    store::{Due, StoreError, Work},
};

/// The record of such an event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Untold {
    /// The payment that it is an event of.
    pub(super) payment: PaymentId,
    /// The last endpoint that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<WebhookId>,
}

impl View<'_, '_> {
    /// More endpoints were looked at for an event; all of them where `after` is `None`.
    pub(super) fn fanned_out(&mut self, event: &EventId, after: Option<WebhookId>) -> Result<(), StoreError> {
        let key = keys::untold(event);
        match (self.read::<Untold>(&key)?, after) {
            (Some(untold), Some(after)) => self.put(key, &Untold { after: Some(after), ..untold })?,
            (_, None) => self.remove(key),
            (None, Some(_)) => {}
        }
        Ok(())
    }
}

/// An event whose deliveries are not all made, with what is sent.
pub(super) fn read(records: &impl Records, id: &EventId) -> Result<Option<PendingEvent>, StoreError> {
    let key = keys::untold(id);
    let Some(Untold { payment, after }) = records.read(&key)? else { return Ok(None) };
    let missing = |what: &str| StoreError::corrupt(&key, format_args!("its {what} is not there"));
    let stored: Stored = records.read(&keys::session(&payment))?.ok_or_else(|| missing("payment"))?;
    let event = stored.events.iter().find(|event| event.id == *id).ok_or_else(|| missing("event"))?;
    let data = stored.told(id).ok_or_else(|| missing("event"))?;
    let pending = data
        .and_then(|data| PendingEvent::new(&stored.session, id.clone(), event.event.clone(), event.created_at, &data));
    let pending = pending.map_err(|error| StoreError::corrupt(&key, error))?;
    Ok(Some(PendingEvent { after, ..pending }))
}

/// Events whose deliveries are not all made, the oldest first.
pub(super) fn due(records: &impl Records) -> impl Iterator<Item = Result<Due, StoreError>> {
    records.prefix(keys::UNTOLD).filter_map(|entry| {
        let due = || {
            let (key, value) = entry?;
            let Some(event) = keys::untold_event(&key) else { return Ok(None) };
            let Untold { payment, .. } = parse(&key, &value)?;
            Ok(Some(Due::in_order(Work::FanOut(event), payment)))
        };
        due().transpose()
    })
}
