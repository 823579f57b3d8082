//! Turns each write of a change into records.

use payments_core::{DeliveryId, PaymentId, RawJson, Timestamp};

use serde::{Deserialize, Serialize};

use super::{
    codec::Records,
    deliveries,
    keys::{self, List, StatusBitmap},
    packed,
    pending::PendingRecord,
    stored::{Event, Stored},
    view::View,
};
use crate::{
    domain::{Effects, Outgoing},
    store::{Change, CommitError, Conflict, EventWrite, PaymentWrite, StoreError, Write},
};

impl View<'_, '_> {
    /// Writes a change, if its conditions hold.
    pub(super) fn apply(&mut self, change: Change) -> Result<(), CommitError> {
        if let Some(keep) = change.idempotency {
            self.keep(keep, &change.writes)?;
        }
        change.writes.into_iter().try_for_each(|write| self.write(write))
    }

    fn write(&mut self, write: Write) -> Result<(), CommitError> {
        match write {
            Write::Workspace(workspace) => {
                let id = workspace.id.to_string();
                self.put(keys::workspace_of(&workspace.developer_id), &id)?;
                self.put_next(keys::workspace(&id), workspace.version, &workspace)?;
            }
            Write::ApiKey(hash, key) => {
                self.set(keys::api_key_id(&key.workspace_id, &key.id), hash.as_bytes().to_vec());
                self.put_next(keys::api_key(&hash), key.version, &key)?;
            }
            Write::Payment(write) => self.payment(*write)?,
            Write::Delivery(outgoing) => self.delivery(&outgoing)?,
            Write::EndpointAdded { endpoint, at_most } => {
                if self.has_many(&keys::endpoints_of(&endpoint.scope()), at_most)? {
                    return Err(Conflict::TooManyEndpoints { at_most }.into());
                }
                self.set(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id), Vec::new());
                self.put_next(keys::endpoint(&endpoint.endpoint.id), endpoint.version, &endpoint)?;
            }
            Write::EndpointRemoved(endpoint) => {
                let key = keys::endpoint(&endpoint.endpoint.id);
                if self.version(&key)? != Some(endpoint.version) {
                    return Err(Conflict::Stale.into());
                }
                self.remove(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id));
                self.remove(key);
            }
            Write::GatewayToken(name, token) => self.put_next(keys::gateway_token(name), token.version, &token)?,
            Write::App(app) => self.put_next(keys::app(&app.app.developer_id, &app.app.id), app.version, &app)?,
            Write::KeyClaimed(write) => self.claim_key(&write.0, &write.1)?,
            Write::KeyReleased(key, token) => self.release_key(&key, &token)?,
            Write::FannedOut { event, after, .. } => self.fanned_out(&event, after)?,
            Write::DeliveryEnded(ended) => {
                debug_assert!(!ended.is_pending(), "an ended delivery has an outcome");
                self.check_version(&keys::delivery(&ended.delivery.id), ended.version)?;
                self.remove(keys::outbox(&ended.delivery.webhook_id, &ended.delivery.id));
                self.put_delivery(&ended)?;
            }
        }
        Ok(())
    }

    /// Writes a record whose version must be the next one.
    fn put_next(&mut self, key: Vec<u8>, version: u64, value: &impl Serialize) -> Result<(), CommitError> {
        self.check_version(&key, version)?;
        Ok(self.put(key, value)?)
    }

    /// Checks that a record is at the version before this one. Before version 0 there is no record.
    fn check_version(&self, key: &[u8], version: u64) -> Result<(), CommitError> {
        if self.version(key)? == version.checked_sub(1) { Ok(()) } else { Err(Conflict::Stale.into()) }
    }

    /// The version of a record, if it is there.
    fn version(&self, key: &[u8]) -> Result<Option<u64>, StoreError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            version: u64,
        }
        Ok(self.read::<Head>(key)?.map(|head| head.version))
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
                    stored.events_in_full().map_err(|error| StoreError::corrupt(&at, error))?
                };
                (place, events)
            }
            _ => return Err(Conflict::Stale.into()),
        };
        if let Some(EventWrite { id: event, kind, created_at, data }) = event {
            if self.has_many(&keys::endpoints_of(&effects.scope), 1)? {
                self.put(keys::pending_event(&event), &PendingRecord { payment: id.clone(), after: None })?;
            }
            // Data that equals the payment is not stored a second time.
            let is_payment = RawJson::of(&session.payment).is_ok_and(|payment| payment == data);
            events.push(Event { id: event, event: kind, created_at, data: (!is_payment).then_some(data) });
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
            self.list_by_status(&StatusBitmap::of(scope, status), place, false)?;
        }
        if let Some(status) = effects.status.entered() {
            self.list_by_status(&StatusBitmap::of(scope, status), place, true)?;
        }
        if let Some(time) = effects.expiry.left() {
            self.remove_name(keys::expiry(*time), id.as_str())?;
        }
        if let Some(time) = effects.expiry.entered() {
            self.add_name(keys::expiry(*time), id.as_str())?;
        }
        if let Some(time) = effects.gateway_check.left() {
            self.remove(keys::check(*time, id));
        }
        if let Some(time) = effects.gateway_check.entered() {
            self.set(keys::check(*time, id), Vec::new());
        }
        for (transition, key) in [
            (&effects.manual_settlement, keys::manual_settlement(id)),
            (&effects.manual_review, keys::manual_review(id)),
        ] {
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

    /// Redacts the bodies of at most `at_most` deliveries that were made before a time, oldest first. Returns how many deliveries
    /// it passed.
    pub(super) fn prune_delivery_bodies(&mut self, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let old = unredacted_before(&**self, before, at_most)?;
        for (key, before_batch) in &old {
            // An earlier change of this batch may have ended it.
            let Some(stored) = self.read(key)? else { continue };
            let mut outgoing = deliveries::whole(key, stored, |payment| self.read(&keys::session(payment)))?;
            // A pending delivery keeps its payload until it ends.
            if !outgoing.is_pending() {
                outgoing.redact().map_err(|error| StoreError::corrupt(key, error))?;
                self.put(key.clone(), &outgoing)?;
            }
            self.put(keys::REDACTED_UP_TO.to_vec(), &before_batch.delivery.id)?;
        }
        Ok(old.len())
    }

    /// Writes a new delivery: a pending one, or a ping that was already attempted.
    fn delivery(&mut self, outgoing: &Outgoing) -> Result<(), CommitError> {
        let scope = outgoing.scope();
        let delivery = &outgoing.delivery;
        self.check_version(&keys::delivery(&delivery.id), outgoing.version)?;
        self.append(&List::deliveries(&scope), delivery.id.as_str())?;
        self.append(&List::deliveries_to(&scope, &delivery.webhook_id), delivery.id.as_str())?;
        if outgoing.is_pending() {
            self.set(keys::outbox(&delivery.webhook_id, &delivery.id), Vec::new());
        }
        Ok(self.put_delivery(outgoing)?)
    }

    fn put_delivery(&mut self, outgoing: &Outgoing) -> Result<(), StoreError> {
        let key = keys::delivery(&outgoing.delivery.id);
        let mut stored = deliveries::stored(outgoing).map_err(|error| StoreError::corrupt(&key, error))?;
        // Pruning has passed the deliveries of its time, so this one is redacted as it ends.
        if !outgoing.is_pending() {
            let redacted: Option<DeliveryId> = self.read(keys::REDACTED_UP_TO)?;
            if redacted.is_some_and(|up_to| stored.delivery.id <= up_to) {
                stored = outgoing.clone();
                stored.redact().map_err(|error| StoreError::corrupt(&key, error))?;
            }
        }
        self.put(key, &stored)
    }

    /// Appends to a list and returns the new entry's place.
    fn append(&mut self, list: &List, id: &str) -> Result<u64, StoreError> {
        let place = self.count(list.count(), |count| count + 1)?;
        let leaf = list.leaf(place);
        let mut ids = self.bytes(&leaf)?;
        packed::push_line(&mut ids, id);
        self.set(leaf, ids);
        Ok(place)
    }

    fn list_by_status(&mut self, marks: &StatusBitmap, place: u64, is_set: bool) -> Result<(), StoreError> {
        self.count(marks.count(), |count| if is_set { count + 1 } else { count.saturating_sub(1) })?;
        let block = marks.block(place);
        let mut bits = self.bytes(&block)?;
        packed::set_bit(&mut bits, place % keys::BLOCK, is_set);
        if packed::count_set(&bits) > 0 {
            self.set(block, bits)
        } else {
            self.remove(block)
        }
        Ok(())
    }
}

/// The oldest deliveries that were made before a time and that pruning has not passed. Ids begin with a delivery's time, so
/// the records are in the order of time.
fn unredacted_before(
    records: &impl Records,
    before: Timestamp,
    at_most: usize,
) -> Result<Vec<(Vec<u8>, Outgoing)>, StoreError> {
    let after: Option<DeliveryId> = records.read(keys::REDACTED_UP_TO)?;
    let after = after.map_or_else(|| keys::DELIVERIES.to_vec(), |id| keys::delivery(&id));
    let mut found = Vec::new();
    for entry in records.prefix_after(keys::DELIVERIES, &after).take(at_most) {
        let key = entry.as_ref().map(|(key, _)| key.clone()).unwrap_or_default();
        let outgoing = deliveries::of_entry(records, entry)?;
        if outgoing.delivery.created_at >= before {
            break;
        }
        found.push((key, outgoing));
    }
    Ok(found)
}
