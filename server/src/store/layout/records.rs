//! The records of a store one by one: what is exported, and what a migration moves.

use std::{cmp::Reverse, collections::BinaryHeap};

use payments_core::Slot;

use super::{
    LayoutStore,
    delivery::{StoredDelivery, with_payload},
    event::{StoredEvent, told},
    idempotency::{KeptResponse, whole},
    keys,
    payment::StoredPayment,
    reads::{Reads, Scan, parse},
};
use crate::{
    domain::Outgoing,
    store::{
        self, EventRecord, PaymentRecord, PendingEventRecord, Record, RecordKind, ResponseRecord, Result, StoreError,
        bytes::{Bytes, KeyValue, with_prefix},
    },
};

/// What a migration calls a record and where this layout has it.
fn name_of(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Workspace => "workspace",
        RecordKind::ApiKey => "api-key",
        RecordKind::App => "app",
        RecordKind::GatewayToken => "gateway-token",
        RecordKind::Endpoint => "endpoint",
        RecordKind::Payment => "payment",
        RecordKind::Event | RecordKind::PendingEvent => "event",
        RecordKind::StoredResponse => "response",
        RecordKind::KeyClaim => "claim",
        RecordKind::Delivery => "delivery",
        RecordKind::RedactedUpTo => "redacted-up-to",
        RecordKind::LogPart => "log",
    }
}

/// The records of a kind in all slots, in the order of what stands behind the kind in their keys.
pub(super) struct InOrder<'s, B> {
    store: &'s LayoutStore<B>,
    at_a_time: usize,
    /// The next record of each slot.
    next: BinaryHeap<Reverse<Next>>,
    slots: Vec<SlotScan>,
}

/// A record: what stands behind the kind in its key, the number of its slot, and the value.
type Next = (Vec<u8>, u16, Vec<u8>);

/// The rest of a slot's records.
struct SlotScan {
    prefix: Vec<u8>,
    page: std::vec::IntoIter<KeyValue>,
    /// The first key of the rest; `None` if there is none.
    rest: Option<Vec<u8>>,
}

impl<'s, B: Bytes> InOrder<'s, B> {
    /// Strictly after what stands behind the kind in a key.
    pub(super) async fn open(
        store: &'s LayoutStore<B>,
        kind: RecordKind,
        after: Option<&[u8]>,
        at_a_time: usize,
    ) -> Result<Self> {
        let mut records = Self { store, at_a_time, next: BinaryHeap::new(), slots: Vec::new() };
        for slot in Slot::all() {
            let prefix = keys::records_of(slot, name_of(kind));
            let first = after.map_or_else(|| prefix.clone(), |after| [&prefix[..], after, &[0]].concat());
            records.slots.push(SlotScan { prefix, page: Vec::new().into_iter(), rest: Some(first) });
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
            let page = Reads::of(&self.store.bytes, slot).range(keys, self.at_a_time).await?;
            let last = page.last().filter(|_| page.len() == self.at_a_time);
            scan.rest = last.map(|(last, _)| [&last[..], &[0]].concat());
            scan.page = page.into_iter();
            entry = scan.page.next();
        }
        if let Some((key, value)) = entry {
            self.next.push(Reverse((key[scan.prefix.len()..].to_vec(), slot.number(), value)));
        }
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>> {
        let Some(Reverse((name, number, value))) = self.next.pop() else { return Ok(None) };
        let Some(slot) = Slot::all().nth(number.into()) else { return Ok(None) };
        self.fill(slot).await?;
        let prefix = &self.slots[usize::from(number)].prefix;
        Ok(Some(([prefix, &name[..]].concat(), value)))
    }
}

impl<B: Bytes> LayoutStore<B> {
    /// At most `at_most` records of a kind strictly after a key.
    pub(super) async fn record_page(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        at_most: usize,
    ) -> Result<Vec<Record>> {
        let unknown = || StoreError::corrupt(after.unwrap_or_default().as_bytes(), "no record has this key");
        let after = after.map(|after| behind_kind(kind, after).ok_or_else(unknown)).transpose()?;
        let mut records = InOrder::open(self, kind, after.as_deref(), 2).await?;
        let mut page = Vec::new();
        while page.len() < at_most
            && let Some((key, value)) = records.next().await?
        {
            page.extend(self.record(kind, &key, &value).await?);
        }
        Ok(page)
    }

    pub(super) async fn record_count(&self, kind: RecordKind) -> Result<u64> {
        let mut count = 0;
        for slot in Slot::all() {
            let mut records = Scan::new(self.of(slot), with_prefix(&keys::records_of(slot, name_of(kind))));
            while let Some((key, value)) = records.next().await? {
                let counts = kind != RecordKind::PendingEvent || StoredEvent::parse(&key, &value)?.pending.is_some();
                count += u64::from(counts);
            }
        }
        Ok(count)
    }

