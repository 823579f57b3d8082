//! What each write of a change does to the tree.

use std::{borrow::Cow, collections::BTreeMap};

use payments_core::{DeliveryId, DeliveryStatus, EventId, EventKind, PaymentId, RawJson, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    deliveries,
    journal::{self, Writes},
    keys::{self, List, Marks},
    packed,
    records::Records,
    squeezed,
    telling::Untold,
};
use crate::domain::{Effects, KeptResponse, Outgoing, Scope, Session};
use crate::store::{Change, CommitError, Conflict, EventWrite, Keep, PaymentWrite, StoreError, Write};

/// The records as they will be once the batch under way is made.
pub(super) struct View<'r> {
    records: &'r Records,
    batch: Writes,
    change: Writes,
}

/// A payment's session, its place in its developer's list of payments, and what was ever told of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) place: u64,
    pub(super) session: Session,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

/// An event of a payment.
#[derive(Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) id: EventId,
    pub(super) event: EventKind,
    pub(super) created_at: Timestamp,
    /// Missing where it is the payment as the record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<RawJson>,
}

/// A kept response as it is stored: its body, or where it is told.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResponse {
    /// The name of its key.
    pub(super) of: String,
    pub(super) fingerprint: String,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<RawJson>,
    /// The event whose data is the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<Told>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) payment: PaymentId,
    pub(super) event: EventId,
}

impl Stored {
    /// The data of an event.
    pub(super) fn told(&self, event: &EventId) -> Option<Result<RawJson, serde_json::Error>> {
        let event = self.events.iter().find(|told| told.id == *event)?;
        Some(event.data.clone().map_or_else(|| RawJson::of(&self.session.payment), Ok))
    }

    /// The events, for a record that will have the payment otherwise.
    fn events_in_full(mut self) -> Result<Vec<Event>, serde_json::Error> {
        for event in self.events.iter_mut().filter(|event| event.data.is_none()) {
            event.data = Some(RawJson::of(&self.session.payment)?);
        }
        Ok(self.events)
    }
}

impl StoredResponse {
    /// With its body, wherever it is. `payment` reads one.
    pub(super) fn resolve(
        self,
        key: &[u8],
        payment: impl FnOnce(&PaymentId) -> Result<Option<Stored>, StoreError>,
    ) -> Result<KeptResponse, StoreError> {
        let body = match (self.body, self.told) {
            (Some(body), _) => body,
            (None, Some(Told { payment: id, event })) => payment(&id)?
                .and_then(|stored| stored.told(&event))
                .unwrap_or_else(|| Err(serde::de::Error::custom("the event that tells its body is not there")))
                .map_err(|source| unreadable(key, source))?,
            (None, None) => return Err(unreadable(key, serde::de::Error::missing_field("body"))),
        };
        Ok(KeptResponse { fingerprint: self.fingerprint, created_at: self.created_at, body })
    }
}

impl<'r> View<'r> {
    pub(super) fn new(records: &'r Records) -> Self {
        Self { records, batch: BTreeMap::new(), change: BTreeMap::new() }
    }

    /// The writes of all changes that were taken.
    pub(super) fn into_writes(self) -> Writes {
        self.batch
    }

