//! The lists of events and of transactions.

use payments_core::{EventId, PaymentId};

use super::Tables;
use crate::{
    domain::{MoneyMove, Scope},
    store::{EventEntry, EventWrite, EventsFrom, TransactionEntry, TransactionsFrom},
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

    /// The transactions of a scope, newest first.
    fn transactions_in(&self, scope: &Scope) -> impl Iterator<Item = &TransactionEntry> {
        self.transactions.iter().rev().filter(move |(of, _)| of == scope).map(|(_, entry)| entry)
    }

    pub(super) fn add_transaction(&mut self, scope: &Scope, payment: &PaymentId, event: &EventId, money: MoneyMove) {
        let before = self.transactions_in(scope).find(|it| it.money.currency == money.currency);
        let balance_minor = before.map_or(0, |it| it.balance_minor) + money.net();
        let entry = TransactionEntry { event: event.clone(), payment: payment.clone(), money, balance_minor };
        self.transactions.push((scope.clone(), entry));
    }

    pub(super) fn transaction_list(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        at_most: usize,
    ) -> Option<Vec<TransactionEntry>> {
        let first = match from {
            TransactionsFrom::Newest | TransactionsFrom::Before(_) => 0,
            TransactionsFrom::Event(id) => self.transactions_in(scope).position(|it| it.event == *id)?,
        };
        Some(self.transactions_in(scope).skip(first).take(at_most).cloned().collect())
    }
}
