//! Turns each write of a change into records.

use journaled_tree::Read;
use payments_core::{DeliveryId, RawJson, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    codec::Records,
    deliveries::{self, Queued},
    keys::{self, List},
    pending::PendingRecord,
    stored::{Parts, Rest, Stored},
    view::View,
};
use crate::{
    domain::{MoneyMove, Outgoing, Session},
    store::{
        CHANGED, Change, CommitError, Committed, Conflict, EventEntry, Follows, PaymentWrite, StoreError, StoredEvent,
        Write,
    },
};

impl View<'_, '_> {
    /// Writes a change, if its conditions hold.
    pub(super) fn apply(&mut self, change: Change) -> Result<Committed, CommitError> {
        if let Some(keep) = change.idempotency {
            self.keep(keep, &change.writes)?;
        }
        let mut has_pending_event = false;
        for write in change.writes {
            has_pending_event |= self.write(write, CHANGED)?;
        }
        Ok(Committed { has_pending_event })
    }

    /// Returns whether an event became pending.
    pub(super) fn write(&mut self, write: Write, follows: Follows) -> Result<bool, CommitError> {
        match write {
            Write::Workspace(workspace) => {
                let id = workspace.id.to_string();
                self.put(keys::workspace_of(&workspace.developer_id), &id)?;
                self.put_next(keys::workspace(&id), follows(workspace.version), &workspace)?;
            }
            Write::ApiKey(hash, key) => {
                self.set(keys::api_key_id(&key.workspace_id, &key.id), hash.0.to_vec());
                self.put_next(keys::api_key(&hash), follows(key.version), &key)?;
            }
            Write::Payment(write) => return self.payment(*write),
            Write::Delivery(outgoing) => self.delivery(*outgoing, follows)?,
            Write::EndpointAdded { endpoint, at_most } => {
                if self.count_prefix(&keys::endpoints_of(&endpoint.scope()), at_most)? == at_most {
                    return Err(Conflict::TooManyEndpoints { at_most }.into());
                }
                self.add_endpoint(&endpoint.scope(), &endpoint.endpoint.id);
                self.put_next(keys::endpoint(&endpoint.endpoint.id), follows(endpoint.version), &endpoint)?;
            }
            Write::EndpointChanged(endpoint) => {
                self.put_next(keys::endpoint(&endpoint.endpoint.id), follows(endpoint.version), &endpoint)?;
            }
            Write::EndpointRemoved(endpoint) => {
                let key = keys::endpoint(&endpoint.endpoint.id);
                if self.version(&key)? != Some(endpoint.version) {
                    return Err(Conflict::Stale.into());
                }
                self.remove(keys::endpoint_of(&endpoint.scope(), &endpoint.endpoint.id));
                self.remove(key);
            }
            Write::GatewayToken(name, token) => {
                self.put_next(keys::gateway_token(&name), follows(token.version), &token)?;
            }
            Write::App(app) => {
                self.put_next(keys::app(&app.app.developer_id, &app.app.id), follows(app.version), &app)?;
            }
            Write::KeyClaimed(write) => self.claim_key(&write.0, &write.1)?,
            Write::KeyReleased(key, token) => self.release_key(&key, &token)?,
            Write::FannedOut { event, after, .. } => self.fanned_out(&event, after)?,
            Write::DeliveryChanged(changed) => self.delivery_changed(*changed, follows)?,
            Write::DeliveryResent(it) => {
                self.check_follows(&keys::delivery(&it.delivery.id), follows(it.version))?;
                self.put_delivery(*it)?;
            }
            Write::LogPart(it) => {
                self.put_next(keys::log_part(&it.key()), follows(it.version), &it)?;
            }
            Write::Moved(record) => self.take_in(*record)?,
            Write::Migration(it) => self.put_next(keys::MIGRATION.to_vec(), follows(it.version), &it)?,
        }
        Ok(false)
    }

    /// Writes a record that must follow a version.
    fn put_next(&mut self, key: Vec<u8>, after: Option<u64>, value: &impl Serialize) -> Result<(), CommitError> {
        self.check_follows(&key, after)?;
        Ok(self.put(key, value)?)
    }

