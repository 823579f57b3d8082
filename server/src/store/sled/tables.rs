//! What each write of a change does to the tree.

use std::{collections::BTreeMap, ops::Bound};

use payments_core::{DeliveryId, DeliveryStatus, LedgerAccount, RawJson, RawStatus, RefundStatus, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    journal::Writes,
    keys::{self, List},
};
use crate::store::{
    Change, CommitError, Conflict, EventWrite, KeptResponse, Outgoing, PaymentWrite, Session, StoreError, Write,
};

/// The tree as it will be once the batch under way is applied.
pub(super) struct View<'t> {
    tree: &'t sled::Tree,
    batch: Writes,
    change: Writes,
}

/// A session and its place in its developer's list of payments.
#[derive(Serialize, Deserialize)]
pub(super) struct Placed {
    pub(super) place: u64,
    pub(super) session: Session,
}

impl<'t> View<'t> {
    pub(super) fn new(tree: &'t sled::Tree) -> Self {
        Self { tree, batch: BTreeMap::new(), change: BTreeMap::new() }
    }

    /// The writes of all changes that were taken.
    pub(super) fn into_writes(self) -> Writes {
        self.batch
    }

    /// Takes a change into the batch if its conditions hold; otherwise nothing of it.
    pub(super) fn take(&mut self, change: Change) -> Result<(), CommitError> {
        let outcome = self.apply(change);
        let writes = std::mem::take(&mut self.change);
        if outcome.is_ok() {
            self.batch.extend(writes);
        }
        outcome
    }