    /// The records before the batch.
    pub(super) fn records(&self) -> &'r Records {
        self.records
    }

    /// Takes a change into the batch if its conditions hold; otherwise nothing of it.
    pub(super) fn take(&mut self, change: Change) -> Result<(), CommitError> {
        self.stage(|view| view.apply(change))
    }

    /// Takes what some work writes into the batch, unless it fails.
    pub(super) fn stage<T, E>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = work(self);
        let writes = std::mem::take(&mut self.change);
        if outcome.is_ok() {
            self.batch.extend(writes);
        }
        outcome
    }

    fn apply(&mut self, change: Change) -> Result<(), CommitError> {
        if let Some(keep) = change.idempotency {
            self.keep(keep, &change.writes)?;
        }
        change.writes.into_iter().try_for_each(|write| self.write(write))
    }

    fn keep(&mut self, keep: Keep, writes: &[Write]) -> Result<(), CommitError> {
        let Keep { key, fingerprint, created_at, body, claim } = keep;
        let at = keys::idempotency(&key);
        let of = keys::name_of_used(&at).unwrap_or_default();
        if let Some(used_at) = self.read::<Timestamp>(&at)? {
            if KeptResponse::is_fresh_at(used_at, created_at) {
                return Err(self.used(&at, used_at)?.into());
            }
            let record = keys::responses(used_at);
            let responses = self.bytes(&record)?;
            let others = responses_without(&record, &responses, &of)?;
            self.change.insert(record, (!others.is_empty()).then_some(others));
        }
        self.end_claim(&key, &claim)?;
        // A body that an event of this change has as well is stored once.
        let told = writes.iter().find_map(|write| match write {
            Write::Payment(write) => {
                let event = write.event.as_ref().filter(|event| event.data == body)?;
                Some(Told { payment: write.session.payment.id.clone(), event: event.id.clone() })
            }
            _ => None,
        });
        let body = told.is_none().then_some(body);
        self.put(at, &created_at)?;
        let record = keys::responses(created_at);
        let mut responses = self.bytes(&record)?;
        packed::push_value(&mut responses, &StoredResponse { of, fingerprint, created_at, body, told })
            .map_err(|source| unreadable(&record, source))?;
        self.set(record, responses);
        Ok(())
    }

    /// An idempotency key was used at a time: the conflict with whoever uses it again.
    pub(super) fn used(&self, at: &[u8], used_at: Timestamp) -> Result<Conflict, StoreError> {
        let record = keys::responses(used_at);
        let missing = || unreadable(&record, serde::de::Error::custom("a response is not there"));
        let of = keys::name_of_used(at).unwrap_or_default();
        let kept = response_of(&record, &self.bytes(&record)?, &of)?.ok_or_else(missing)?;
        let kept = kept.resolve(&record, |id| self.read(&keys::session(id)))?;
        Ok(Conflict::IdempotencyKeyUsed(Box::new(kept)))
    }

    fn write(&mut self, write: Write) -> Result<(), CommitError> {
        match write {
            Write::Workspace(workspace) => {
                let id = workspace.id.to_string();
                self.put(keys::workspace_of(&workspace.developer_id), &id)?;
                self.put(keys::workspace(&id), &workspace)?;
            }
            Write::ApiKey(hash, key) => {
                self.set(keys::api_key_id(&key.workspace_id, &key.id), hash.as_bytes().to_vec());
                self.put(keys::api_key(&hash), &key)?;
            }
            Write::Payment(write) => self.payment(*write)?,
            Write::Delivery(outgoing) => self.delivery(&outgoing)?,
            Write::EndpointAdded { endpoint, at_most } => {
                if self.has(&keys::endpoints_of(&endpoint.scope()), at_most)? {
                    return Err(Conflict::TooManyEndpoints { at_most }.into());
                }
                self.set(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id), Vec::new());
                self.put(keys::endpoint(&endpoint.endpoint.id), &endpoint)?;
            }
            Write::EndpointRemoved(endpoint) => {
                self.remove(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id));
                self.remove(keys::endpoint(&endpoint.endpoint.id));
            }
            Write::GatewayToken(name, token) => self.put(keys::gateway_token(name), &token)?,
            Write::App(app) => self.put(keys::app(&app.developer_id, &app.id), &app)?,
            Write::KeyClaimed(write) => self.claim_key(&write.0, &write.1)?,
            Write::KeyReleased(key, token) => self.release_key(&key, &token)?,
            Write::ClaimsPruned { ended_before, at_most } => self.prune_claims(ended_before, at_most)?,
            Write::ResponsesForgotten { kept_before, at_most } => self.forget_responses(kept_before, at_most)?,
            Write::DeliveryBodiesForgotten { created_before, at_most } => {
                self.forget_delivery_bodies(created_before, at_most)?;
            }
            Write::DeliveryEnded(ended) => {
                debug_assert!(ended.delivery.status != DeliveryStatus::Pending, "an ended delivery has an outcome");
                self.remove(keys::outbox(&ended.delivery.webhook_id, &ended.delivery.id));
                self.put_delivery(&ended)?;
            }
        }
        Ok(())
    }

    fn payment(&mut self, write: PaymentWrite) -> Result<(), CommitError> {
        let PaymentWrite { session, effects, postings, event } = write;
        let id = &session.payment.id;
        let at = keys::session(id);
        let (place, mut events) = match self.read::<Stored>(&at)? {
            None if session.version == 0 => (self.append(&List::payments(&effects.scope), id.as_str())?, Vec::new()),
            Some(stored) if stored.session.version + 1 == session.version => {
                let place = stored.place;
                let events = if stored.session.payment == session.payment {
                    stored.events
                } else {
                    stored.events_in_full().map_err(|source| unreadable(&at, source))?
                };
                (place, events)
            }
            _ => return Err(Conflict::PaymentMoved.into()),
        };
        if let Some(event) = &event
            && self.has_endpoints(&effects.scope)?
        {
            self.put(keys::untold(&event.id), &Untold { payment: id.clone(), after: None })?;
        }
        if let Some(EventWrite { id, kind, created_at, data }) = event {
            // The payment itself is not stored a second time.
            let is_payment = RawJson::of(&session.payment).is_ok_and(|payment| payment == data);
            events.push(Event { id, event: kind, created_at, data: (!is_payment).then_some(data) });
        }
        if !postings.is_empty() {
            self.put(keys::postings(id, session.version), &postings)?;
        }
        self.apply_effects(id, place, &effects)?;
        self.put(at, &Stored { place, session, events })?;
        Ok(())
    }

    fn apply_effects(&mut self, id: &PaymentId, place: u64, effects: &Effects) -> Result<(), StoreError> {
        let Effects { scope, currency, .. } = effects;
        if let Some(status) = effects.status.left() {
            self.mark_payment(&Marks::of(scope, status), place, false)?;
        }
        if let Some(status) = effects.status.entered() {
            self.mark_payment(&Marks::of(scope, status), place, true)?;
        }
        if let Some(time) = effects.expiry.left() {
            self.delist(keys::ends(*time), id.as_str())?;
        }
        if let Some(time) = effects.expiry.entered() {
            self.enlist(keys::ends(*time), id.as_str())?;
        }
        if let Some(time) = effects.gateway_check.left() {
            self.remove(keys::check(*time, id));
        }
        if let Some(time) = effects.gateway_check.entered() {
            self.set(keys::check(*time, id), Vec::new());
        }
        for (transition, key) in
            [(&effects.manual_settlement, keys::unsettled(id)), (&effects.manual_review, keys::review(id))]
        {
            match (transition.left(), transition.entered()) {
                (_, Some(())) => self.set(key, Vec::new()),
                (Some(()), None) => self.remove(key),
                (None, None) => {}
            }
        }
        for (account, minor) in &effects.balances {
            let at = keys::balance(scope, *currency, *account);
            let balance: i128 = self.read(&at)?.unwrap_or_default();
            self.put(at, &(balance + minor))?;
        }
        if let Some(minor) = effects.volume {
            let at = keys::volume(scope, *currency);
            let (volume, payments): (i128, u64) = self.read(&at)?.unwrap_or_default();
            self.put(at, &(volume + minor, payments + 1))?;
        }
        Ok(())
    }

    fn forget_responses(&mut self, before: Timestamp, at_most: usize) -> Result<(), StoreError> {
        let mut forgotten = 0;
        for entry in self.records.range(keys::responses_before(before)) {
            let key = entry?.0.to_vec();
            for response in packed::values::<StoredResponse>(&self.bytes(&key)?) {
                let response = response.map_err(|source| unreadable(&key, source))?;
                forgotten += 1;
                if let Some(used) = keys::used(&response.of) {
                    self.remove(used);
                }
            }
            self.remove(key);
            if forgotten >= at_most {
                break;
            }
        }
        Ok(())
    }

    fn forget_delivery_bodies(&mut self, before: Timestamp, at_most: usize) -> Result<(), StoreError> {
        for (key, before_batch) in delivery_bodies_before(self.records, before, at_most)? {
            let id = before_batch.delivery.id;
            // As this batch leaves it: it may end in it.
            let Some(stored) = self.read(&key)? else { continue };
            let mut outgoing = deliveries::whole(&key, stored, |payment| self.read(&keys::session(payment)))?;
            // One that is still pending keeps its payload, and is redacted when it ends.
            if outgoing.delivery.status != DeliveryStatus::Pending {
                outgoing.redact().map_err(|source| unreadable(&key, source))?;
                self.put(key, &outgoing)?;
            }
            self.put(keys::BODIES_FORGOTTEN.to_vec(), &id)?;
        }
        Ok(())
    }

    /// Whether a developer has a webhook endpoint, maybe one that wants nothing.
    fn has_endpoints(&self, scope: &Scope) -> Result<bool, StoreError> {
        self.has(&keys::endpoints_of(scope), 1)
    }

    /// Whether at least `count` records have this prefix. Reads at most `count` of them beyond those that the batch
    /// writes.
    fn has(&self, prefix: &[u8], count: usize) -> Result<bool, StoreError> {
        let mut written: BTreeMap<&[u8], bool> = BTreeMap::new();
        for (key, value) in journal::under(&self.batch, prefix).chain(journal::under(&self.change, prefix)) {
            written.insert(key, value.is_some());
        }
        let mut missing = count.saturating_sub(written.values().filter(|is_there| **is_there).count());
        for entry in self.records.under(prefix) {
            if missing == 0 {
                break;
            }
            let (key, _) = entry?;
            missing -= usize::from(!written.contains_key(&*key));
        }
        Ok(missing == 0)
    }

    /// A delivery that is owed, or was made before it is logged.
    pub(super) fn delivery(&mut self, outgoing: &Outgoing) -> Result<(), StoreError> {
        let scope = outgoing.scope();
        let delivery = &outgoing.delivery;
        self.append(&List::deliveries(&scope), delivery.id.as_str())?;
        self.append(&List::deliveries_to(&scope, &delivery.webhook_id), delivery.id.as_str())?;
        // A ping was attempted before it is logged; it is owed no more.
        if delivery.status == DeliveryStatus::Pending {
            self.set(keys::outbox(&delivery.webhook_id, &delivery.id), Vec::new());
        }
        self.put_delivery(outgoing)
    }

    fn put_delivery(&mut self, outgoing: &Outgoing) -> Result<(), StoreError> {
        let key = keys::delivery(&outgoing.delivery.id);
        let mut stored = deliveries::stored(outgoing).map_err(|source| unreadable(&key, source))?;
        // One that ends later than the deliveries of its time were redacted is redacted at once.
        if stored.delivery.status != DeliveryStatus::Pending {
            let redacted: Option<DeliveryId> = self.read(keys::BODIES_FORGOTTEN)?;
            if redacted.is_some_and(|up_to| stored.delivery.id <= up_to) {
                stored = outgoing.clone();
                stored.redact().map_err(|source| unreadable(&key, source))?;
            }
        }
        self.put(key, &stored)
    }

    /// Adds an entry at the end of a list and returns its place.
    fn append(&mut self, list: &List, id: &str) -> Result<u64, StoreError> {
        let place = self.count(list.count(), |count| count + 1)?;
        let leaf = list.leaf(place);
        let mut ids = self.bytes(&leaf)?;
        packed::push_line(&mut ids, id);
        self.set(leaf, ids);
        Ok(place)
    }

    fn mark_payment(&mut self, marks: &Marks, place: u64, is_set: bool) -> Result<(), StoreError> {
        self.count(marks.count(), |count| if is_set { count + 1 } else { count.saturating_sub(1) })?;
        let block = marks.block(place);
        let mut bits = self.bytes(&block)?;
        packed::mark(&mut bits, place % keys::BLOCK, is_set);
        self.change.insert(block, (packed::marked(&bits) > 0).then_some(bits));
        Ok(())
    }

    /// Names something in a record of an index in time order, once.
    fn enlist(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let mut names = self.bytes(&key)?;
        if !packed::has_line(&names, name) {
            packed::push_line(&mut names, name);
            self.set(key, names);
        }
        Ok(())
    }

    fn delist(&mut self, key: Vec<u8>, name: &str) -> Result<(), StoreError> {
        let names = packed::without_line(&self.bytes(&key)?, name);
        self.change.insert(key, (!names.is_empty()).then_some(names));
        Ok(())
    }

    /// Changes a number of entries; returns what it was.
    fn count(&mut self, at: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Result<u64, StoreError> {
        let before = self.read(&at)?.unwrap_or_default();
        self.put(at, &change(before))?;
        Ok(before)
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.change.insert(key, None);
    }

    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change.insert(key, Some(value));
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: &impl Serialize) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value).map_err(|source| unreadable(&key, source))?;
        self.set(key, json);
        Ok(())
    }

    /// A record that holds many things; nothing where there is none.
    fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(bytes) => Ok(bytes.clone().unwrap_or_default()),
            None => self.records.bytes(key),
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(Some(json)) => parse(key, json).map(Some),
            Some(None) => Ok(None),
            None => self.records.read(key),
        }
    }
}

