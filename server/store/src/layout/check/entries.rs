//! Checks that each entry follows from a record.

use std::str::FromStr;

use payments_core::{DeliveryId, EventId, KeyId, PaymentId, PayoutId, Status, WebhookId};

use super::{
    super::{
        bits,
        booking::ListedId,
        codec::{Reader, items, unpack},
        entry::{Entry, key_at, owners_at},
        head::{CHUNK, Head, Tail, read_day},
        keys::{self, BODIES, CHECKS, EXPIRIES, RETRIES, TimeIndex, UNSETTLED},
        kinds::entries_of,
        list::List,
        payment::StoredPayment,
    },
    Check, placed,
};
use crate::{
    StoreError,
    domain::{KeyHash, Scope, lookups},
    leases::Held,
};

const OF_NOTHING: &str = "follows from no record";

impl Check<'_> {
    pub(super) async fn entry(&mut self, kind: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        if let Some(index) = TimeIndex::ALL.into_iter().find(|index| index.time_of(key).is_some()) {
            return self.at_times(index, key, value).await;
        }
        match kind {
            "scope" | "endpoint" | "gauges" | "held" | "limited-day" | "deliveries-of" | "found" => {
                self.head_or_chunk(kind, key, value).await
            }
            "list" => self.chunk_of_scope(key, value).await,
            "bitmap" => self.block(key, value).await,
            "day" => {
                match read_day(&mut Reader(value)) {
                    Some(totals) => self.sums.day(key.to_vec(), totals),
                    None => self.find(key, "is no day's totals"),
                }
                Ok(())
            }
            "lane" => {
                let endpoint: Option<WebhookId> = keys::id_at_end(key);
                let scope = str::from_utf8(value).ok().and_then(keys::scope_of);
                let waits = match scope.zip(endpoint) {
                    Some((scope, id)) => self.head(&keys::head_of_endpoint(&scope, &id)).await?.sum("outbox") > 0,
                    None => false,
                };
                self.expect(waits, key, "is the lane of an endpoint without pending deliveries");
                Ok(())
            }
            "at-gateway" => self.owners(key, value).await,
            // Work may end before its claim.
            "lease" => {
                self.expect(Held::decode(value).is_some(), key, "is no claim on work");
                Ok(())
            }
            _ => {
                let follows = self.follows(kind, key, value).await?;
                self.expect(follows, key, OF_NOTHING);
                Ok(())
            }
        }
    }

    /// Whether an [`Entry::Key`] follows from the record that it names.
    async fn follows(&self, kind: &str, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        let record = match kind {
            "workspace" => keys::id_at_end(key).map(|id| keys::workspace(&id)),
            "workspace-of" => id_of(value).map(|id| keys::workspace(&id)),
            "api-key-of" => {
                let slot = keys::id_at_end::<KeyId>(key).map(|id| id.slot());
                let hash = slot.zip(value.try_into().ok()).map(|(slot, digest)| KeyHash { slot, digest });
                hash.map(|hash| keys::api_key(&hash))
            }
            "audit-of" => keys::id_at_end(key).map(|id| keys::audit(&id)),
            "endpoint-of" | "troubled-endpoint" => keys::id_at_end(key).map(|id| keys::endpoint(&id)),
            "pending-event" => keys::id_at_end(key).map(|id| keys::event(&id)),
            "outbox" => keys::id_at_end(key).map(|id| keys::delivery(&id)),
            "dispute" => id_of(value).map(|id| keys::payment(&id)),
            "open-payout-of" => id_of(value).map(|id| keys::payout(&id)),
            "open-payout" | "payout-batch" => keys::id_at_end(key).map(|id| keys::payout(&id)),
            "settlement" | "open-dispute" | "review" => keys::id_at_end(key).map(|id| keys::payment(&id)),
            "suspended-row" => keys::rest_of(key).map(|rest| [&keys::settled_rows()[..], rest.as_bytes()].concat()),
            _ => None,
        };
        let entry = Entry::Key { key: key.to_vec(), value: value.to_vec() };
        Ok(self.entries_from(record).await?.contains(&entry))
    }

    /// The entries of the record under a key; none if the record is missing or unreadable.
    async fn entries_from(&self, record: Option<Vec<u8>>) -> Result<Vec<Entry>, StoreError> {
        let Some(key) = record else { return Ok(Vec::new()) };
        let Some(value) = self.get(&key).await? else { return Ok(Vec::new()) };
        Ok(entries_of(&key, &value).unwrap_or_default())
    }

    /// Checks that each payment under a shared key belongs there.
    async fn owners(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let owners: Vec<_> = items(value).map(<[u8]>::to_vec).collect();
        self.expect(!owners.is_empty(), key, OF_NOTHING);
        for owner in owners {
            let entries = self.entries_from(id_of(&owner).map(|id| keys::payment(&id))).await?;
            let what = format_args!("names {}, which {OF_NOTHING}", owner.escape_ascii());
            self.expect(entries.contains(&Entry::Owner { key: key.to_vec(), owner: owner.clone() }), key, what);
        }
        Ok(())
    }

    /// Checks that each owner under a key of a time index belongs there.
    async fn at_times(&mut self, index: TimeIndex, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let owners = owners_at(index, key, value);
        self.expect(!owners.is_empty(), key, OF_NOTHING);
        for owner in owners {
            let entries = self.entries_of_owner(index, &owner).await?;
            let packs = self.packs;
            let is_there = entries.iter().any(|entry| {
                matches!(entry, Entry::At { index: of, time, owner: its }
                    if *of == index && *its == owner && key_at(index, *time, &owner, packs) == key)
            });
            let what = format_args!("names {}, which does not wait for this time", owner.escape_ascii());
            self.expect(is_there, key, what);
        }
        Ok(())
    }

    async fn entries_of_owner(&self, index: TimeIndex, owner: &[u8]) -> Result<Vec<Entry>, StoreError> {
        self.entries_from(match index {
            EXPIRIES | CHECKS | UNSETTLED => id_of(owner).map(|id| keys::payment(&id)),
            RETRIES | BODIES => id_of(owner).map(|id| keys::delivery(&id)),
            // The owner is the key of a response or a claim.
            _ => Some(owner.to_vec()),
        })
        .await
    }

    /// Checks a head of lists and sums, or a full chunk of a list with a head of its own.
    async fn head_or_chunk(&mut self, kind: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let is_apart = matches!(kind, "deliveries-of" | "found");
        // The key of a chunk is that of its head, a slash and a number.
        let chunk_of = key.len().checked_sub(9).filter(|end| is_apart && key[*end] == b'/').map(|end| &key[..end]);
        if let Some(head) = chunk_of
            && self.get(head).await?.is_some()
        {
            let number = keys::number_of(key).unwrap_or_default();
            return self.items_apart(kind, head, key, placed(number.saturating_mul(CHUNK), value)).await;
        }
        let Some(head) = Head::decode(value) else {
            self.find(key, "is no head of lists and sums");
            return Ok(());
        };
        if is_apart {
            for tail in head.lists.values() {
                let items: Vec<_> = (tail.before..).zip(tail.items().map(<[u8]>::to_vec)).collect();
                self.items_apart(kind, key, key, items).await?;
            }
        } else if kind == "scope" {
            let Some(scope) = keys::rest_of(key).and_then(keys::scope_of) else {
                self.find(key, OF_NOTHING);
                return Ok(());
            };
            for (name, tail) in &head.lists {
                for (position, item) in (tail.before..).zip(tail.items()) {
                    self.item_of_scope(key, &scope, name, position, item).await?;
                }
            }
            let before = head.lists.get("payments").map_or(0, |tail| tail.before);
            for (status, window) in &head.windows {
                for position in (0..CHUNK).filter(|nth| window & (1 << nth) != 0).map(|nth| before + nth) {
                    self.bit(key, &scope, &Status::from(&**status), position).await?;
                }
            }
        } else if kind == "endpoint" {
            for tail in head.lists.values() {
                for (position, item) in (tail.before..).zip(tail.items()) {
                    self.item_of(key, (key, "deliveries"), position, item).await?;
                }
            }
        }
        self.sums.head(key.to_vec(), &head);
        Ok(())
    }

    /// Checks a full chunk of a list of a scope.
    async fn chunk_of_scope(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let name = key.len().checked_sub(9).and_then(|end| keys::rest_of(&key[..end]));
        let parts = name.and_then(|name| Some((keys::scope_of(name)?, name.rsplit('/').next()?)));
        let Some((scope, name)) = parts else {
            self.find(key, OF_NOTHING);
            return Ok(());
        };
        let number = keys::number_of(key).unwrap_or_default();
        for (position, item) in placed(number.saturating_mul(CHUNK), value) {
            self.item_of_scope(key, &scope, name, position, &item).await?;
        }
        Ok(())
    }

    async fn item_of_scope(
        &mut self,
        key: &[u8],
        scope: &Scope,
        name: &str,
        position: u64,
        item: &[u8],
    ) -> Result<(), StoreError> {
        let (head, list) = match name {
            "payments" | "events" | "transactions" | "payouts" | "deliveries" => (keys::head_of_scope(scope), name),
            to_endpoint => {
                let endpoint = to_endpoint.strip_prefix("deliveries.").and_then(|id| id.parse().ok());
                let Some(endpoint) = endpoint else {
                    self.find(key, OF_NOTHING);
                    return Ok(());
                };
                (keys::head_of_endpoint(scope, &endpoint), "deliveries")
            }
        };
        self.item_of(key, (&head, list), position, item).await
    }

    /// Checks that an item of a list follows from the record that it names. The list has this name in this head.
    async fn item_of(
        &mut self,
        key: &[u8],
        (head, name): (&[u8], &str),
        position: u64,
        item: &[u8],
    ) -> Result<(), StoreError> {
        let record = match name {
            "payments" => unpack(PaymentId::PREFIX, item).map(|id| keys::payment(&id)),
            "events" => unpack(EventId::PREFIX, item).map(|id| keys::event(&id)),
            "transactions" => unpack(EventId::PREFIX, item).map(|id: ListedId| id.key()),
            "payouts" => unpack(PayoutId::PREFIX, item).map(|id| keys::payout(&id)),
            _ => unpack(DeliveryId::PREFIX, item).map(|id| keys::delivery(&id)),
        };
        let follows = self.entries_from(record).await?.iter().any(|entry| {
            matches!(entry, Entry::Item { list, position: at, item: its }
                if list.head == head && list.name == name && *at == position && its == item)
        });
        self.expect(follows, key, format_args!("has an item at position {position} that {OF_NOTHING}"));
        Ok(())
    }

    /// Checks items of a list with a head of its own.
    async fn items_apart(
        &mut self,
        kind: &str,
        head: &[u8],
        key: &[u8],
        items: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        for (position, item) in items {
            if kind == "deliveries-of" {
                self.item_of(key, (head, "deliveries"), position, &item).await?;
                continue;
            }
            let position = Reader(&item).short::<u64>().unwrap_or(u64::MAX);
            let scope = head.len().checked_sub(17).and_then(|end| keys::rest_of(&head[..end]).and_then(keys::scope_of));
            let has_value = match scope {
                Some(scope) => self.payment_at(&scope, position).await?.is_some_and(|stored| {
                    lookups(&stored.session.payment).iter().any(|lookup| keys::found(&scope, lookup) == head)
                }),
                None => false,
            };
            let what = format_args!("finds the payment at position {position}, which does not have its value");
            self.expect(has_value, key, what);
        }
        Ok(())
    }

    async fn payment_at(&self, scope: &Scope, position: u64) -> Result<Option<StoredPayment<'static>>, StoreError> {
        let item = self.item(&List::payments(scope), position).await?;
        match item.and_then(|item| unpack(PaymentId::PREFIX, &item)) {
            Some(id) => self.stored_payment(&id).await,
            None => Ok(None),
        }
    }

    async fn block(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let name = key.len().checked_sub(9).and_then(|end| keys::rest_of(&key[..end]));
        let parts = name.and_then(|name| Some((keys::scope_of(name)?, Status::from(name.rsplit('/').next()?))));
        let Some((scope, status)) = parts else {
            self.find(key, OF_NOTHING);
            return Ok(());
        };
        let number = keys::number_of(key).unwrap_or_default();
        let positions: Vec<u64> = bits::down(number, value).collect();
        // A block exists once the first chunk of its payments is full.
        let list = List::payments(&scope);
        let before = list.tail(&*self.head(&list.head).await?).map_or(0, Tail::count);
        for position in positions {
            self.expect(position < before, key, format_args!("has a bit at position {position}, behind the list"));
            self.bit(key, &scope, &status, position).await?;
        }
        Ok(())
    }

    async fn bit(&mut self, key: &[u8], scope: &Scope, status: &Status, position: u64) -> Result<(), StoreError> {
        let payment = self.payment_at(scope, position).await?;
        let has_it = payment.is_some_and(|stored| stored.session.payment.status == *status);
        self.expect(has_it, key, format_args!("has a bit at position {position}, whose payment has another status"));
        Ok(())
    }
}

/// Parses an id that is a value or an owner.
fn id_of<I: FromStr>(text: &[u8]) -> Option<I> {
    str::from_utf8(text).ok()?.parse().ok()
}
