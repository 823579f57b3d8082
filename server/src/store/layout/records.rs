//! The records of a store one by one, as they are exported.

use std::{cmp::Reverse, collections::BinaryHeap};

use payments_core::Slot;

use super::{
    Store,
    delivery::{StoredDelivery, with_payload},
    event::told,
    keys,
    reads::{Reads, parse},
};
use crate::{
    domain::Outgoing,
    store::{
        Result,
        bytes::{KeyValue, with_prefix},
    },
};

/// The records of a kind in all slots, in the order of what stands behind the kind in their keys.
pub(super) struct InOrder<'s> {
    store: &'s Store,
    at_a_time: usize,
    /// The next record of each slot.
    next: BinaryHeap<Reverse<Next>>,
    slots: Vec<SlotScan>,
}

/// A record: what stands behind the kind in its key, its slot, and the value.
type Next = (Vec<u8>, Slot, Vec<u8>);

/// The rest of a slot's records.
struct SlotScan {
    prefix: Vec<u8>,
    page: std::vec::IntoIter<KeyValue>,
    /// The first key of the rest; `None` if there is none.
    rest: Option<Vec<u8>>,
}

impl<'s> InOrder<'s> {
    pub(super) async fn open(store: &'s Store, kind: &str, at_a_time: usize) -> Result<Self> {
        let mut records = Self { store, at_a_time, next: BinaryHeap::new(), slots: Vec::new() };
        for slot in Slot::all() {
            let prefix = keys::records_of(slot, kind);
            records.slots.push(SlotScan { rest: Some(prefix.clone()), prefix, page: Vec::new().into_iter() });
            records.fill(slot).await?;
        }
        Ok(records)
    }

    /// Brings the next record of a slot.
    async fn fill(&mut self, slot: Slot) -> Result<()> {
        let Some(scan) = self.slots.get_mut(usize::from(slot.number())) else { return Ok(()) };
        let mut entry = scan.page.next();
        if entry.is_none()
            && let Some(first) = scan.rest.take()
        {
            let keys = first..with_prefix(&scan.prefix).end;
            let page = Reads::of(&*self.store.bytes, slot).range(keys, self.at_a_time).await?;
            let last = page.last().filter(|_| page.len() == self.at_a_time);
            scan.rest = last.map(|(last, _)| [&last[..], &[0]].concat());
            scan.page = page.into_iter();
            entry = scan.page.next();
        }
        if let Some((key, value)) = entry {
            self.next.push(Reverse((key[scan.prefix.len()..].to_vec(), slot, value)));
        }
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>> {
        let Some(Reverse((name, slot, value))) = self.next.pop() else { return Ok(None) };
        self.fill(slot).await?;
        let prefix = &self.slots[usize::from(slot.number())].prefix;
        Ok(Some(([prefix, &name[..]].concat(), value)))
    }
}

impl Store {
    /// The delivery of a record, with its payload.
    pub(super) async fn whole_delivery(&self, key: &[u8], value: &[u8]) -> Result<Outgoing> {
        let outgoing = parse::<StoredDelivery>(key, value)?.delivery;
        let reads = self.of(outgoing.delivery.id.slot());
        let told = told(reads, outgoing.event.as_slice()).await?;
        with_payload(outgoing, &told)
    }
}
