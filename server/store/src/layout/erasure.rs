//! Erases a customer's data beside the payment's record: in events, deliveries, stored responses and search entries.

use std::collections::HashSet;

use payments_core::{DeliveryId, EventId, PaymentId, RANDOM_BYTES, RawJson, Slot, Timestamp};

use super::{
    Store,
    codec::push_number,
    delivery,
    draft::Draft,
    entry::Record,
    event::StoredEvent,
    head::{CHUNK, Tail},
    idempotency::{ResponseOf, ResponseRecord},
    keys,
    list::{List, ReadList},
    lists::ids,
    payment::StoredPayment,
    reads::{Scan, parse},
    store_error,
};
use crate::{
    CommitError, Result, StoreError,
    bytes::with_prefix,
    domain::{ErasePolicy, IdempotencyKey, Scope, erased_json, payment_shown},
};

/// How many deliveries one commit redacts.
const DELIVERIES: u64 = 32;

impl Store {
    /// The payments of a part of a slot, the oldest first, whose customer's data could have been erased before a time, and the key
    /// after which the next part begins, if there is one. A part is `at_most` payments. There is no index: a sweep reads them all.
    pub async fn erasable(
        &self,
        slot: Slot,
        before: Timestamp,
        after: Option<&[u8]>,
        at_most: usize,
    ) -> Result<(Vec<PaymentId>, Option<Vec<u8>>)> {
        let mut range = with_prefix(&keys::records_of(slot, "payment"));
        // Later payments were made, and so changed, after the time.
        range.end = keys::payment(&PaymentId::new(slot, before, [0; RANDOM_BYTES]));
        if let Some(after) = after {
            range.start = [after, &[0]].concat();
        }
        if range.is_empty() {
            return Ok((Vec::new(), None));
        }
        let read = self.of(slot).range(range, at_most).await?;
        let mut found = Vec::new();
        for (key, value) in &read {
            let session = StoredPayment::parse(key, value)?.session;
            if session.erasable_since().is_some_and(|at| at < before) {
                found.push(session.payment.id.clone());
            }
        }
        let next = read.last().filter(|_| read.len() == at_most).map(|(key, _)| key.clone());
        Ok((found, next))
    }

    /// The stored responses of a scope that hold a body about one of these payments. Responses that name an event have its data.
    pub async fn responses_about(
        &self,
        scope: &Scope,
        payments: &HashSet<PaymentId>,
    ) -> Result<Vec<(IdempotencyKey, PaymentId, RawJson)>> {
        let mut scan = Scan::new(self.of_scope(scope), with_prefix(&keys::responses_of(scope)));
        let mut found = Vec::new();
        while let Some((key, value)) = scan.next().await? {
            let Some(body) = parse::<ResponseRecord>(&key, &value)?.body else { continue };
            if let Some(payment) = payment_shown(&body).filter(|id| payments.contains(id)) {
                found.extend(keys::idempotency_key(&key).map(|key| (key, payment, body)));
            }
        }
        Ok(found)
    }

    /// Erases the customer's data in a stored response, if it is still there.
    pub async fn erase_response(&self, key: IdempotencyKey, policy: ErasePolicy) -> Result<()> {
        let cell = self.bytes.cell_of(key.scope.developer_id.slot());
        let erased = self.decide(cell, true, move |draft| {
            let at = keys::response(&key);
            let Some(kept) = draft.json::<ResponseRecord>(&at)? else { return Ok(()) };
            let body = kept.body.as_ref().map(|body| erased_json(body, policy)).transpose();
            let body = body.map_err(|error| StoreError::corrupt(&at, error))?;
            let [before, after] =
                [kept.clone(), ResponseRecord { body, ..kept }].map(|kept| ResponseOf { key: key.clone(), kept });
            draft.replace(Some(&before), &after)
        });
        erased.await.map_err(store_error)
    }

    /// Redacts the deliveries of a payment's events as pruning does when they are old. Returns how many were not redacted yet.
    pub async fn redact_deliveries_of(&self, payment: &PaymentId) -> Result<usize> {
        let reads = self.of(payment.slot());
        let mut list = ReadList::open(reads, List::deliveries_of(&payment.clone().into())).await?;
        let (mut begin, mut redacted) = (0, 0);
        while begin < list.count() {
            let ids: Vec<DeliveryId> = ids(DeliveryId::PREFIX, &list.within(begin..begin + DELIVERIES).await?);
            let whole = delivery::read(reads, &ids).await?;
            let cell = self.bytes.cell_of(payment.slot());
            let count = self.decide(cell, true, move |draft| {
                whole.iter().try_fold(0, |count, it| Ok(count + usize::from(draft.redact(it, None)?)))
            });
            redacted += count.await.map_err(store_error)?;
            begin += DELIVERIES;
        }
        Ok(redacted)
    }
}

impl Draft<'_> {
    /// Erases the customer's data in an event that has data of its own.
    pub(super) fn erase_event(&mut self, id: &EventId, policy: ErasePolicy) -> Result<(), CommitError> {
        let key = keys::event(id);
        let Some(event) = self.json::<StoredEvent>(&key)? else { return Ok(()) };
        let Some(data) = &event.data else { return Ok(()) };
        let corrupt = |error| StoreError::corrupt(&key, error);
        let data = Some(erased_json(data, policy).map_err(corrupt)?);
        let text = StoredEvent { data, ..event }.text().map_err(corrupt)?;
        self.put(key, text);
        Ok(())
    }

    /// Removes a payment's position from the list of a lookup value. The items after it move up, so this reads and writes as many
    /// chunks as follow it.
    pub(super) fn take_found(&mut self, list: &List, position: u64) -> Result<(), CommitError> {
        let mut item = Vec::new();
        push_number(&mut item, position.into());
        let tail = list.tail(self.head(&list.head)?).cloned().unwrap_or_default();
        let mut after: Vec<Vec<u8>> = tail.items().map(<[u8]>::to_vec).collect();
        let mut chunk = tail.before / CHUNK;
        while !after.contains(&item) && chunk > 0 {
            chunk -= 1;
            let key = list.chunk(chunk);
            let full = self.get(&key)?.map(|full| super::codec::items(&full).map(<[u8]>::to_vec).collect::<Vec<_>>());
            after.splice(0..0, full.unwrap_or_default());
            self.remove(key);
        }
        let Some(nth) = after.iter().position(|it| *it == item) else {
            let what = format!("its list {} lacks position {position}", list.name);
            return Err(StoreError::corrupt(&list.head, what).into());
        };
        after.remove(nth);
        let head = self.head(&list.head)?;
        if chunk == 0 && after.is_empty() {
            head.lists.remove(list.name);
            return Ok(());
        }
        head.lists.insert(list.name.to_owned(), Tail::beginning_at(chunk * CHUNK));
        (chunk * CHUNK..).zip(after).try_for_each(|(position, item)| self.push(list, position, &item))
    }
}
