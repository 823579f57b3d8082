//! Deliveries, the outbox and pending events.

use super::{
    super::{
        deliveries::{Queued, lists_of},
        keys, packed,
        pending::PendingRecord,
    },
    Check, part,
};
use crate::{
    domain::{Outgoing, delivery_faults},
    store::StoreError,
};

impl Check<'_> {
    pub(super) fn delivery(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(outgoing) = self.parse::<Outgoing>(key, value) else { return Ok(()) };
        let delivery = &outgoing.delivery;
        self.expect(key == keys::delivery(&delivery.id), key, "holds another delivery");
        if let Some(event) = &outgoing.event {
            let has_it = outgoing.payment.as_ref().map_or(Ok(false), |payment| self.has_event(payment, event))?;
            self.expect(has_it, key, "sends an event that is not there");
        }
        if let Some(queued) = Queued::of(&outgoing) {
            let is_queued = self.get(&queued.key)?.is_some();
            self.expect(is_queued, key, "is pending and not in the outbox: it will never be sent");
        }
        delivery_faults(&outgoing).into_iter().for_each(|fault| self.find(key, fault));
        if let Some(payment) = &outgoing.payment {
            let named = self.get(&keys::deliveries_of(payment))?.unwrap_or_default();
            let is_named = packed::has_line(&named, delivery.id.as_str());
            self.expect(is_named, key, "is not among the deliveries of its payment");
        }
        for list in lists_of(&outgoing) {
            *self.sums.deliveries.entry(list.count()).or_default() += 1;
        }
        Ok(())
    }

    /// Each delivery that is named among those of a payment is one of the payment.
    pub(super) fn deliveries_of(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for id in packed::lines(value) {
            let outgoing: Option<Outgoing> = self.named(Some(id), keys::delivery)?;
            let payment = outgoing.and_then(|outgoing| outgoing.payment);
            let is_its = payment.is_some_and(|payment| key == keys::deliveries_of(&payment));
            self.expect(is_its, key, format_args!("names {id}, which is no delivery of this payment"));
        }
        Ok(())
    }

    pub(super) fn outbox(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let outgoing: Option<Outgoing> = self.named(part(key, 2), keys::delivery)?;
        self.queued(key, value, outgoing, "names a delivery that has ended or does not exist");
        *self.sums.counts.entry(keys::pending_deliveries()).or_default() += 1;
        Ok(())
    }

    pub(super) fn retry(&mut self, key: &[u8]) -> Result<(), StoreError> {
        let id = keys::delivery_to_retry(key);
        let outgoing: Option<Outgoing> = id.map_or(Ok(None), |id| self.other(&keys::delivery(&id)))?;
        self.queued(key, b"", outgoing, "names a delivery that does not wait for its next attempt then");
        *self.sums.counts.entry(keys::waiting_deliveries()).or_default() += 1;
        Ok(())
    }

    /// Expects an entry of a queue to be that of its delivery.
    fn queued(&mut self, key: &[u8], value: &[u8], outgoing: Option<Outgoing>, fault: &str) {
        let queued = outgoing.as_ref().and_then(Queued::of).filter(|queued| queued.key == key);
        self.expect(queued.is_some(), key, fault);
        let is_right = queued.is_none_or(|queued| queued.value == value);
        self.expect(is_right, key, "does not say since when its delivery is due");
    }

    /// A pending event exists.
    pub(super) fn pending_event(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(PendingRecord { payment, .. }) = self.parse(key, value) else { return Ok(()) };
        let event = keys::id_after(keys::PENDING_EVENTS, key);
        let is_there = event.map_or(Ok(false), |event| self.has_event(&payment, &event))?;
        self.expect(is_there, key, "names an event that does not exist");
        Ok(())
    }
}