/// The oldest deliveries that were not yet passed by redaction, of those made before a time. Ids begin with the time they
/// were made at, so the records are in its order.
pub(super) fn delivery_bodies_before(
    records: &Records,
    before: Timestamp,
    at_most: usize,
) -> Result<Vec<(Vec<u8>, Outgoing)>, StoreError> {
    let after: Option<DeliveryId> = records.read(keys::BODIES_FORGOTTEN)?;
    let after = after.map_or_else(|| keys::DELIVERIES.to_vec(), |id| keys::delivery(&id));
    let mut found = Vec::new();
    for entry in records.under_after(keys::DELIVERIES, &after).take(at_most) {
        let key = entry.as_ref().map(|(key, _)| key.to_vec()).unwrap_or_default();
        let outgoing = deliveries::of_entry(records, entry)?;
        if outgoing.delivery.created_at >= before {
            break;
        }
        found.push((key, outgoing));
    }
    Ok(found)
}

/// The response of an idempotency key in the record of its time.
pub(super) fn response_of(record: &[u8], responses: &[u8], of: &str) -> Result<Option<StoredResponse>, StoreError> {
    let mut responses = packed::values::<StoredResponse>(responses);
    let found = responses.find(|response| response.as_ref().map_or(true, |response| response.of == of));
    found.transpose().map_err(|source| unreadable(record, source))
}

