//! Deliveries, the outbox and pending events.

use payments_core::DeliveryStatus;

use super::{
    super::{
        keys::{self, List},
        pending::PendingRecord,
    },
    Check,
};
use crate::{domain::Outgoing, store::StoreError};

impl Check<'_> {
    pub(super) fn delivery(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(outgoing) = self.parse::<Outgoing>(key, value) else { return Ok(()) };
        let delivery = &outgoing.delivery;
        self.expect(key == keys::delivery(&delivery.id), key, "holds another delivery");
        if let Some(event) = &outgoing.event {
            let payment = outgoing.payment.as_ref().map(|id| self.stored(id.as_str())).transpose()?.flatten();
            let has_it = payment.is_some_and(|payment| payment.events.iter().any(|known| known.id == *event));
            self.expect(has_it, key, "sends an event that is not there");
        }
        let is_owed = self.is_there(&keys::outbox(&delivery.webhook_id, &delivery.id))?;
        let is_pending = delivery.status == DeliveryStatus::Pending;
        self.expect(is_owed || !is_pending, key, "is pending and not in the outbox: it will never be sent");
        let scope = outgoing.scope();
        for list in [List::deliveries(&scope), List::deliveries_to(&scope, &delivery.webhook_id)] {
            *self.deliveries.entry(list.count()).or_default() += 1;
        }
        Ok(())
    }

    pub(super) fn outbox(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = Self::parts(key).get(1).and_then(|id| id.parse().ok());
        let outgoing = id.map(|id| self.other::<Outgoing>(&keys::delivery(&id))).transpose()?.flatten();
        let is_owed = outgoing.is_some_and(|outgoing| {
            let delivery = &outgoing.delivery;
            delivery.status == DeliveryStatus::Pending && key == keys::outbox(&delivery.webhook_id, &delivery.id)
        });
        self.expect(is_owed, key, "owes a delivery that is over or not there");
        Ok(())
    }

    /// A pending event exists.
    pub(super) fn untold(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(PendingRecord { payment, .. }) = self.parse::<PendingRecord>(key, value) else { return Ok(()) };
        let stored = self.stored(payment.as_str())?;
        let is_there =
            keys::event_of_pending(key).is_some_and(|event| stored.is_some_and(|it| it.event_data(&event).is_some()));
        self.expect(is_there, key, "is to be told and is not there");
        Ok(())
    }
}
