//! Writes to the tables, and the questions that look at more than one record.

use std::collections::{BTreeMap, BTreeSet};

use payments_core::{DeliveryId, PaymentId, Timestamp, WebhookId};

use super::Tables;
use crate::{
    domain::{Effects, Endpoint, IdempotencyKey, MoneyMove, Outgoing, PendingEvent, Scope, StoredResponse},
    store::{
        ClaimEnd, CommitError, Conflict, Due, EventWrite, NewResponse, PaymentWrite, Planned, Queue, Result,
        StoreError, Work, Write,
    },
};

impl Tables {
    fn check_unused(&self, key: &IdempotencyKey, now: Timestamp) -> Result<(), Conflict> {
        let used = self.responses.get(key).filter(|it| StoredResponse::is_fresh_at(it.created_at, now)).cloned();
        used.map_or(Ok(()), |used| Err(Conflict::IdempotencyKeyUsed(Box::new(used))))
    }

    pub(super) fn keep(
        &mut self,
        NewResponse { key, fingerprint, created_at, body, claim }: NewResponse,
    ) -> Result<(), Conflict> {
        self.check_unused(&key, created_at)?;
        let held = self.key_claims.get(&key);
        match claim {
            ClaimEnd::NotClaimed => {}
            ClaimEnd::Held(token) if held.is_some_and(|held| held.token != token) => return Err(Conflict::ClaimLost),
            ClaimEnd::Held(_) | ClaimEnd::Any => drop(self.key_claims.remove(&key)),
        }
        self.responses.insert(key, StoredResponse { fingerprint, created_at, body });
        Ok(())
    }

    pub(super) fn write(&mut self, write: Write) -> Result<(), CommitError> {
        match write {
            Write::Workspace(it) => put(&mut self.workspaces, it.id.to_string(), it, |it| it.version)?,
            Write::ApiKey(hash, it) => {
                put(&mut self.api_keys, (it.workspace_id.clone(), it.id.clone()), (hash, *it), |(_, it)| it.version)?;
            }
            Write::App(it) => {
                put(&mut self.apps, (it.app.developer_id.clone(), it.app.id.clone()), *it, |it| it.version)?;
            }
            Write::GatewayToken(name, it) => put(&mut self.gateway_tokens, name, it, |it| it.version)?,
            Write::Payment(write) => self.payment(*write)?,
            Write::Delivery(it) => {
                self.delivery_log.push(it.delivery.id.clone());
                self.put_delivery(*it)?;
            }
            Write::DeliveryChanged(it) | Write::DeliveryResent(it) => self.put_delivery(*it)?,
            Write::EndpointAdded { endpoint, at_most } => {
                let scope = endpoint.scope();
                if self.endpoints.values().filter(|other| other.scope() == scope).count() >= at_most {
                    return Err(Conflict::TooManyEndpoints { at_most }.into());
                }
                put(&mut self.endpoints, endpoint.endpoint.id.clone(), *endpoint, |it| it.version)?;
            }
            Write::EndpointChanged(it) => {
                put(&mut self.endpoints, it.endpoint.id.clone(), *it, |it| it.version)?;
            }
            Write::EndpointRemoved(it) => {
                let removed = self.endpoints.remove(&it.endpoint.id).filter(|removed| removed.version == it.version);
                drop(removed.ok_or(Conflict::Stale)?);
            }
            Write::KeyClaimed(write) => {
                let (key, claim) = *write;
                self.check_unused(&key, claim.claimed_at)?;
                if let Some(held) = self.key_claims.get(&key).filter(|held| held.runs_at(claim.claimed_at)) {
                    return Err(Conflict::KeyClaimed(Box::new(held.clone())).into());
                }
                self.key_claims.insert(key, claim);
            }
            Write::KeyReleased(key, token) => self.key_claims.retain(|of, it| *of != key || it.token != token),
            Write::FannedOut { event, after: None, .. } => drop(self.pending_events.remove(&event)),
            Write::FannedOut { event, after, .. } => {
                self.pending_events.entry(event).and_modify(|pending| pending.after = after);
            }
            Write::LogPart(it) => put(&mut self.log_parts, it.key(), *it, |it| it.version)?,
            Write::Moved(_) | Write::Migration(_) => panic!("no test moves records into memory"),
        }
        Ok(())
    }

    fn payment(&mut self, write: PaymentWrite) -> Result<(), CommitError> {
        let PaymentWrite { session, effects, event, postings, unique, .. } = write;
        let id = &session.payment.id;
        if unique.is_some_and(|unique| self.found_by(&effects.scope, &unique).next().is_some()) {
            return Err(Conflict::LookupUsed.into());
        }
        self.payments.extend((session.version == 0).then(|| (effects.scope.clone(), id.clone())));
        self.apply_effects(id, &effects);
        self.events.extend(event.clone().map(|event| (effects.scope.clone(), id.clone(), event)));
        if let (Some(event), Some(money)) = (&event, MoneyMove::of(effects.currency, &postings)) {
            self.add_transaction(&effects.scope, id, &event.id, money);
        }
        let has_endpoint = self.endpoints(&effects.scope, None).next().is_some();
        if let Some(EventWrite { id, kind, created_at, data }) = event.filter(|_| has_endpoint) {
            let pending = PendingEvent::new(&session, id.clone(), kind, created_at, &data);
            self.pending_events.insert(id, pending.map_err(|error| StoreError::corrupt(b"event", error))?);
        }
        Ok(put(&mut self.sessions, id.clone(), session, |it| it.version)?)
    }