    fn apply(&mut self, change: Change) -> Result<(), CommitError> {
        if let Some((key, response)) = change.idempotency {
            let at = keys::idempotency(&key);
            match self.read::<KeptResponse>(&at)? {
                Some(kept) if kept.is_fresh(response.created_at) => {
                    return Err(Conflict::IdempotencyKeyUsed(Box::new(kept)).into());
                }
                Some(old) => self.mark(keys::kept(old.created_at, &at), false),
                None => {}
            }
            self.mark(keys::kept(response.created_at, &at), true);
            self.put(at, &response)?;
        }
        change.writes.into_iter().try_for_each(|write| self.write(write))
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
            Write::Event(event) => self.event(event)?,
            Write::Endpoint(endpoint) => {
                self.set(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id), Vec::new());
                self.put(keys::endpoint(&endpoint.endpoint.id), &endpoint)?;
            }
            Write::EndpointRemoved(endpoint) => {
                self.change.insert(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id), None);
                self.change.insert(keys::endpoint(&endpoint.endpoint.id), None);
            }
            Write::GatewayToken(name, token) => self.put(keys::gateway_token(name), &token)?,
            Write::App(app) => self.put(keys::app(&app.developer_id, &app.id), &app)?,
            Write::ResponsesForgotten { kept_before, at_most } => self.forget_responses(kept_before, at_most)?,
            Write::DeliveryBodiesForgotten { created_before, at_most } => {
                self.forget_delivery_bodies(created_before, at_most)?;
            }
            Write::DeliveryEnded(ended) => {
                debug_assert!(ended.delivery.status != DeliveryStatus::Pending, "an ended delivery has an outcome");
                self.change.insert(keys::outbox(&ended.delivery.webhook_id, &ended.delivery.id), None);
                self.put(keys::delivery(&ended.delivery.id), &ended)?;
            }
        }
        Ok(())
    }

    fn payment(&mut self, write: PaymentWrite) -> Result<(), CommitError> {
        let PaymentWrite { session, was, postings } = write;
        let scope = session.scope();
        let at = keys::session(&session.payment.id);
        let stored = self.read::<Placed>(&at)?;
        if let Some(check) = stored.as_ref().and_then(|stored| stored.session.check_at) {
            self.change.insert(keys::check(check, &session.payment.id), None);
        }
        let place = match (&was, stored) {
            (None, None) => {
                let id = session.payment.id.as_str().as_bytes().to_vec();
                let place = self.append(&List::payments(&scope), id)?;
                self.enter(&List::payments_with(&scope, &session.payment.status), place, &session)?;
                place
            }
            (Some(was), Some(stored)) if stored.session.version + 1 == session.version => {
                if *was != session.payment.status {
                    self.leave(&List::payments_with(&scope, was), stored.place)?;
                    self.enter(&List::payments_with(&scope, &session.payment.status), stored.place, &session)?;
                }
                stored.place
            }
            _ => return Err(Conflict::PaymentMoved.into()),
        };
        if !postings.is_empty() {
            for posting in &postings {
                let at = keys::balance(&scope, session.payment.currency, posting.account);
                let balance: i128 = self.read(&at)?.unwrap_or_default();
                self.put(at, &(balance + i128::from(posting.minor)))?;
            }
            self.put(keys::postings(&session.payment.id, session.version), &postings)?;
            // What came in through the gateway was paid; what goes back through it is not taken off.
            let paid = postings.iter().find(|posting| posting.account == LedgerAccount::GatewayClearing);
            if let Some(paid) = paid.filter(|posting| posting.minor < 0) {
                let at = keys::volume(&scope, session.payment.currency);
                let (minor, payments): (i128, u64) = self.read(&at)?.unwrap_or_default();
                self.put(at, &(minor - i128::from(paid.minor), payments + 1))?;
            }
        }
        let id = &session.payment.id;
        // Where there is an attempt, the gateway's word ends the session, and `check_at` brings it up.
        let ends_by_itself = session.payment.raw_status.is_open() && session.attempt.is_none();
        self.mark(keys::session_end(session.expires_at, id), ends_by_itself);
        if let Some(check) = session.check_at {
            self.mark(keys::check(check, id), true);
        }
        if session.payment.raw_status == RawStatus::Refunded {
            let waits =
                session.payment.refund.as_ref().is_some_and(|refund| refund.status == RefundStatus::PendingSettlement);
            self.mark(keys::unsettled(id), waits);
        }
        if session.attempt.is_some() {
            let is_open = session.review.as_ref().is_some_and(|review| review.resolved.is_none());
            self.mark(keys::review(id), is_open);
        }
        self.put(at, &Placed { place, session })?;
        Ok(())
    }

    fn forget_responses(&mut self, before: Timestamp, at_most: usize) -> Result<(), StoreError> {
        for key in self.tree.range(keys::kept_before(before)).keys().take(at_most) {
            let key = key.map_err(StoreError::engine)?.to_vec();
            if let Some(at) = keys::response_in_time(&key)
                // A change of this very batch may have kept a new one under the same key.
                && self.read::<KeptResponse>(&at)?.is_some_and(|kept| kept.created_at < before)
            {
                self.mark(at, false);
            }
            self.mark(key, false);
        }
        Ok(())
    }

    fn forget_delivery_bodies(&mut self, before: Timestamp, at_most: usize) -> Result<(), StoreError> {
        for (key, mut outgoing) in delivery_bodies_before(self.tree, before, at_most)? {
            let delivery = &mut outgoing.delivery;
            delivery.response_body = None;
            let mut envelope: serde_json::Map<String, serde_json::Value> =
                parse(&key, delivery.payload.as_str().as_bytes())?;
            // What remains says which event it was.
            envelope.insert("data".into(), serde_json::Map::new().into());
            delivery.payload = RawJson::of(&envelope).map_err(|source| unreadable(&key, source))?;
            let id = outgoing.delivery.id.clone();
            self.put(key, &outgoing)?;
            self.put(keys::BODIES_FORGOTTEN.to_vec(), &id)?;
        }
        Ok(())
    }

    fn event(&mut self, event: EventWrite) -> Result<(), StoreError> {
        self.set(keys::event(&event.id), event.envelope.as_str().as_bytes().to_vec());
        for outgoing in event.deliveries {
            let scope = outgoing.scope();
            let delivery = &outgoing.delivery;
            let id = delivery.id.as_str().as_bytes().to_vec();
            self.append(&List::deliveries(&scope), id.clone())?;
            self.append(&List::deliveries_to(&scope, &delivery.webhook_id), id)?;
            // A ping was attempted before it is logged; it is owed no more.
            if delivery.status == DeliveryStatus::Pending {
                self.set(keys::outbox(&delivery.webhook_id, &delivery.id), Vec::new());
            }
            self.put(keys::delivery(&delivery.id), &outgoing)?;
        }
        Ok(())
    }

    /// Adds an entry at the end of a dense list and returns its place.
    fn append(&mut self, list: &List, value: Vec<u8>) -> Result<u64, StoreError> {
        debug_assert!(list.is_dense, "only a dense list knows its next place");
        let place = self.count(list.count(), |count| count + 1)?;
        self.set(list.entry(place), value);
        Ok(place)
    }

    fn enter(&mut self, list: &List, place: u64, session: &Session) -> Result<(), StoreError> {
        self.count(list.count(), |count| count + 1)?;
        self.count(list.block(place), |count| count + 1)?;
        self.set(list.entry(place), session.payment.id.as_str().as_bytes().to_vec());
        Ok(())
    }

    fn leave(&mut self, list: &List, place: u64) -> Result<(), StoreError> {
        self.count(list.count(), |count| count.saturating_sub(1))?;
        if self.count(list.block(place), |count| count.saturating_sub(1))? <= 1 {
            self.change.insert(list.block(place), None);
        }
        self.change.insert(list.entry(place), None);
        Ok(())
    }

    /// Changes a number of entries; returns what it was.
    fn count(&mut self, at: Vec<u8>, change: impl FnOnce(u64) -> u64) -> Result<u64, StoreError> {
        let before = self.read(&at)?.unwrap_or_default();
        self.put(at, &change(before))?;
        Ok(before)
    }

    /// An entry of an index whose key says all: there or not.
    fn mark(&mut self, key: Vec<u8>, is_there: bool) {
        self.change.insert(key, is_there.then(Vec::new));
    }

    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change.insert(key, Some(value));
    }

    fn put(&mut self, key: Vec<u8>, value: &impl Serialize) -> Result<(), StoreError> {
        let json = serde_json::to_vec(value).map_err(|source| unreadable(&key, source))?;
        self.set(key, json);
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.change.get(key).or_else(|| self.batch.get(key)) {
            Some(Some(json)) => parse(key, json).map(Some),
            Some(None) => Ok(None),
            None => read(self.tree, key),
        }
    }
}

