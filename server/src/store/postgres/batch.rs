//! Decides the changes of a batch: against the rows that they read, one after another, each as a whole or not at all.

use std::collections::{BTreeMap, HashMap, HashSet};

use payments_core::{DeliveryId, EventId, PaymentId, Posting, RawJson, Status, Timestamp, WebhookId};
use serde::Serialize;

use super::{
    days::DayName,
    names::{self, Kind, RecordKey, WorkKey},
    record_columns::RecordColumns,
    rows::Rows,
};
use crate::{
    domain::{
        ClaimToken, DayTotals, Effects, IdempotencyKey, KeyClaim, Lookup, MoneyMove, Outgoing, Session, StoredResponse,
        Transition,
    },
    store::{
        CHANGED, Change, Claim, ClaimEnd, CommitError, Committed, Conflict, EventEntry, EventRecord, Follows,
        NewResponse, PaymentWrite, StoreError, StoredEvent, Write,
    },
};

/// What a batch reads, and what it writes.
#[derive(Default)]
pub(super) struct Batch {
    /// The epochs of the claims on work.
    pub(super) leases: HashMap<WorkKey, i64>,
    pub(super) idempotency: Rows<IdempotencyName, IdempotencyRow>,
    pub(super) records: Rows<RecordKey, RecordRow>,
    /// How many endpoints each scope has.
    pub(super) endpoints: Rows<ScopeName, usize>,
    pub(super) payments: Rows<PaymentId, PaymentRow>,
    pub(super) pending: Rows<EventId, PendingRow>,
    pub(super) deliveries: Rows<DeliveryId, DeliveryRow>,
    pub(super) redacted_up_to: Option<DeliveryId>,
    /// The values that must be unique and find a payment already.
    pub(super) found: HashSet<LookupName>,
    pub(super) additions: Additions,
    /// The additions of the change at hand.
    pub(super) change: Additions,
}

/// What is only ever added: postings, entries of the list of events, what payments are found by, and sums.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) postings: Vec<(PaymentId, u64, Vec<Posting>)>,
    pub(super) events: Vec<EventRecord>,
    /// With whether no other payment may have the value.
    pub(super) lookups: Vec<(LookupName, PaymentId, bool)>,
    pub(super) totals: BTreeMap<(ScopeName, String), i128>,
    pub(super) days: BTreeMap<DayName, DayTotals>,
    /// Where the redaction of a store that is moved here stands.
    pub(super) redacted_up_to: Option<DeliveryId>,
}

