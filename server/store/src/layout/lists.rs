//! Reads lists of events, transactions and deliveries: pages, and parts that begin at an item or a time.

use std::{ops::Range, str::FromStr};

use payments_core::{
    Delivery, DeliveryId, EventId, Page, PageRequest, PaymentId, TransactionId, UnknownFields, WebhookId,
};

use super::{
    Store,
    booking::{ListedId, StoredBooking, StoredMoney},
    codec::unpack,
    delivery,
    event::StoredEvent,
    head::CHUNK,
    keys,
    list::{List, ReadList, item_of_booking, item_of_event},
    reads::{Reads, parse},
};
use crate::{
    DeliveriesFrom, EventEntry, EventsFrom, Result, TransactionEntry, TransactionsFrom,
    domain::{Outgoing, Scope, Subject},
    earliest_in_list,
    list_parts::latest_in_list,
};

/// The ids of a list's items.
pub(super) fn ids<I: FromStr>(prefix: &str, items: &[Vec<u8>]) -> Vec<I> {
    items.iter().filter_map(|item| unpack(prefix, item)).collect()
}

/// Makes a page of these items.
pub(super) fn page_of<T>(items: Vec<T>, total: u64, request: PageRequest) -> Page<T> {
    Page { items, total, page: request.page(), limit: request.limit(), unknown: UnknownFields::new() }
}

/// The positions that a page of a list of this length shows, the last one first.
pub(super) fn positions_of(total: u64, request: PageRequest) -> Vec<u64> {
    let end = total.saturating_sub(request.skipped());
    (end.saturating_sub(request.limit().into())..end).rev().collect()
}

impl Store {
    /// At most `at_most` entries of the list of a scope's events; `None` if the event to begin after is not in it.
    pub async fn events(&self, scope: &Scope, from: &EventsFrom, at_most: usize) -> Result<Option<Vec<EventEntry>>> {
        let reads = self.of_scope(scope);
        let mut list = ReadList::open(reads, List::events(scope)).await?;
        let first = match from {
            EventsFrom::Beginning => 0,
            EventsFrom::After(id) => match StoredEvent::read(reads, id).await?.filter(|it| it.scope == *scope) {
                Some(event) => event.position + 1,
                None => return Ok(None),
            },
            EventsFrom::Last => list.count().saturating_sub(1),
            // Begin early enough to miss no event of this time in an earlier chunk.
            EventsFrom::Time(time) => {
                let since = earliest_in_list(*time);
                list.first_chunk_since(EventId::PREFIX, EventId::created_at, since).await?.saturating_sub(1) * CHUNK
            }
        };
        let end = list.count().min(first.saturating_add(at_most as u64));
        let events = entries(reads, &list.within(first..end).await?).await?;
        Ok(Some(events.iter().map(StoredEvent::entry).collect()))
    }

    /// At most `at_most` entries of the list of a scope's transactions, newest first, of those at some positions; `None` if the
    /// event to begin with is not in the list.
    pub async fn transactions(
        &self,
        scope: &Scope,
        from: &TransactionsFrom,
        within: Range<u64>,
        at_most: usize,
    ) -> Result<Option<Vec<TransactionEntry>>> {
        let reads = self.of_scope(scope);
        let mut list = ReadList::open(reads, List::transactions(scope)).await?;
        // The position after the newest entry of the part.
        let end = match from {
            TransactionsFrom::Newest => list.count(),
            TransactionsFrom::Transaction(id) => {
                let of_event = event_of(id).map_or_else(Vec::new, |event| item_of_event(&event));
                let found = listed(reads, &[of_event, item_of_booking(id)]).await?;
                let found = found.into_iter().find(|it| it.scope == *scope).and_then(|it| it.money.listed);
                match found {
                    Some(listed) => list.count().min(listed.position + 1),
                    None => return Ok(None),
                }
            }
            TransactionsFrom::Before(time) => {
                let until = latest_in_list(*time);
                let chunk = list.first_chunk_since(EventId::PREFIX, ListedId::created_at, until).await?;
                list.count().min(chunk * CHUNK)
            }
        };
        let end = end.min(within.end);
        let begin = end.saturating_sub(at_most as u64).max(within.start);
        let positions: Vec<u64> = (begin..end).rev().collect();
        let found = listed(reads, &list.at(&positions).await?).await?;
        let entry = |ListedBooking { id, subject, money, .. }: ListedBooking| {
            let moved = money.moved()?;
            let balance_minor = money.listed?.balances().of(moved.currency);
            Some(TransactionEntry { id, subject, money: moved, balance_minor })
        };
        Ok(Some(found.into_iter().filter_map(entry).collect()))
    }