/// The oldest deliveries that still have their bodies, of those made before a time and over. Ids begin with the time they
/// were made at, so the records are in its order; one that is not over yet holds up those after it.
pub(super) fn delivery_bodies_before(
    tree: &sled::Tree,
    before: Timestamp,
    at_most: usize,
) -> Result<Vec<(Vec<u8>, Outgoing)>, StoreError> {
    let after: Option<DeliveryId> = read(tree, keys::BODIES_FORGOTTEN)?;
    let after = after.map_or_else(|| keys::DELIVERIES.to_vec(), |id| keys::delivery(&id));
    let mut found = Vec::new();
    for entry in tree.range((Bound::Excluded(after), Bound::Unbounded)).take(at_most) {
        let (key, json) = entry.map_err(StoreError::engine)?;
        if !key.starts_with(keys::DELIVERIES) {
            break;
        }
        let outgoing: Outgoing = parse(&key, &json)?;
        if outgoing.delivery.created_at >= before || outgoing.delivery.status == DeliveryStatus::Pending {
            break;
        }
        found.push((key.to_vec(), outgoing));
    }
    Ok(found)
}

/// Reads a record, if there is one.
pub(super) fn read<T: DeserializeOwned>(tree: &sled::Tree, key: &[u8]) -> Result<Option<T>, StoreError> {
    match tree.get(key).map_err(StoreError::engine)? {
        Some(json) => parse(key, &json).map(Some),
        None => Ok(None),
    }
}

pub(super) fn parse<T: DeserializeOwned>(key: &[u8], json: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(json).map_err(|source| unreadable(key, source))
}

/// The beginning of a key tells its kind; the rest of some is a hash.
fn unreadable(key: &[u8], source: serde_json::Error) -> StoreError {
    StoreError::Record { key: String::from_utf8_lossy(key).escape_debug().to_string(), source }
}
