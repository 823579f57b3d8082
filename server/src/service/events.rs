//! The list of events about payments and payouts: those sent to webhook endpoints, and those for which there was no endpoint.

use std::collections::HashSet;

use payments_core::{Envelope, EventId, EventPage, EventQuery, PaymentId, RawJson, UnknownFields};

use super::{Caller, Record, Result, Service, ServiceError, error::NO_PAYMENT, page_bytes::fitting};
use crate::store::{EventEntry, EventWrite, EventsFrom};

/// How many entries a request examines at most, even if few match its filter.
const MAX_EXAMINED: usize = 1000;

impl Service {
    /// A part of the list, oldest first.
    pub async fn events(&self, caller: &Caller, query: &EventQuery) -> Result<EventPage<RawJson>> {
        if let Some(payment) = &query.payment {
            return self.events_of_payment(caller, payment, query).await;
        }
        let from = match (&query.after, query.created_after) {
            _ if query.is_latest => EventsFrom::Last,
            (Some(after), _) => EventsFrom::After(after.clone()),
            (None, Some(time)) => EventsFrom::Time(time),
            (None, None) => EventsFrom::Beginning,
        };
        let examined = if query.has_filter() { MAX_EXAMINED } else { query.limit() };
        let entries = self.store.events(&caller.scope, &from, examined + 1).await?.ok_or(NO_CURSOR)?;
        if query.is_latest {
            return Ok(end(entries.into_iter().next_back().map(|entry| entry.id)));
        }
        let mut chosen = choose(entries, query, examined);
        let ids: Vec<EventId> = chosen.items.iter().map(|entry| entry.id.clone()).collect();
        let mut events = self.store.whole_events(&caller.scope, &ids).await?;
        events.retain(|event| caller.sees(event.data.as_str()));
        let seen: HashSet<&EventId> = events.iter().map(|event| &event.id).collect();
        chosen.items.retain(|entry| seen.contains(&entry.id));
        let items = events.iter().map(envelope).collect::<Result<_, _>>()?;
        Ok(page(items, chosen))
    }

    pub async fn event(&self, caller: &Caller, id: &str) -> Result<RawJson> {
        let id: EventId = id.parse().map_err(|_| NO_EVENT)?;
        let mut found = self.store.whole_events(&caller.scope, &[id]).await?;
        envelope(&found.pop().filter(|event| caller.sees(event.data.as_str())).ok_or(NO_EVENT)?)
    }

    async fn events_of_payment(
        &self,
        caller: &Caller,
        payment: &PaymentId,
        query: &EventQuery,
    ) -> Result<EventPage<RawJson>> {
        let found = self.store.events_of(&caller.scope, std::slice::from_ref(payment)).await?;
        let own = found.into_iter().map(|(_, events)| events).next();
        let own = own.filter(|events| events.iter().all(|event| caller.sees(event.data.as_str())));
        let events = own.ok_or(NO_PAYMENT)?;
        let first = match &query.after {
            None if query.is_latest => return Ok(end(events.last().map(|event| event.id.clone()))),
            None => 0,
            Some(after) => events.iter().position(|event| event.id == *after).ok_or(NO_CURSOR)? + 1,
        };
        let entry = |event: &EventWrite| EventEntry { id: event.id.clone(), kind: event.kind.clone() };
        let chosen = choose(events[first..].iter().map(entry).collect(), query, usize::MAX);
        let is_chosen = |event: &&EventWrite| chosen.items.iter().any(|entry| entry.id == event.id);
        let items = events.iter().filter(is_chosen).map(envelope).collect::<Result<_, _>>()?;
        Ok(page(items, chosen))
    }
}

/// The page of chosen events. If its length ends it early, the next page begins after its last event.
fn page(mut items: Vec<RawJson>, chosen: EventPage<EventEntry>) -> EventPage<RawJson> {
    let EventPage { items: entries, mut has_more, mut next, unknown } = chosen;
    if let Some(fits) = fitting(items.iter().map(|event| event.as_str().len())) {
        items.truncate(fits);
        (has_more, next) = (true, entries.into_iter().nth(fits - 1).map(|entry| entry.id));
    }
    EventPage { items, has_more, next, unknown }
}

/// The end of the list, after its last event.
fn end(last: Option<EventId>) -> EventPage<RawJson> {
    EventPage { items: Vec::new(), has_more: false, next: last, unknown: UnknownFields::new() }
}

/// The first events that match the filters, out of the first `examined` entries.
fn choose(entries: Vec<EventEntry>, query: &EventQuery, examined: usize) -> EventPage<EventEntry> {
    let mut page =
        EventPage { items: Vec::new(), has_more: false, next: query.after.clone(), unknown: UnknownFields::new() };
    for (nth, entry) in entries.into_iter().enumerate() {
        if nth == examined || page.items.len() == query.limit() {
            page.has_more = true;
            break;
        }
        page.next = Some(entry.id.clone());
        if entry.id.created_at().is_none_or(|created_at| query.includes(&entry.kind, created_at)) {
            page.items.push(entry);
        }
    }
    page
}

/// The event as webhook endpoints get it.
fn envelope(event: &EventWrite) -> Result<RawJson> {
    let EventWrite { id, kind, created_at, data } = event;
    Ok(RawJson::of(&Envelope { id, event: kind.clone(), created_at: *created_at, data })?)
}

const NO_CURSOR: ServiceError = ServiceError::NotFound { what: Record::Cursor };
const NO_EVENT: ServiceError = ServiceError::NotFound { what: Record::Event };

#[cfg(test)]
mod tests {
    use payments_core::{EventKind, RANDOM_BYTES, Slot, Timestamp};

    use super::*;

    fn entry(nth: u8, kind: EventKind) -> EventEntry {
        let at = Timestamp::from_millis(1_700_000_000_000 + i64::from(nth)).unwrap();
        EventEntry { id: EventId::new(Slot::FIRST, at, [nth; RANDOM_BYTES]), kind }
    }

    #[test]
    fn a_part_without_a_matching_event_still_says_where_the_next_begins() {
        let entries: Vec<_> = (0..4).map(|nth| entry(nth, EventKind::PaymentCreated)).collect();
        let all = EventQuery::default();
        let mut completed = all.clone();
        completed.events.push(EventKind::PaymentCompleted);
        for (query, examined, found, has_more, next) in
            [(&all, 9, 4, false, 3), (&all, 2, 2, true, 1), (&completed, 9, 0, false, 3), (&completed, 3, 0, true, 2)]
        {
            let page = choose(entries.clone(), query, examined);
            assert_eq!((page.items.len(), page.has_more), (found, has_more));
            assert_eq!(page.next.as_ref(), Some(&entries[next].id));
        }
        let mut after = all.clone();
        after.after = Some(entries[3].id.clone());
        assert_eq!(choose(Vec::new(), &after, 9).next, after.after, "the end stays the end");
    }
}
