//! Takes in the records that a migration moves here.

use std::borrow::Cow;

use payments_core::RawJson;

use super::{
    draft::{Draft, Refused},
    entry::day_number,
    event::{Pending, StoredEvent, StoredMoney},
    idempotency::{KeptResponse, ResponseOf},
    keys,
    list::List,
    payment::StoredPayment,
};
use crate::{
    domain::MoneyMove,
    store::{
        Conflict, EventRecord, MOVED, PaymentRecord, PendingEventRecord, Record, ResponseRecord, StoreError, Taking,
    },
};

impl Draft<'_> {
    /// Writes a record of another store.
    pub(super) fn take_in(&mut self, record: &Record) -> Result<(), Refused> {
        match record.clone().into() {
            Taking::Write(write) => self.write(&write, MOVED).map(drop),
            Taking::Payment(it) => self.take_in_payment(*it),
            Taking::StoredResponse(it) => self.take_in_response(*it),
            Taking::PendingEvent(PendingEventRecord { id, after, .. }) => {
                let before = self.moved_event(&id)?;
                let after = StoredEvent { pending: Some(Pending { after }), ..before.clone() };
                self.replace(Some(&before), &after)
            }
            Taking::Event(it) => self.take_in_event(&it),
            Taking::RedactedUpTo(id) => self.redacted_up_to(&id),
        }
    }

    fn take_in_payment(&mut self, record: PaymentRecord) -> Result<(), Refused> {
        let PaymentRecord { session, events, postings } = record;
        let (id, scope) = (session.payment.id.clone(), session.scope());
        let key = keys::payment(&id);
        if self.get(&key)?.is_some() {
            return Err(Conflict::Stale.into());
        }
        let json = RawJson::of(&session.payment).map_err(|error| StoreError::corrupt(&key, error))?;
        let mut postings = postings.into_iter();
        let ids = events.iter().map(|event| event.id.clone()).collect();
        let is_data = events.last().is_some_and(|event| event.data.is_none());
        let count = events.len();
        for (nth, event) in events.into_iter().enumerate() {
            // An event whose data is the payment as it stands, and that is not the last one, gets a copy.
            let data = event.data.or_else(|| (nth + 1 < count).then(|| json.clone()));
            let moves_money = crate::domain::moves_money(&event.event);
            let moved = if moves_money { postings.next() } else { None };
            let version = moved.as_ref().map_or(0, |(version, _)| *version);
            // The positions and the balances come with the event's place in its list.
            let money = moved.map(|(_, postings)| StoredMoney {
                currency: session.payment.currency,
                postings,
                day: day_number(session.payment.created_at),
                position: 0,
                bdt: 0,
                usd: 0,
            });
            let event = StoredEvent {
                id: event.id,
                event: event.event,
                created_at: event.created_at,
                scope: scope.clone(),
                payment: id.clone(),
                version,
                data,
                position: None,
                money,
                pending: None,
            };
            self.replace(None, &event)?;
        }
        let position = self.count(&List::payments(&scope))?;
        let (session, json) = (Cow::Owned(session), Cow::Owned(json));
        self.replace(None, &StoredPayment { session, json, position, events: ids, is_data })
    }

    /// Gives an event whose payment was moved its place in the list.
    fn take_in_event(&mut self, record: &EventRecord) -> Result<(), Refused> {
        let before = self.moved_event(&record.entry.id)?;
        let mut after = StoredEvent { position: Some(self.count(&List::events(&record.scope))?), ..before.clone() };
        if let Some(StoredMoney { currency, postings, day, .. }) = after.money.take()
            && let Some(moved) = MoneyMove::of(currency, &postings)
        {
            after.money = Some(self.new_money(&record.scope, &moved, postings, day)?);
        }
        self.replace(Some(&before), &after)
    }

    fn moved_event(&mut self, id: &payments_core::EventId) -> Result<StoredEvent, Refused> {
        let key = keys::event(id);
        let missing = || StoreError::corrupt(&key, "its payment was not moved");
        Ok(self.json(&key)?.ok_or_else(missing)?)
    }

    fn take_in_response(&mut self, ResponseRecord { key, response, event }: ResponseRecord) -> Result<(), Refused> {
        let at = keys::response(&key);
        if self.get(&at)?.is_some() {
            return Err(Conflict::Stale.into());
        }
        let event = event.map(|(_, event)| event);
        let body = event.is_none().then_some(response.body);
        let kept = KeptResponse { fingerprint: response.fingerprint, created_at: response.created_at, body, event };
        self.replace(None, &ResponseOf { key, kept })
    }
}