    fn apply_effects(&mut self, id: &PaymentId, effects: &Effects) {
        let Effects { scope, currency, .. } = effects;
        self.statuses.extend(effects.status.entered().map(|status| (id.clone(), status.clone())));
        macro_rules! move_in {
            ($($index:ident),*) => { $(
                if let Some(left) = effects.$index.left() {
                    self.$index.remove(&(*left, id.clone()));
                }
                self.$index.extend(effects.$index.entered().map(|entered| (*entered, id.clone())));
            )* };
        }
        move_in!(expiry, gateway_check, manual_settlement, manual_review);
        for (account, minor) in &effects.balances {
            *self.balances.entry((scope.clone(), *currency, *account)).or_default() += minor;
        }
        if let Some(minor) = effects.volume {
            let volume = self.volumes.entry((scope.clone(), *currency)).or_default();
            *volume = (volume.0 + minor, volume.1 + 1);
        }
        if let Some((day, added)) = effects.day {
            *self.days.entry((scope.to_string(), currency.code(), day)).or_default() += added;
        }
    }

    /// Writes a delivery; one that ends after the deliveries of its time were redacted is redacted.
    fn put_delivery(&mut self, mut it: Outgoing) -> Result<(), CommitError> {
        if !it.is_pending() && self.redacted.as_ref().is_some_and(|up_to| it.delivery.id <= *up_to) {
            it.redact().map_err(|error| StoreError::corrupt(b"delivery", error))?;
        }
        let (id, endpoint) = (it.delivery.id.clone(), it.delivery.webhook_id.clone());
        self.outbox.remove(&(endpoint.clone(), id.clone()));
        self.outbox.extend(it.is_in_outbox().then(|| (endpoint, id.clone())));
        self.retries.retain(|(_, other)| *other != id);
        self.retries.extend(it.waits_until().map(|until| (until, id.clone())));
        Ok(put(&mut self.deliveries, id, it, |it| it.version)?)
    }

    pub(super) fn redact(&mut self, before: Timestamp, at_most: usize) -> Result<usize> {
        let redacted = self.redacted.clone();
        let not_passed = self.deliveries.values_mut().filter(|it| redacted.as_ref() < Some(&it.delivery.id));
        let old = not_passed.take_while(|it| it.delivery.created_at < before).take(at_most);
        let mut passed = 0;
        for it in old {
            passed += 1;
            self.redacted = Some(it.delivery.id.clone());
            if !it.is_pending() {
                it.redact().map_err(|error| StoreError::corrupt(b"delivery", error))?;
            }
        }
        Ok(passed)
    }

    pub(super) fn due(&self, queue: Queue, now: Timestamp) -> Vec<Due> {
        let by_now = |index: &BTreeSet<(Timestamp, PaymentId)>, work: fn(PaymentId) -> Work| {
            index.iter().take_while(|(time, _)| *time < now).map(|(_, id)| (work(id.clone()), None)).collect()
        };
        let pending = self.pending_events.values();
        match queue {
            Queue::FanOut => pending.map(|it| (Work::FanOut(it.id.clone()), Some(it.payment.clone()))).collect(),
            Queue::Lanes => self.outbox.iter().map(|(endpoint, _)| (Work::Lane(endpoint.clone()), None)).collect(),
            Queue::Retries => {
                let due = self.retries.iter().take_while(|(time, _)| *time < now);
                due.map(|(_, id)| (Work::Retry(id.clone()), None)).collect()
            }
            Queue::Expiry => by_now(&self.expiry, Work::Expiry),
            Queue::GatewayChecks => by_now(&self.gateway_check, Work::GatewayCheck),
        }
    }

    pub(super) fn planned(&self, queue: Queue, after: Timestamp) -> Vec<Planned> {
        let later = |index: &BTreeSet<(Timestamp, PaymentId)>, work: fn(PaymentId) -> Work| {
            index.iter().filter(|(time, _)| *time > after).map(|(time, id)| (*time, work(id.clone()))).collect()
        };
        match queue {
            Queue::FanOut | Queue::Lanes => Vec::new(),
            Queue::Retries => {
                let later = self.retries.iter().filter(|(time, _)| *time > after);
                later.map(|(time, id)| (*time, Work::Retry(id.clone()))).collect()
            }
            Queue::Expiry => later(&self.expiry, Work::Expiry),
            Queue::GatewayChecks => later(&self.gateway_check, Work::GatewayCheck),
        }
    }

    pub(super) fn outbox_of(&self, endpoint: &WebhookId) -> impl Iterator<Item = &DeliveryId> {
        self.outbox.iter().filter(move |(of, _)| of == endpoint).map(|(_, id)| id)
    }

    pub(super) fn endpoints(&self, scope: &Scope, after: Option<&WebhookId>) -> impl Iterator<Item = Endpoint> {
        let later = self.endpoints.iter().filter(move |(id, it)| after < Some(*id) && it.scope() == *scope);
        later.map(|(_, it)| it.clone())
    }
}

/// Writes a record, if its version is the next one.
fn put<K: Ord, R>(table: &mut BTreeMap<K, R>, key: K, record: R, version: fn(&R) -> u64) -> Result<(), Conflict> {
    if table.get(&key).map(version) != version(&record).checked_sub(1) {
        return Err(Conflict::Stale);
    }
    table.insert(key, record);
    Ok(())
}
