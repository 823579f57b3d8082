//! Lists in the order of creation. Each item keeps its position, counted from 0. Nothing leaves a list, so its length
//! is the next position. The exceptions are lists of lookup values: an erasure of a customer's data removes positions
//! from them.
//!
//! A list's head holds its length and its last items. Every [`CHUNK`] items move to a key of their own.

use std::{ops::Range, str::FromStr};

use payments_core::{DeliveryId, EventId, PaymentId, PayoutId, Timestamp, TransactionId, WebhookId};

use super::{
    codec::{items, pack, unpack},
    head::{CHUNK, Head, Tail},
    keys,
    reads::Reads,
};
use crate::{
    StoreError,
    domain::{Lookup, Scope, Subject},
};

/// Where a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// The key of its head. Other lists may have the same head.
    pub(super) head: Vec<u8>,
    /// Its name in the head.
    pub(super) name: &'static str,
    /// The prefix of its full chunks.
    chunks: Vec<u8>,
    /// The scope whose status bitmaps have a bit for each item.
    pub(super) bits: Option<Scope>,
}

impl List {
    pub(super) fn payments(scope: &Scope) -> Self {
        Self { bits: Some(scope.clone()), ..Self::of_scope(scope, "payments") }
    }

    pub(super) fn events(scope: &Scope) -> Self {
        Self::of_scope(scope, "events")
    }

    /// A scope's bookings that changed the merchant's balance: events, and bookings without an event.
    pub(super) fn transactions(scope: &Scope) -> Self {
        Self::of_scope(scope, "transactions")
    }

    pub(super) fn payouts(scope: &Scope) -> Self {
        Self::of_scope(scope, "payouts")
    }

    pub(super) fn deliveries(scope: &Scope) -> Self {
        Self::of_scope(scope, "deliveries")
    }

    fn of_scope(scope: &Scope, name: &'static str) -> Self {
        Self { head: keys::head_of_scope(scope), name, chunks: keys::chunks(scope, name), bits: None }
    }

    pub(super) fn deliveries_to(scope: &Scope, endpoint: &WebhookId) -> Self {
        let chunks = keys::chunks(scope, &format!("deliveries.{endpoint}"));
        Self { head: keys::head_of_endpoint(scope, endpoint), name: "deliveries", chunks, bits: None }
    }

    pub(super) fn deliveries_of(subject: &Subject) -> Self {
        Self::apart(keys::deliveries_of(subject), "deliveries")
    }

    /// The positions of the payments with a lookup value.
    pub(super) fn found(scope: &Scope, lookup: &Lookup) -> Self {
        Self::apart(keys::found(scope, lookup), "found")
    }

    /// A list with a head of its own.
    fn apart(head: Vec<u8>, name: &'static str) -> Self {
        let chunks = [&head[..], b"/"].concat();
        Self { head, name, chunks, bits: None }
    }

    pub(super) fn chunk(&self, number: u64) -> Vec<u8> {
        keys::numbered(&self.chunks, number)
    }

    /// The end of the list in its head.
    pub(super) fn tail<'h>(&self, head: &'h Head) -> Option<&'h Tail> {
        head.lists.get(self.name)
    }
}

pub(super) fn item_of_payment(id: &PaymentId) -> Vec<u8> {
    pack(PaymentId::PREFIX, id.as_str())
}

pub(super) fn item_of_payout(id: &PayoutId) -> Vec<u8> {
    pack(PayoutId::PREFIX, id.as_str())
}

pub(super) fn item_of_event(id: &EventId) -> Vec<u8> {
    pack(EventId::PREFIX, id.as_str())
}

/// An item of the list of transactions. Its id is long there, because the short ones are events'.
pub(super) fn item_of_booking(id: &TransactionId) -> Vec<u8> {
    pack(EventId::PREFIX, id.as_str())
}

pub(super) fn item_of_delivery(id: &DeliveryId) -> Vec<u8> {
    pack(DeliveryId::PREFIX, id.as_str())
}

/// A list as it was when its head was read. Items that are added later are beyond its end.
pub(super) struct ReadList<'r> {
    reads: Reads<'r>,
    list: List,
    tail: Tail,
    /// The chunk that was read last.
    chunk: Option<(u64, Vec<u8>)>,
}

impl<'r> ReadList<'r> {
    pub(super) async fn open(reads: Reads<'r>, list: List) -> Result<Self, StoreError> {
        let head = reads.head(&list.head).await?;
        Ok(Self::of(reads, list, &head))
    }

    /// The list of a head that was read.
    pub(super) fn of(reads: Reads<'r>, list: List, head: &Head) -> Self {
        let tail = list.tail(head).cloned().unwrap_or_default();
        Self { reads, list, tail, chunk: None }
    }

    pub(super) fn count(&self) -> u64 {
        self.tail.count()
    }

    /// The items at these positions, in this order. Positions beyond the end have none.
    pub(super) async fn at(&mut self, positions: &[u64]) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut numbers: Vec<u64> =
            positions.iter().filter(|it| **it < self.tail.before).map(|it| it / CHUNK).collect();
        numbers.dedup();
        let known = self.chunk.take();
        numbers.retain(|number| known.as_ref().is_none_or(|(known, _)| known != number));
        let keys = numbers.iter().map(|number| self.list.chunk(*number)).collect();
        let found = self.reads.get(keys).await?;
        let mut chunks: Vec<(u64, Vec<u8>)> =
            numbers.into_iter().zip(found).filter_map(|(number, chunk)| Some((number, chunk?))).collect();
        chunks.extend(known);
        let tail: Vec<&[u8]> = self.tail.items().collect();
        let of_chunks: Vec<(u64, Vec<&[u8]>)> =
            chunks.iter().map(|(number, chunk)| (*number, items(chunk).collect())).collect();
        let item = |position: &u64| match position.checked_sub(self.tail.before) {
            Some(after) => tail.get(usize::try_from(after).ok()?).map(|item| item.to_vec()),
            None => {
                let chunk = of_chunks.iter().find(|(number, _)| *number == position / CHUNK);
                chunk?.1.get(usize::try_from(position % CHUNK).ok()?).map(|item| item.to_vec())
            }
        };
        let found = positions.iter().filter_map(item).collect();
        self.chunk = positions.last().and_then(|last| chunks.into_iter().find(|(number, _)| *number == last / CHUNK));
        Ok(found)
    }

    /// The first chunk whose first item was made at `time` or later. Items are only nearly in the order of their times, which
    /// the caller allows for.
    pub(super) async fn first_chunk_since<I: FromStr>(
        &mut self,
        prefix: &str,
        created_at: impl Fn(&I) -> Option<Timestamp>,
        time: Timestamp,
    ) -> Result<u64, StoreError> {
        let is_before =
            |item: &Vec<u8>| unpack(prefix, item).and_then(|id| created_at(&id)).is_some_and(|it| it < time);
        let (mut low, mut high) = (0, self.count().div_ceil(CHUNK));
        while low < high {
            let middle = u64::midpoint(low, high);
            let first = self.at(&[middle * CHUNK]).await?;
            if first.first().is_some_and(is_before) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    pub(super) async fn within(&mut self, positions: Range<u64>) -> Result<Vec<Vec<u8>>, StoreError> {
        self.at(&positions.collect::<Vec<_>>()).await
    }
}
