//! The records of a store one by one, as they are exported.

use std::{cmp::Reverse, collections::BinaryHeap};

use payments_core::Slot;

use super::{
    Store,
    delivery::{StoredDelivery, with_payload},
    event::whole_events,
    keys,
    reads::{Scan, parse},
};
use crate::{
    Result,
    bytes::{KeyValue, with_prefix},
    domain::Outgoing,
};

/// How many records of each slot are in memory.
const AT_A_TIME: usize = 8;

/// The records of a kind in all slots, in the order of the text after the kind in their keys.
pub(super) struct InOrder<'s> {
    /// The next record of each slot.
    next: BinaryHeap<Reverse<Next>>,
    /// The rest of each slot's records.
    slots: Vec<Scan<'s>>,
    /// How many bytes of a key come before this text.
    prefix: usize,
}

/// The text after the kind in a record's key, the record's slot, and the record.
type Next = (Vec<u8>, Slot, KeyValue);

impl<'s> InOrder<'s> {
    pub(super) async fn open(store: &'s Store, kind: &str) -> Result<Self> {
        let prefix = keys::records_of(Slot::FIRST, kind).len();
        let mut records = Self { next: BinaryHeap::new(), slots: Vec::new(), prefix };
        for slot in Slot::all() {
            let keys = with_prefix(&keys::records_of(slot, kind));
            records.slots.push(Scan::new(store.of(slot), keys).at_a_time(AT_A_TIME));
            records.fill(slot).await?;
        }
        Ok(records)
    }

    /// Loads the next record of a slot.
    async fn fill(&mut self, slot: Slot) -> Result<()> {
        let Some(rest) = self.slots.get_mut(usize::from(slot.number())) else { return Ok(()) };
        if let Some((key, value)) = rest.next().await? {
            self.next.push(Reverse((key[self.prefix..].to_vec(), slot, (key, value))));
        }
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>> {
        let Some(Reverse((_, slot, record))) = self.next.pop() else { return Ok(None) };
        self.fill(slot).await?;
        Ok(Some(record))
    }
}

impl Store {
    /// The delivery of a record, with its payload.
    pub(super) async fn whole_delivery(&self, key: &[u8], value: &[u8]) -> Result<Outgoing> {
        let outgoing = parse::<StoredDelivery>(key, value)?.delivery;
        let reads = self.of(outgoing.delivery.id.slot());
        let whole = whole_events(reads, outgoing.event.as_slice()).await?;
        with_payload(outgoing, &whole)
    }
}