    /// The record of a key, if it is of the kind.
    async fn record(&self, kind: RecordKind, key: &[u8], value: &[u8]) -> Result<Option<Record>> {
        let corrupt = || StoreError::corrupt(key, "its key cannot be read");
        Ok(Some(match kind {
            RecordKind::Workspace => Record::Workspace(parse(key, value)?),
            RecordKind::ApiKey => Record::ApiKey(keys::hash_of(key).ok_or_else(corrupt)?, parse(key, value)?),
            RecordKind::App => Record::App(parse(key, value)?),
            RecordKind::GatewayToken => {
                Record::GatewayToken(keys::rest_of(key).ok_or_else(corrupt)?.to_owned(), parse(key, value)?)
            }
            RecordKind::Endpoint => Record::Endpoint(parse(key, value)?),
            RecordKind::Payment => {
                let stored = StoredPayment::parse(key, value)?;
                Record::Payment(Box::new(self.moved_payment(stored).await?))
            }
            RecordKind::Event => {
                let event = StoredEvent::parse(key, value)?;
                let (scope, entry) = (event.scope.clone(), event.entry());
                Record::Event(EventRecord { scope, entry, money: event.money.and_then(|money| money.moved()) })
            }
            RecordKind::PendingEvent => {
                let StoredEvent { id, payment, pending, .. } = StoredEvent::parse(key, value)?;
                let Some(pending) = pending else { return Ok(None) };
                Record::PendingEvent(PendingEventRecord { id, payment, after: pending.after })
            }
            RecordKind::StoredResponse => {
                let kept: KeptResponse = parse(key, value)?;
                let of = keys::idempotency_key(key).ok_or_else(corrupt)?;
                let reads = self.of(of.scope.developer_id.slot());
                let event = match &kept.event {
                    Some(id) => {
                        let found = StoredEvent::read(reads, id).await?;
                        let missing = || StoreError::corrupt(key, format_args!("its event {id} is not there"));
                        let payment = found.ok_or_else(missing)?.payment;
                        Some((payment, id.clone()))
                    }
                    None => None,
                };
                let response = whole(reads, key, kept).await?;
                Record::StoredResponse(Box::new(ResponseRecord { key: of, response, event }))
            }
            RecordKind::KeyClaim => {
                let of = keys::idempotency_key(key).ok_or_else(corrupt)?;
                Record::KeyClaim(Box::new((of, parse(key, value)?)))
            }
            RecordKind::Delivery => Record::Delivery(Box::new(parse::<StoredDelivery>(key, value)?.delivery)),
            RecordKind::RedactedUpTo => Record::RedactedUpTo(parse(key, value)?),
            RecordKind::LogPart => Record::LogPart(parse(key, value)?),
        }))
    }

    async fn moved_payment(&self, stored: StoredPayment<'static>) -> Result<PaymentRecord> {
        let reads = self.of(stored.session.payment.id.slot());
        let told = told(reads, &stored.events).await?;
        let postings = told.iter().filter_map(|told| {
            let money = told.event.money.as_ref()?;
            Some((told.event.version, money.postings.clone()))
        });
        let postings = postings.collect();
        let events = told.into_iter().map(|told| {
            let StoredEvent { id, event, created_at, .. } = told.event;
            let data = (told.data != *stored.json).then_some(told.data);
            store::StoredEvent { id, event, created_at, data }
        });
        Ok(PaymentRecord { events: events.collect(), postings, session: stored.session.into_owned() })
    }

    /// The delivery of a record, with its payload.
    pub(super) async fn whole_delivery(&self, key: &[u8], value: &[u8]) -> Result<Outgoing> {
        let outgoing = parse::<StoredDelivery>(key, value)?.delivery;
        let reads = self.of(outgoing.delivery.id.slot());
        let told = told(reads, outgoing.event.as_slice()).await?;
        with_payload(key, outgoing, told.first())
    }
}

/// What stands behind the kind in the key of a record, from the key that it has in every engine.
fn behind_kind(kind: RecordKind, key: &str) -> Option<Vec<u8>> {
    Some(match kind {
        RecordKind::StoredResponse | RecordKind::KeyClaim => {
            let (scope, digest) = key.rsplit_once('/')?;
            [scope.as_bytes(), b"/", &hex::decode(digest).ok()?].concat()
        }
        RecordKind::RedactedUpTo => b"last".to_vec(),
        _ => key.as_bytes().to_vec(),
    })
}