    /// Checks that a record is at this version, or not there if it is `None`.
    pub(super) fn check_follows(&self, key: &[u8], after: Option<u64>) -> Result<(), CommitError> {
        if self.version(key)? == after || planted!(VersionIgnored) { Ok(()) } else { Err(Conflict::Stale.into()) }
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

    /// Returns whether its event became pending.
    fn payment(&mut self, write: PaymentWrite) -> Result<bool, CommitError> {
        let PaymentWrite { session, json, effects, postings, event, unique } = write;
        let id = &session.payment.id;
        let at = keys::session(id);
        let (position, mut events) = match self.follow(&at, &session, &json)? {
            Some(stored) => stored,
            None => (self.append(&List::payments(&effects.scope), id.as_str())?, Vec::new()),
        };
        if let Some(unique) = unique
            && self.is_found(&effects.scope, &unique)?
        {
            return Err(Conflict::LookupUsed.into());
        }
        let mut is_pending = false;
        if let Some(event) = event {
            is_pending = self.has_endpoint(&effects.scope)?;
            if is_pending {
                self.put(keys::pending_event(&event.id), &PendingRecord { payment: id.clone(), after: None })?;
            }
            let entry = EventEntry { id: event.id.clone(), kind: event.kind.clone(), payment: id.clone() };
            self.add_event(&effects.scope, &entry, MoneyMove::of(effects.currency, &postings))?;
            events.push(StoredEvent::new(event, &json));
        }
        if !postings.is_empty() {
            self.put(keys::postings(id, session.version), &postings)?;
        }
        self.apply_effects(id, position, &effects)?;
        self.put_payment(at, Stored { position, session, events }, &json)?;
        Ok(is_pending)
    }

    /// The position and the events of the payment that a session follows; `None` if the session is new.
    fn follow(
        &self,
        at: &[u8],
        session: &Session,
        json: &RawJson,
    ) -> Result<Option<(u64, Vec<StoredEvent>)>, CommitError> {
        let Some(record) = self.get(at).map_err(StoreError::from)? else {
            return if session.version == 0 { Ok(None) } else { Err(Conflict::Stale.into()) };
        };
        let parts = Parts::of(at, &record)?;
        let Rest { position, version, mut events, .. } = parts.rest()?;
        if CHANGED(session.version) != Some(version) {
            return Err(Conflict::Stale.into());
        }
        StoredEvent::carry_over(&mut events, &parts.json()?, json);
        Ok(Some((position, events)))
    }

    pub(super) fn put_payment(&mut self, at: Vec<u8>, stored: Stored, json: &RawJson) -> Result<(), StoreError> {
        let record = stored.into_record(json).map_err(|error| StoreError::corrupt(&at, error))?;
        self.set(at, record);
        Ok(())
    }

    /// Redacts the bodies of at most `at_most` deliveries that were made before a time, oldest first. Returns how many deliveries
    /// it passed.
    pub(super) fn prune_delivery_bodies(&mut self, before: Timestamp, at_most: usize) -> Result<usize, StoreError> {
        let after: Option<DeliveryId> = self.read(keys::REDACTED_UP_TO)?;
        let after = after.map_or_else(|| keys::DELIVERIES.to_vec(), |id| keys::delivery(&id));
        let mut passed = 0;
        // Ids begin with a delivery's time, so the records are in the order of time.
        for entry in self.prefix_after(keys::DELIVERIES, &after).take(at_most) {
            let mut outgoing = deliveries::of_entry(&**self, entry)?;
            if outgoing.delivery.created_at >= before {
                break;
            }
            passed += 1;
            self.put(keys::REDACTED_UP_TO.to_vec(), &outgoing.delivery.id)?;
            // A pending delivery keeps its payload until it ends.
            if !outgoing.is_pending() {
                let key = keys::delivery(&outgoing.delivery.id);
                outgoing.redact().map_err(|error| StoreError::corrupt(&key, error))?;
                self.put(key, &outgoing)?;
            }
        }
        Ok(passed)
    }

    /// Writes a new delivery, or one of another store.
    fn delivery(&mut self, outgoing: Outgoing, follows: Follows) -> Result<(), CommitError> {
        let delivery = &outgoing.delivery;
        self.check_follows(&keys::delivery(&delivery.id), follows(outgoing.version))?;
        for list in deliveries::lists_of(&outgoing) {
            self.append(&list, delivery.id.as_str())?;
        }
        if let Some(payment) = &outgoing.payment {
            self.add_line(keys::deliveries_of(payment), delivery.id.as_str())?;
        }
        self.enqueue(&outgoing)?;
        Ok(self.put_delivery(outgoing)?)
    }

    /// Moves a delivery out of its place in a queue, and into the one that it has now.
    fn delivery_changed(&mut self, outgoing: Outgoing, follows: Follows) -> Result<(), CommitError> {
        let stored: Option<Outgoing> = self.read(&keys::delivery(&outgoing.delivery.id))?;
        let Some(stored) = stored.filter(|stored| follows(outgoing.version) == Some(stored.version)) else {
            return Err(Conflict::Stale.into());
        };
        if let Some(Queued { key, count, .. }) = Queued::of(&stored) {
            self.remove(key);
            self.update(count, |count: u64| count.saturating_sub(1))?;
            self.outbox -= i64::from(stored.is_in_outbox());
        }
        self.enqueue(&outgoing)?;
        Ok(self.put_delivery(outgoing)?)
    }

    /// Puts a pending delivery into its queue.
    fn enqueue(&mut self, outgoing: &Outgoing) -> Result<(), StoreError> {
        if let Some(Queued { key, value, count }) = Queued::of(outgoing) {
            self.set(key, value);
            self.update(count, |count: u64| count + 1)?;
            self.outbox += i64::from(outgoing.is_in_outbox());
        }
        Ok(())
    }

    /// Stores a delivery without the payload that its event has.
    fn put_delivery(&mut self, mut outgoing: Outgoing) -> Result<(), StoreError> {
        let key = keys::delivery(&outgoing.delivery.id);
        let corrupt = |error| StoreError::corrupt(&key, error);
        // Pruning has passed the deliveries of its time, so this one is redacted as it ends.
        let is_passed = !outgoing.is_pending()
            && self.read(keys::REDACTED_UP_TO)?.is_some_and(|up_to: DeliveryId| outgoing.delivery.id <= up_to);
        if is_passed {
            outgoing.redact().map_err(corrupt)?;
        } else if outgoing.event.is_some() {
            outgoing.delivery.payload = RawJson::of(&serde_json::Map::new()).map_err(corrupt)?;
        }
        self.put(key, &outgoing)
    }

    /// Appends to a list and returns the new entry's position.
    pub(super) fn append(&mut self, list: &List, id: &str) -> Result<u64, StoreError> {
        let position = self.update(list.count(), |count: u64| count + 1)?;
        self.add_line(list.leaf(position), id)?;
        Ok(position)
    }
}