/// The record of its time without the response of an idempotency key.
fn responses_without(record: &[u8], responses: &[u8], of: &str) -> Result<Vec<u8>, StoreError> {
    let mut others = Vec::new();
    for response in packed::values::<StoredResponse>(responses) {
        let response = response.map_err(|source| unreadable(record, source))?;
        if response.of != of {
            packed::push_value(&mut others, &response).map_err(|source| unreadable(record, source))?;
        }
    }
    Ok(others)
}

/// Reads a record, if there is one.
pub(super) fn read<T: DeserializeOwned>(tree: &sled::Tree, key: &[u8]) -> Result<Option<T>, StoreError> {
    match tree.get(key).map_err(StoreError::engine)? {
        Some(json) => parse(key, &json).map(Some),
        None => Ok(None),
    }
}

/// A record that holds many things; nothing where there is none.
pub(super) fn bytes(tree: &sled::Tree, key: &[u8]) -> Result<Vec<u8>, StoreError> {
    match tree.get(key).map_err(StoreError::engine)? {
        Some(value) => open(key, &value).map(Cow::into_owned),
        None => Ok(Vec::new()),
    }
}

pub(super) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(&open(key, value)?).map_err(|source| unreadable(key, source))
}

/// The value under a key, as it was before it was squeezed.
pub(super) fn open<'v>(key: &[u8], value: &'v [u8]) -> Result<Cow<'v, [u8]>, StoreError> {
    squeezed::open(key, value).map_err(|damage| unreadable(key, serde::de::Error::custom(damage)))
}

/// The beginning of a key tells its kind; the rest of some is a hash.
pub(super) fn unreadable(key: &[u8], source: serde_json::Error) -> StoreError {
    StoreError::Record { key: String::from_utf8_lossy(key).escape_debug().to_string(), source }
}
