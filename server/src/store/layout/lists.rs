//! Reads lists of events, transactions and deliveries: pages, and parts from a place on.

use std::str::FromStr;

use payments_core::{DeliveryId, EventId, Page, PageRequest, Timestamp, UnknownFields};

use super::{
    codec::unpack,
    delivery, event,
    head::CHUNK,
    keys,
    list::{List, ReadList},
    reads::Reads,
};
use crate::{
    domain::{Outgoing, Scope},
    store::{DeliveriesFrom, EventEntry, EventsFrom, Result, TransactionEntry, TransactionsFrom},
};

/// The time in a packed id.
pub(super) fn time_of<I: FromStr>(
    prefix: &str,
    item: &[u8],
    time: impl Fn(&I) -> Option<Timestamp>,
) -> Option<Timestamp> {
    unpack::<I>(prefix, item).and_then(|id| time(&id))
}

/// Makes a page of what it shows.
pub(super) fn page_of<T>(items: Vec<T>, total: u64, request: PageRequest) -> Page<T> {
    Page { items, total, page: request.page(), limit: request.limit(), unknown: UnknownFields::new() }
}

/// The positions that a page of a list of this length shows, the last one first.
pub(super) fn positions_of(total: u64, request: PageRequest) -> Vec<u64> {
    let end = total.saturating_sub(request.skipped());
    (end.saturating_sub(request.limit().into())..end).rev().collect()
}

/// A part of a scope's events; `None` if it has no such event to begin after.
pub(super) async fn events(
    reads: Reads<'_>,
    scope: &Scope,
    from: &EventsFrom,
    at_most: usize,
) -> Result<Option<Vec<EventEntry>>> {
    let mut list = ReadList::open(reads, List::events(scope)).await?;
    let first = match from {
        EventsFrom::Beginning => 0,
        EventsFrom::After(id) => match event::StoredEvent::read(reads, id).await?.filter(|it| it.scope == *scope) {
            Some(event) => event.position + 1,
            None => return Ok(None),
        },
        // No later event of an earlier chunk is missed.
        EventsFrom::Time(time) => chunk_before(&mut list, EventsFrom::margin(*time)).await? * CHUNK,
    };
    let end = list.count().min(first.saturating_add(at_most as u64));
    let ids: Vec<EventId> = event_ids(&list.within(first..end).await?);
    Ok(Some(entries(reads, &ids).await?.iter().map(event::StoredEvent::entry).collect()))
}

fn event_ids(items: &[Vec<u8>]) -> Vec<EventId> {
    items.iter().filter_map(|item| unpack(EventId::PREFIX, item)).collect()
}

/// The number of a chunk of a list of events before which all are earlier than a time, nearly.
async fn chunk_before(list: &mut ReadList<'_>, time: Timestamp) -> Result<u64> {
    let is_before = |item: &[u8]| time_of(EventId::PREFIX, item, EventId::created_at).is_some_and(|it| it < time);
    Ok(list.first_chunk_where_not(is_before).await?.saturating_sub(1))
}

/// The events of these ids, without their data.
async fn entries(reads: Reads<'_>, ids: &[EventId]) -> Result<Vec<event::StoredEvent>> {
    let keys: Vec<_> = ids.iter().map(keys::event).collect();
    let records = reads.get(keys.clone()).await?;
    let found = keys.iter().zip(records).filter_map(|(key, record)| Some((key, record?)));
    found.map(|(key, record)| event::StoredEvent::parse(key, &record)).collect()
}

/// A part of a scope's transactions, newest first; `None` if it has no such event to begin with.
pub(super) async fn transactions(
    reads: Reads<'_>,
    scope: &Scope,
    from: &TransactionsFrom,
    at_most: usize,
) -> Result<Option<Vec<TransactionEntry>>> {
    let mut list = ReadList::open(reads, List::transactions(scope)).await?;
    // The position after the newest entry of the part.
    let end = match from {
        TransactionsFrom::Newest => list.count(),
        TransactionsFrom::Event(id) => {
            let event = event::StoredEvent::read(reads, id).await?.filter(|it| it.scope == *scope);
            match event.and_then(|it| it.money) {
                Some(money) => list.count().min(money.position + 1),
                None => return Ok(None),
            }
        }
        TransactionsFrom::Before(time) => {
            let time = TransactionsFrom::margin(*time);
            let is_before =
                |item: &[u8]| time_of(EventId::PREFIX, item, EventId::created_at).is_some_and(|it| it < time);
            list.count().min(list.first_chunk_where_not(is_before).await? * CHUNK)
        }
    };
    let positions: Vec<u64> = (end.saturating_sub(at_most as u64)..end).rev().collect();
    let events = entries(reads, &event_ids(&list.at(&positions).await?)).await?;
    let entry = |event: event::StoredEvent| {
        let money = event.money?;
        let (moved, balances) = (money.moved()?, money.balances());
        let balance_minor = balances.of(moved.currency);
        Some(TransactionEntry { event: event.id, payment: event.payment, money: moved, balance_minor })
    };
    Ok(Some(events.into_iter().filter_map(entry).collect()))
}

/// A page of a list of deliveries, newest first.
pub(super) async fn deliveries(reads: Reads<'_>, list: List, request: PageRequest) -> Result<Page<Outgoing>> {
    let mut list = ReadList::open(reads, list).await?;
    let total = list.count();
    let ids = delivery_ids(&list.at(&positions_of(total, request)).await?);
    Ok(page_of(delivery::read(reads, &ids).await?, total, request))
}

fn delivery_ids(items: &[Vec<u8>]) -> Vec<DeliveryId> {
    items.iter().filter_map(|item| unpack(DeliveryId::PREFIX, item)).collect()
}

/// At most `at_most` deliveries of a list, oldest first.
pub(super) async fn first_deliveries(reads: Reads<'_>, list: List, at_most: usize) -> Result<Vec<Outgoing>> {
    let mut list = ReadList::open(reads, list).await?;
    let end = list.count().min(at_most as u64);
    let ids = delivery_ids(&list.within(0..end).await?);
    delivery::read(reads, &ids).await
}

/// At most `at_most` deliveries of a list from a time on, in the order of the list.
pub(super) async fn deliveries_from(
    reads: Reads<'_>,
    list: List,
    from: &DeliveriesFrom,
    at_most: usize,
) -> Result<Vec<Outgoing>> {
    let mut list = ReadList::open(reads, list).await?;
    let time = from.earliest();
    let is_before = |item: &[u8]| time_of(DeliveryId::PREFIX, item, DeliveryId::created_at).is_some_and(|it| it < time);
    let mut chunk = list.first_chunk_where_not(is_before).await?.saturating_sub(1);
    let (mut ids, mut is_after) = (Vec::new(), from.after.is_none());
    while ids.len() < at_most && chunk * CHUNK < list.count() {
        let end = list.count().min((chunk + 1) * CHUNK);
        for id in delivery_ids(&list.within(chunk * CHUNK..end).await?) {
            if !is_after {
                is_after = from.after.as_ref() == Some(&id);
            } else if ids.len() < at_most {
                ids.push(id);
            }
        }
        chunk += 1;
    }
    delivery::read(reads, &ids).await
}
