//! The record of a payout, and its commit.

use payments_core::{Currency, EventId, Payout, TransactionId};
use serde::{Deserialize, Serialize};

use super::{
    booking::{MoneyOf, StoredBooking},
    change::{before_of, check_follows},
    draft::Draft,
    entry::{Entry, Record, gauge, key_alone},
    event::{Pending, StoredEvent},
    keys,
    list::{List, item_of_payout},
    merchants::ENDPOINTS,
};
use crate::{
    BookingWrite, CommitError, Conflict, EventWrite, PayoutWrite,
    domain::{PayoutCondition, PayoutRecord, PayoutRules, Subject, closing_balance},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPayout {
    pub(super) record: PayoutRecord,
    /// Its position in the list of its scope's payouts.
    pub(super) position: u64,
    /// The position of its first booking in the list of transactions: the last one of its statement.
    pub(super) to: u64,
    pub(super) events: Vec<EventId>,
    pub(super) bookings: Vec<TransactionId>,
}

impl Record for StoredPayout {
    fn key(&self) -> Vec<u8> {
        keys::payout(&self.record.payout.id)
    }

    fn text(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    fn entries(&self) -> Vec<Entry> {
        let PayoutRecord { scope, payout, .. } = &self.record;
        let Payout { id, status, currency, environment, .. } = payout;
        let item = item_of_payout(id);
        let mut entries = vec![
            Entry::Item { list: List::payouts(scope), position: self.position, item },
            gauge(format!("payouts.{environment}.{status}")),
        ];
        if status.is_open() {
            let value = id.as_str().as_bytes().to_vec();
            entries.push(Entry::Key { key: keys::open_payout_of(scope, *currency), value });
            entries.push(key_alone(keys::open_payout(id)));
        }
        if self.record.ends_statement {
            let (head, name) = (keys::head_of_scope(scope), stated_in(*currency));
            entries.push(Entry::Sum { head, name, amount: i128::from(self.to) + 1 - i128::from(self.record.from) });
        }
        entries.extend(self.record.batch.as_ref().map(|batch| key_alone(keys::payout_in_batch(batch, id))));
        entries
    }
}

/// The name of the sum of the transactions in the statements that ended, each of which begins after the one before.
pub(super) fn stated_in(currency: Currency) -> String {
    format!("stated.{currency}")
}

impl Draft<'_> {
    /// Returns whether its event became pending.
    pub(super) fn payout(&mut self, write: &PayoutWrite) -> Result<bool, CommitError> {
        let PayoutWrite { record, event, booking, condition } = write;
        let before: Option<StoredPayout> = self.json(&keys::payout(&record.payout.id))?;
        check_follows(before.as_ref().map(|it| it.record.version), before_of(record.version))?;
        self.meets(record, condition)?;
        let (position, to, mut events, mut bookings) = match &before {
            Some(it) => (it.position, it.to, it.events.clone(), it.bookings.clone()),
            None => {
                let to = self.count(&List::transactions(&record.scope))?;
                (self.count(&List::payouts(&record.scope))?, to, Vec::new(), Vec::new())
            }
        };
        events.extend(event.iter().map(|event| event.id.clone()));
        bookings.extend(booking.iter().map(|booking| booking.id.clone()));
        let after = StoredPayout { record: record.clone(), position, to, events, bookings };
        self.replace(before.as_ref(), &after)?;
        let subject = Subject::Payout(record.payout.id.clone());
        let scope = &record.scope;
        if let Some(BookingWrite { id, created_at, booking }) = booking {
            let of = MoneyOf { scope, currency: record.payout.currency, gateway: None, day: 0, held_day: None };
            let money = self.new_money(&of, *booking)?;
            let (id, created_at, scope, subject) = (id.clone(), *created_at, scope.clone(), subject.clone());
            self.replace(None, &StoredBooking { id, created_at, scope, subject, money })?;
        }
        let Some(EventWrite { id, kind, created_at, data }) = event else { return Ok(false) };
        let is_pending = self.head(&keys::head_of_scope(scope))?.sum(ENDPOINTS) > 0;
        let event = StoredEvent {
            id: id.clone(),
            event: kind.clone(),
            created_at: *created_at,
            scope: scope.clone(),
            subject,
            version: record.version,
            data: Some(data.clone()),
            position: self.count(&List::events(scope))?,
            money: None,
            pending: is_pending.then_some(Pending { after: None }),
        };
        self.replace(None, &event)?;
        Ok(is_pending)
    }

    fn meets(&mut self, record: &PayoutRecord, condition: &PayoutCondition) -> Result<(), CommitError> {
        let (scope, payout) = (&record.scope, &record.payout);
        match condition {
            PayoutCondition::None => Ok(()),
            PayoutCondition::NotOverdrawn => {
                let balance = self.funds(scope, payout.currency, &[])?.balance;
                if balance < 0 { Err(Conflict::Overdrawn { balance_minor: balance }.into()) } else { Ok(()) }
            }
            PayoutCondition::Available(PayoutRules { holds, reserve_minor }) => {
                if self.get(&keys::open_payout_of(scope, payout.currency))?.is_some() {
                    return Err(Conflict::PayoutOpen.into());
                }
                let funds = self.funds(scope, payout.currency, holds)?;
                let available = funds.available(*reserve_minor);
                if payout.amount > available {
                    return Err(Conflict::NotAvailable { available }.into());
                }
                let stated = self.head(&keys::head_of_scope(scope))?.sum(&stated_in(payout.currency));
                let closing = closing_balance(funds.balance, payout.amount);
                // The balance has changed since the statement was written, or the one before has ended.
                match closing == payout.statement.closing_balance && stated == i128::from(record.from) {
                    true => Ok(()),
                    false => Err(Conflict::Stale.into()),
                }
            }
        }
    }
}
