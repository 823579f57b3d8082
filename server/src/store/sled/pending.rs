//! Events whose deliveries are not all made.

use payments_core::{EventId, PaymentId, WebhookId};
use serde::{Deserialize, Serialize};

use super::{codec::parse, keys, records::Records, stored::Stored, view::View};
use crate::{
    domain::PendingEvent,
    store::{Lease, Leases, StoreError, Work},
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

impl View<'_> {
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
pub(super) fn read(records: &Records, id: &EventId) -> Result<Option<PendingEvent>, StoreError> {
    let key = keys::untold(id);
    let Some(Untold { payment, after }) = records.read(&key)? else { return Ok(None) };
    let missing = |what: &str| StoreError::corrupt(&key, format_args!("its {what} is not there"));
    let stored: Stored = records.read(&keys::session(&payment))?.ok_or_else(|| missing("payment"))?;
    let event = stored.events.iter().find(|event| event.id == *id).ok_or_else(|| missing("event"))?;
    let envelope =
        stored.envelope(id).ok_or_else(|| missing("event"))?.map_err(|error| StoreError::corrupt(&key, error))?;
    Ok(Some(PendingEvent {
        id: id.clone(),
        kind: event.event.clone(),
        created_at: event.created_at,
        envelope,
        app_id: stored.session.payment.app_id.clone(),
        scope: stored.session.scope(),
        payment,
        after,
    }))
}

/// Events whose deliveries are not all made, the oldest first. An event is left out while another server has an earlier one
/// of its payment.
pub(super) fn due(records: &Records, leases: &Leases, lease: &Lease) -> impl Iterator<Item = Result<Work, StoreError>> {
    let mut others = Vec::new();
    records.under(keys::UNTOLD).filter_map(move |entry| {
        let event = || {
            let (key, value) = entry?;
            let Some(event) = keys::untold_event(&key) else { return Ok(None) };
            let Untold { payment, .. } = parse(&key, &value)?;
            let work = Work::FanOut(event);
            if leases.is_another_servers(&work, lease) {
                others.push(payment);
                return Ok(None);
            }
            Ok((!others.contains(&payment)).then_some(work))
        };
        event().transpose()
    })
}
