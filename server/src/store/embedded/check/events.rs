//! Lists of events and of transactions, and where in them each event is.

use journaled_tree::Read;
use payments_core::{EventId, PaymentId, Posting};

use super::{
    super::{
        codec,
        events::{EventPlace, of_line, of_place},
        keys::{self, List},
        packed,
        stored::Stored,
        transactions::{self, Listed},
    },
    Check,
};
use crate::store::{StoreError, invariants::money_of_events};

impl Check<'_> {
    /// Whether a line at a position of a list of events names an event of its payment, which is said to be there.
    pub(super) fn event_belongs(&mut self, key: &[u8], line: &str, position: u64) -> Result<bool, StoreError> {
        let Some(entry) = of_line(line) else { return Ok(false) };
        let Some(stored) = self.stored(Some(entry.payment.as_str()))? else { return Ok(false) };
        let scope = stored.session.scope();
        let has_it = stored.events.iter().any(|event| event.id == entry.id && event.event == entry.kind);
        let place = self.place_of(&entry.id)?;
        let is_there = place.is_some_and(|place| place.scope == scope && place.position == position);
        Ok(has_it && is_there && key == List::events(&scope).leaf(position))
    }

    /// Whether a line at a position of a list of transactions is what an event of its payment adds to the balance, and goes on
    /// from the balances of the line before.
    pub(super) fn transaction_belongs(&mut self, key: &[u8], line: &str, position: u64) -> Result<bool, StoreError> {
        let Some(Listed { entry, balances }) = transactions::of_line(line) else { return Ok(false) };
        let Some(Stored { session, events, .. }) = self.stored(Some(entry.payment.as_str()))? else {
            return Ok(false);
        };
        let scope = session.scope();
        let changes = self.postings(&entry.payment)?;
        let money = money_of_events(session.payment.currency, &events, &changes);
        let is_its =
            events.iter().zip(money).any(|(event, money)| event.id == entry.event && money == Some(entry.money));
        let place = self.place_of(&entry.event)?;
        let is_there = place.is_some_and(|place| place.scope == scope && place.transaction == Some(position));
        // The records of a list come in the order of their positions.
        let running = self.sums.running.entry(scope.clone()).or_default();
        *running = running.after(&entry.money);
        let is_exact = *running == balances;
        Ok(is_its && is_there && is_exact && key == List::transactions(&scope).leaf(position))
    }

    /// The postings of each change of a payment. An unreadable record is reported where the check reaches it.
    pub(super) fn postings(&self, payment: &PaymentId) -> Result<Vec<Vec<Posting>>, StoreError> {
        let changes = self.database.prefix(&keys::postings_of(payment)).map(|entry| {
            let (key, json) = entry?;
            Ok(codec::parse(&key, &json).unwrap_or_default())
        });
        changes.collect()
    }

    /// Where an event is said to be.
    pub(super) fn place_of(&self, id: &EventId) -> Result<Option<EventPlace>, StoreError> {
        let places = self.get(&keys::event_places(id))?.unwrap_or_default();
        Ok(packed::lines(&places).filter_map(of_place).find(|(of, _)| of == id).map(|(_, place)| place))
    }

    /// Each event that is said to be at a position is there.
    pub(super) fn event_places(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        for line in packed::lines(value) {
            let mut is_there = false;
            if let Some((id, EventPlace { scope, position, transaction })) = of_place(line) {
                let entry = self.line(&List::events(&scope), position)?;
                is_there = entry.and_then(|line| of_line(&line)).is_some_and(|entry| entry.id == id);
                if let Some(position) = transaction {
                    let listed = self.line(&List::transactions(&scope), position)?;
                    let listed = listed.and_then(|line| transactions::of_line(&line));
                    is_there &= listed.is_some_and(|it| it.entry.event == id);
                }
            }
            self.expect(is_there, key, format_args!("says {line}, and that event is not there"));
        }
        Ok(())
    }

    /// The line at a position of a list.
    pub(super) fn line(&self, list: &List, position: u64) -> Result<Option<String>, StoreError> {
        let leaf = self.get(&list.leaf(position))?.unwrap_or_default();
        let nth = usize::try_from(position % keys::LEAF).unwrap_or(usize::MAX);
        Ok(packed::lines(&leaf).nth(nth).map(str::to_owned))
    }
}
