//! The lists of events.

use payments_core::{EventId, PaymentId};

use super::Tables;
use crate::{
    domain::Scope,
    store::{EventEntry, EventWrite, EventsFrom},
};

impl Tables {
    /// The events of a scope with their payments, in the order of the commits.
    fn events_in(&self, scope: &Scope) -> impl Iterator<Item = (&PaymentId, &EventWrite)> {
        self.events.iter().filter(move |(of, ..)| of == scope).map(|(_, payment, event)| (payment, event))
    }

    pub(super) fn event_list(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Option<Vec<EventEntry>> {
        let first = match from {
            EventsFrom::Beginning | EventsFrom::Time(_) => 0,
            EventsFrom::After(id) => self.events_in(scope).position(|(_, event)| event.id == *id)? + 1,
        };
        let entry = |(payment, event): (&PaymentId, &EventWrite)| EventEntry {
            id: event.id.clone(),
            kind: event.kind.clone(),
            payment: payment.clone(),
        };
        Some(self.events_in(scope).skip(first).take(at_most).map(entry).collect())
    }

    pub(super) fn payment_of_event(&self, scope: &Scope, id: &EventId) -> Option<PaymentId> {
        self.events_in(scope).find(|(_, event)| event.id == *id).map(|(payment, _)| payment.clone())
    }

    pub(super) fn events_of(&self, scope: &Scope, payments: &[PaymentId]) -> Vec<(PaymentId, Vec<EventWrite>)> {
        let is_there = |id: &&PaymentId| self.payments.iter().any(|(of, other)| of == scope && other == *id);
        let of = |payment: &PaymentId| {
            self.events_in(scope).filter(|(id, _)| *id == payment).map(|(_, it)| it.clone()).collect()
        };
        payments.iter().filter(is_there).map(|payment| (payment.clone(), of(payment))).collect()
    }
}