    /// A page of a developer's deliveries, newest first, to one endpoint or to all.
    pub async fn deliveries(
        &self,
        scope: &Scope,
        to: Option<&WebhookId>,
        request: PageRequest,
    ) -> Result<Page<Delivery>> {
        let reads = self.of_scope(scope);
        let list = to.map_or_else(|| List::deliveries(scope), |to| List::deliveries_to(scope, to));
        let mut list = ReadList::open(reads, list).await?;
        let total = list.count();
        let ids = ids(DeliveryId::PREFIX, &list.at(&positions_of(total, request)).await?);
        let items = delivery::read(reads, &ids).await?.into_iter().map(|it| it.delivery).collect();
        Ok(page_of(items, total, request))
    }

    /// At most `at_most` deliveries of the events of a scope's payment, oldest first.
    pub async fn deliveries_of(&self, scope: &Scope, payment: &PaymentId, at_most: usize) -> Result<Vec<Outgoing>> {
        let reads = self.of(payment.slot());
        let mut list = ReadList::open(reads, List::deliveries_of(&payment.clone().into())).await?;
        let end = list.count().min(at_most as u64);
        let mut found = delivery::read(reads, &ids(DeliveryId::PREFIX, &list.within(0..end).await?)).await?;
        found.retain(|it| it.scope() == *scope);
        Ok(found)
    }

    /// At most `at_most` deliveries to an endpoint of a scope, oldest first.
    pub async fn deliveries_from(
        &self,
        scope: &Scope,
        to: &WebhookId,
        from: &DeliveriesFrom,
        at_most: usize,
    ) -> Result<Vec<Outgoing>> {
        let reads = self.of(to.slot());
        let mut list = ReadList::open(reads, List::deliveries_to(scope, to)).await?;
        let first = list.first_chunk_since(DeliveryId::PREFIX, DeliveryId::created_at, from.earliest()).await?;
        let mut chunk = first.saturating_sub(1);
        let (mut found, mut is_after) = (Vec::new(), from.after.is_none());
        while found.len() < at_most && chunk * CHUNK < list.count() {
            let end = list.count().min((chunk + 1) * CHUNK);
            for id in ids(DeliveryId::PREFIX, &list.within(chunk * CHUNK..end).await?) {
                if !is_after {
                    is_after = from.after.as_ref() == Some(&id);
                } else if found.len() < at_most {
                    found.push(id);
                }
            }
            chunk += 1;
        }
        delivery::read(reads, &found).await
    }
}

/// The events of these items, without their data.
async fn entries(reads: Reads<'_>, items: &[Vec<u8>]) -> Result<Vec<StoredEvent>> {
    let keys = ids(EventId::PREFIX, items).iter().map(keys::event).collect();
    reads.records(keys, |key, record| StoredEvent::parse(key, &record)).await
}

/// A booking in the list of transactions.
pub(super) struct ListedBooking {
    id: TransactionId,
    scope: Scope,
    subject: Subject,
    pub(super) money: StoredMoney,
}

/// The bookings of these items, in their order. Leaves out missing ones.
pub(super) async fn listed(reads: Reads<'_>, items: &[Vec<u8>]) -> Result<Vec<ListedBooking>> {
    let ids: Vec<ListedId> = ids(EventId::PREFIX, items);
    let keys: Vec<_> = ids.iter().map(ListedId::key).collect();
    let mut found = Vec::new();
    for ((id, key), record) in ids.into_iter().zip(&keys).zip(reads.get(keys.clone()).await?) {
        let Some(record) = record else { continue };
        found.extend(match id {
            ListedId::Event(_) => {
                let StoredEvent { id, scope, subject, money, .. } = StoredEvent::parse(key, &record)?;
                transaction_of(&id).zip(money).map(|(id, money)| ListedBooking { id, scope, subject, money })
            }
            ListedId::Booking(_) => {
                let StoredBooking { id, scope, subject, money, .. } = parse(key, &record)?;
                Some(ListedBooking { id, scope, subject, money })
            }
        });
    }
    Ok(found)
}

/// The event whose transaction has this id, if there is one.
fn event_of(id: &TransactionId) -> Option<EventId> {
    let rest = id.as_str().strip_prefix(TransactionId::PREFIX)?;
    format!("{}{rest}", EventId::PREFIX).parse().ok()
}

/// The transaction of an event.
fn transaction_of(event: &EventId) -> Option<TransactionId> {
    let rest = event.as_str().strip_prefix(EventId::PREFIX)?;
    format!("{}{rest}", TransactionId::PREFIX).parse().ok()
}