/// A developer and an environment, in the order of the table's key.
pub(super) type ScopeName = (String, &'static str);
/// A scope and a value by which payments of it are found.
pub(super) type LookupName = (ScopeName, Lookup);
/// A scope and the digest of a key in it.
pub(super) type IdempotencyName = (ScopeName, [u8; 32]);

pub(super) struct IdempotencyRow {
    pub(super) response: Option<ResponseRow>,
    pub(super) claim: Option<KeyClaim>,
}

#[derive(Clone)]
pub(super) struct ResponseRow {
    pub(super) response: StoredResponse,
    /// The event whose data is the body.
    pub(super) event: Option<(PaymentId, EventId)>,
}

pub(super) struct RecordRow {
    pub(super) version: u64,
    pub(super) parent: String,
    /// Empty where it was read only for its version.
    pub(super) body: String,
}

pub(super) struct PaymentRow {
    pub(super) session: Session,
    pub(super) events: Vec<StoredEvent>,
    pub(super) columns: PaymentColumns,
}

/// The entries of a payment in the indexes.
#[derive(Clone, Default)]
pub(super) struct PaymentColumns {
    pub(super) status: Option<Status>,
    pub(super) expiry: Option<Timestamp>,
    pub(super) gateway_check: Option<Timestamp>,
    pub(super) manual_settlement: Option<()>,
    pub(super) manual_review: Option<()>,
}

impl PaymentColumns {
    pub(super) fn apply(&mut self, effects: &Effects) {
        enter(&mut self.status, &effects.status);
        enter(&mut self.expiry, &effects.expiry);
        enter(&mut self.gateway_check, &effects.gateway_check);
        enter(&mut self.manual_settlement, &effects.manual_settlement);
        enter(&mut self.manual_review, &effects.manual_review);
    }
}

/// A write to a pending event. It is never read within a batch.
pub(super) enum PendingRow {
    /// With the last endpoint that fan-out has handled.
    Added(PaymentId, Option<WebhookId>),
    Reached(WebhookId),
}

pub(super) struct DeliveryRow {
    pub(super) version: u64,
    /// `None` where it was read only for its version.
    pub(super) written: Option<Box<Outgoing>>,
}

impl Batch {
    /// Decides a change and returns its outcome. A refused change leaves the batch as it was.
    pub(super) fn decide(&mut self, change: Change) -> Result<Committed, CommitError> {
        let outcome = self.apply(change);
        let is_accepted = outcome.is_ok();
        self.idempotency.end_change(is_accepted);
        self.records.end_change(is_accepted);
        self.endpoints.end_change(is_accepted);
        self.payments.end_change(is_accepted);
        self.pending.end_change(is_accepted);
        self.deliveries.end_change(is_accepted);
        let Additions { postings, events, lookups, totals, days, redacted_up_to } = std::mem::take(&mut self.change);
        if is_accepted {
            self.additions.redacted_up_to = redacted_up_to.or(self.additions.redacted_up_to.take());
            self.additions.postings.extend(postings);
            self.additions.events.extend(events);
            self.additions.lookups.extend(lookups);
            totals.into_iter().for_each(|(name, value)| *self.additions.totals.entry(name).or_default() += value);
            days.into_iter().for_each(|(name, added)| *self.additions.days.entry(name).or_default() += added);
        }
        outcome
    }

    fn apply(&mut self, change: Change) -> Result<Committed, CommitError> {
        let holds = |claim: &Claim| self.leases.get(&names::work(&claim.work)) == Some(&claim.epoch.cast_signed());
        if !change.under.iter().all(holds) {
            return Err(Conflict::WorkLost.into());
        }
        if let Some(response) = change.idempotency {
            self.store_response(response, &change.writes)?;
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
            Write::Workspace(it) => self.record(RecordColumns::of_workspace(&it), follows, &it)?,
            Write::ApiKey(hash, it) => self.record(RecordColumns::of_api_key(names::hash(&hash), &it), follows, &it)?,
            Write::App(it) => self.record(RecordColumns::of_app(&it), follows, &it)?,
            Write::GatewayToken(name, it) => self.record(RecordColumns::of_gateway_token(&name, &it), follows, &it)?,
            Write::Migration(it) => self.record(RecordColumns::of_migration(&it), follows, &it)?,
            Write::LogPart(it) => self.record(RecordColumns::of_log_part(&it), follows, &it)?,
            Write::Moved(record) => self.take_in(*record)?,
            Write::EndpointAdded { endpoint: it, at_most } => {
                let scope = names::scope(&it.scope());
                let count = self.endpoints.get(&scope).copied().unwrap_or_default();
                if count >= at_most {
                    return Err(Conflict::TooManyEndpoints { at_most }.into());
                }
                if follows(it.version).is_none() {
                    self.endpoints.put(scope, count + 1);
                }
                self.record(RecordColumns::of_endpoint(&it), follows, &it)?;
            }
            Write::EndpointChanged(it) => self.record(RecordColumns::of_endpoint(&it), follows, &it)?,
            Write::EndpointRemoved(it) => {
                let (key, scope) = ((Kind::Endpoint, it.endpoint.id.to_string()), names::scope(&it.scope()));
                if self.records.get(&key).map(|row| row.version) != Some(it.version) {
                    return Err(Conflict::Stale.into());
                }
                self.records.remove(key);
                let count = self.endpoints.get(&scope).copied().unwrap_or_default();
                self.endpoints.put(scope, count.saturating_sub(1));
            }
            Write::Payment(it) => return self.payment(*it),
            Write::Delivery(it) => {
                let scope = names::scope(&it.scope());
                for name in [names::DELIVERIES.to_owned(), names::deliveries_to(&it.delivery.webhook_id)] {
                    self.add(scope.clone(), name, 1);
                }
                self.delivery(it, follows)?;
            }
            Write::DeliveryChanged(it) | Write::DeliveryResent(it) => self.delivery(it, follows)?,
            Write::KeyClaimed(it) => self.claim_key(&it.0, it.1)?,
            Write::KeyReleased(key, token) => self.release_key(&key, &token),
            Write::FannedOut { event, after: None, .. } => self.pending.remove(event),
            Write::FannedOut { event, after: Some(after), .. } => self.pending.put(event, PendingRow::Reached(after)),
        }
        Ok(false)
    }

    fn record(&mut self, columns: RecordColumns, follows: Follows, record: &impl Serialize) -> Result<(), CommitError> {
        let RecordColumns { key, parent, version } = columns;
        check_follows(self.records.get(&key).map(|row| row.version), follows(version))?;
        let body = serde_json::to_string(record).map_err(|error| StoreError::corrupt(key.1.as_bytes(), error))?;
        self.records.put(key, RecordRow { version, parent, body });
        Ok(())
    }

    fn payment(&mut self, write: PaymentWrite) -> Result<bool, CommitError> {
        let PaymentWrite { session, json, effects, postings, event, unique } = write;
        let id = session.payment.id.clone();
        let stored = self.payments.get(&id);
        check_follows(stored.map(|row| row.session.version), CHANGED(session.version))?;
        let (mut events, mut columns) = stored.map(|row| (row.events.clone(), row.columns.clone())).unwrap_or_default();
        if let Some(stored) = stored {
            let before = RawJson::of(&stored.session.payment);
            let before = before.map_err(|error| StoreError::corrupt(id.as_str().as_bytes(), error))?;
            StoredEvent::carry_over(&mut events, &before, &json);
        }
        let (scope, is_new) = (names::scope(&effects.scope), stored.is_none());
        if unique.as_ref().is_some_and(|unique| self.is_found(&scope, unique)) {
            return Err(Conflict::LookupUsed.into());
        }
        columns.apply(&effects);
        self.add_effects(&id, &effects, is_new);
        for (_, _, is_unique) in self.change.lookups.iter_mut().filter(|((_, of), ..)| unique.as_ref() == Some(of)) {
            *is_unique = true;
        }
        let is_pending = event.is_some() && self.endpoints.get(&scope).is_some_and(|endpoints| *endpoints > 0);
        if let Some(event) = event {
            if is_pending {
                self.pending.put(event.id.clone(), PendingRow::Added(id.clone(), None));
            }
            let entry = EventEntry { id: event.id.clone(), kind: event.kind.clone(), payment: id.clone() };
            let money = MoneyMove::of(effects.currency, &postings);
            self.change.events.push(EventRecord { scope: effects.scope.clone(), entry, money });
            events.push(StoredEvent::new(event, &json));
        }
        if !postings.is_empty() {
            self.change.postings.push((id.clone(), session.version, postings));
        }
        self.payments.put(id, PaymentRow { session, events, columns });
        Ok(is_pending)
    }

    /// Whether a value finds a payment, as the changes so far leave it.
    fn is_found(&self, scope: &ScopeName, lookup: &Lookup) -> bool {
        let name = (scope.clone(), lookup.clone());
        let added = self.additions.lookups.iter().chain(&self.change.lookups);
        self.found.contains(&name) || added.into_iter().any(|(added, ..)| *added == name)
    }

    /// Adds what a payment's change has to sums, and what a new payment is found by.
    pub(super) fn add_effects(&mut self, id: &PaymentId, effects: &Effects, is_new: bool) {
        let scope = names::scope(&effects.scope);
        let lookups = effects.lookups.iter().map(|lookup| ((scope.clone(), lookup.clone()), id.clone(), false));
        self.change.lookups.extend(lookups);
        if is_new {
            self.add(scope.clone(), names::PAYMENTS.to_owned(), 1);
        }
        for (status, count) in [(effects.status.left(), -1), (effects.status.entered(), 1)] {
            status.into_iter().for_each(|status| self.add(scope.clone(), names::status(status), count));
        }
        for (name, minor) in names::money(effects) {
            self.add(scope.clone(), name, minor);
        }
        if let Some((day, added)) = effects.day {
            *self.change.days.entry((scope, effects.currency.code(), day)).or_default() += added;
        }
    }

    fn delivery(&mut self, mut outgoing: Box<Outgoing>, follows: Follows) -> Result<(), CommitError> {
        let id = outgoing.delivery.id.clone();
        check_follows(self.deliveries.get(&id).map(|row| row.version), follows(outgoing.version))?;
        let corrupt = |error| StoreError::corrupt(id.as_str().as_bytes(), error);
        if !outgoing.is_pending() && self.redacted_up_to.as_ref().is_some_and(|up_to| id <= *up_to) {
            outgoing.redact().map_err(corrupt)?;
        }
        self.deliveries.put(id, DeliveryRow { version: outgoing.version, written: Some(outgoing) });
        Ok(())
    }

    fn store_response(&mut self, new: NewResponse, writes: &[Write]) -> Result<(), CommitError> {
        let NewResponse { key, fingerprint, created_at, body, claim } = new;
        self.check_unused(&key, created_at)?;
        let name = names::idempotency(&key);
        let held = self.idempotency.get(&name).and_then(|row| row.claim.as_ref());
        let claim = match claim {
            ClaimEnd::NotClaimed => held.cloned(),
            ClaimEnd::Held(token) if held.is_some_and(|held| held.token != token) => {
                return Err(Conflict::ClaimLost.into());
            }
            ClaimEnd::Held(_) | ClaimEnd::Any => None,
        };
        // A body that equals the data of this change's event is stored once.
        let event = writes.iter().find_map(|write| {
            let Write::Payment(write) = write else { return None };
            let event = write.event.as_ref().filter(|event| event.data == body)?;
            Some((write.session.payment.id.clone(), event.id.clone()))
        });
        let response = Some(ResponseRow { response: StoredResponse { fingerprint, created_at, body }, event });
        self.idempotency.put(name, IdempotencyRow { response, claim });
        Ok(())
    }

    fn check_unused(&self, key: &IdempotencyKey, now: Timestamp) -> Result<(), Conflict> {
        let stored = self.idempotency.get(&names::idempotency(key)).and_then(|row| row.response.as_ref());
        match stored.filter(|stored| StoredResponse::is_fresh_at(stored.response.created_at, now)) {
            Some(used) => Err(Conflict::IdempotencyKeyUsed(Box::new(used.response.clone()))),
            None => Ok(()),
        }
    }

    fn claim_key(&mut self, key: &IdempotencyKey, claim: KeyClaim) -> Result<(), CommitError> {
        self.check_unused(key, claim.claimed_at)?;
        let name = names::idempotency(key);
        let row = self.idempotency.get(&name);
        match row.and_then(|row| row.claim.as_ref()).filter(|held| held.runs_at(claim.claimed_at)) {
            Some(held) => Err(Conflict::KeyClaimed(Box::new(held.clone())).into()),
            None => {
                let response = row.and_then(|row| row.response.clone());
                self.idempotency.put(name, IdempotencyRow { response, claim: Some(claim) });
                Ok(())
            }
        }
    }

    /// Ends a claim on a key, if it still counts.
    fn release_key(&mut self, key: &IdempotencyKey, token: &ClaimToken) {
        let name = names::idempotency(key);
        let Some(row) =
            self.idempotency.get(&name).filter(|row| row.claim.as_ref().is_some_and(|it| it.token == *token))
        else {
            return;
        };
        match row.response.clone() {
            None => self.idempotency.remove(name),
            response => self.idempotency.put(name, IdempotencyRow { response, claim: None }),
        }
    }

    fn add(&mut self, scope: ScopeName, name: String, value: i128) {
        *self.change.totals.entry((scope, name)).or_default() += value;
    }
}

/// Checks that a record is at this version, or not there if it is `None`.
pub(super) fn check_follows(stored: Option<u64>, after: Option<u64>) -> Result<(), Conflict> {
    if stored == after { Ok(()) } else { Err(Conflict::Stale) }
}

/// Moves the entry of an index column.
fn enter<T: Clone + PartialEq>(column: &mut Option<T>, transition: &Transition<T>) {
    if transition.left().is_some() || transition.entered().is_some() {
        *column = transition.entered().cloned();
    }
}
