//! The lists of events, and where in its list each event is.
//!
//! A line of a list is the event's id, its kind and its payment. A line of a place is the event's id, its scope and its
//! position, and if it moves money its position in the list of transactions. The places of the events of 2 ms share a record.

use std::str::FromStr;

use payments_core::{EventId, EventKind, PaymentId};

use super::{
    codec::Records,
    keys::{self, List},
    lists::first_leaf_from,
    packed,
    stored::{Parts, Stored},
    transactions,
    view::View,
};
use crate::{
    domain::{MoneyMove, Scope},
    store::{EventEntry, EventRecord, EventWrite, EventsFrom, StoreError},
};

/// A line of a list.
pub(super) fn line(entry: &EventEntry) -> String {
    format!("{} {} {}", entry.id, entry.kind, entry.payment)
}

/// The event of a line of a list.
pub(super) fn of_line(line: &str) -> Option<EventEntry> {
    let [id, kind, payment] = parts(line)?;
    Some(EventEntry { id: id.parse().ok()?, kind: EventKind::from(kind), payment: payment.parse().ok()? })
}

fn parts(line: &str) -> Option<[&str; 3]> {
    let mut parts = line.split(' ');
    Some([parts.next()?, parts.next()?, parts.next()?])
}

/// Where an event is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventPlace {
    pub(super) scope: Scope,
    /// Its position in the list of its scope's events.
    pub(super) position: u64,
    /// Its position in the list of its scope's transactions, if it moves money.
    pub(super) transaction: Option<u64>,
}

/// The place of an event.
pub(super) fn place_of(records: &impl Records, id: &EventId) -> Result<Option<EventPlace>, StoreError> {
    let places = records.bytes(&keys::event_places(id))?;
    Ok(packed::lines(&places).filter_map(of_place).find(|(of, _)| of == id).map(|(_, place)| place))
}

/// The event of a place's line, and the place.
pub(super) fn of_place(line: &str) -> Option<(EventId, EventPlace)> {
    let [id, scope, position] = parts(line)?;
    let transaction = line.split(' ').nth(3).map(str::parse).transpose().ok()?;
    Some((
        id.parse().ok()?,
        EventPlace { scope: keys::scope_of(scope)?, position: position.parse().ok()?, transaction },
    ))
}

/// The entry at a position of a list.
pub(super) fn at(records: &impl Records, list: &List, position: u64) -> Result<Option<EventEntry>, StoreError> {
    let leaf = records.bytes(&list.leaf(position))?;
    let nth = usize::try_from(position % keys::LEAF).unwrap_or(usize::MAX);
    Ok(packed::lines(&leaf).nth(nth).and_then(of_line))
}

/// A part of a scope's list; `None` if it has no such event to begin after.
pub(super) fn page(
    records: &impl Records,
    scope: &Scope,
    from: &EventsFrom,
    at_most: usize,
) -> Result<Option<Vec<EventEntry>>, StoreError> {
    let list = List::events(scope);
    let count: u64 = records.read(&list.count())?.unwrap_or_default();
    let first = match from {
        EventsFrom::Beginning => 0,
        EventsFrom::After(id) => match place_of(records, id)? {
            Some(place) if place.scope == *scope => place.position + 1,
            _ => return Ok(None),
        },
        // No later event of an earlier leaf is missed.
        EventsFrom::Time(time) => {
            first_leaf_from(records, &list, count, EventsFrom::margin(*time))?.saturating_sub(1) * keys::LEAF
        }
    };
    let mut entries = Vec::new();
    for number in first / keys::LEAF..count.div_ceil(keys::LEAF) {
        let begin = number * keys::LEAF;
        let leaf = records.bytes(&list.leaf(begin))?;
        let wanted = packed::lines(&leaf).zip(begin..count).filter(|(_, position)| *position >= first);
        entries.extend(wanted.filter_map(|(line, _)| of_line(line)).take(at_most - entries.len()));
        if entries.len() == at_most {
            break;
        }
    }
    Ok(Some(entries))
}

/// The events of a payment of a scope, oldest first, with their data; `None` if it is not there.
pub(super) fn of_payment(
    records: &impl Records,
    scope: &Scope,
    payment: &PaymentId,
) -> Result<Option<Vec<EventWrite>>, StoreError> {
    let at = keys::session(payment);
    let Some(record) = records.get(&at)? else { return Ok(None) };
    let parts = Parts::of(&at, &record)?;
    if !parts.is_of(scope) {
        return Ok(None);
    }
    let json = parts.json()?;
    let events = Stored::of(&parts)?.events.into_iter().map(|mut event| {
        let data = event.data.take().unwrap_or_else(|| json.clone());
        EventWrite { id: event.id, kind: event.event, created_at: event.created_at, data }
    });
    Ok(Some(events.collect()))
}

/// At most `at_most` entries of all lists after an event, in the order of their ids.
pub(super) fn records_after(
    records: &impl Records,
    after: Option<&str>,
    at_most: usize,
) -> Result<Vec<EventRecord>, StoreError> {
    let after = after.and_then(|id| EventId::from_str(id).ok());
    let from = after.as_ref().map_or_else(|| keys::EVENT_PLACES.to_vec(), keys::event_places);
    let mut found = Vec::new();
    for entry in records.range(from..) {
        let (key, places) = entry?;
        if !key.starts_with(keys::EVENT_PLACES) {
            break;
        }
        let mut places: Vec<_> = packed::lines(&places).filter_map(of_place).collect();
        places.sort_by(|one, other| one.0.cmp(&other.0));
        for (_, place) in places.into_iter().filter(|(id, _)| after.as_ref() < Some(id)) {
            let EventPlace { scope, position, transaction } = place;
            let missing = || StoreError::corrupt(&key, format_args!("no event is at position {position} of its list"));
            let entry = at(records, &List::events(&scope), position)?.ok_or_else(missing)?;
            let money = transaction.map(|position| transactions::at(records, &scope, position)).transpose()?;
            found.push(EventRecord { scope, entry, money: money.flatten().map(|it| it.entry.money) });
        }
        if found.len() >= at_most {
            break;
        }
    }
    found.truncate(at_most);
    Ok(found)
}

/// How many events there are.
pub(super) fn count(records: &impl Records) -> Result<u64, StoreError> {
    records.prefix(keys::EVENT_PLACES).try_fold(0, |count, entry| Ok(count + packed::lines(&entry?.1).count() as u64))
}

impl View<'_, '_> {
    /// Adds an event to the end of its scope's list, and to that of its transactions if it moves money.
    pub(super) fn add_event(
        &mut self,
        scope: &Scope,
        entry: &EventEntry,
        money: Option<MoneyMove>,
    ) -> Result<(), StoreError> {
        let position = self.append(&List::events(scope), &line(entry))?;
        let mut place = format!("{} {scope} {position}", entry.id);
        if let Some(money) = money {
            let transaction = self.add_transaction(scope, &entry.id, &entry.payment, money)?;
            place.push_str(&format!(" {transaction}"));
        }
        self.add_line(keys::event_places(&entry.id), &place)
    }
}
