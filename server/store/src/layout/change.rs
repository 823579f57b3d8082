//! Turns the writes of a change into records.

use std::borrow::Cow;

use payments_core::{Booking, Currency, DeliveryId, EventId, LedgerAccount, RawJson, Timestamp, WebhookId};
use serde::de::DeserializeOwned;

use super::{
    booking::{Listed, MoneyOf, StoredBooking, StoredMoney, balance_of},
    books::fees_of,
    delivery::StoredDelivery,
    draft::Draft,
    entry::{Record, day_number},
    event::{Pending, StoredEvent},
    keys,
    limits::OF_ENDPOINTS,
    list::List,
    merchants::{ENDPOINTS, KeyOf, TokenOf, Versioned},
    payment::StoredPayment,
};
use crate::{
    BookingWrite, Change, CommitError, Committed, Conflict, EventWrite, PaymentWrite, StoreError, Write,
    domain::{BooksEntry, BothBalances, Endpoint, MoneyMove, Outgoing, Scope, Session, held_day},
};

impl Draft<'_> {
    /// Writes a change, if its conditions hold.
    pub(super) fn apply(&mut self, change: &Change) -> Result<Committed, CommitError> {
        let keep = change.idempotency.as_ref();
        let mut outcome = keep.map_or(Ok(()), |keep| self.keep(keep, &change.writes)).map(|()| false);
        // Run the writes after a failed one too, so that a place learns from one run which keys they read.
        self.trail = change.audit.as_ref().map(|_| Vec::new());
        for write in &change.writes {
            let written = self.write(write);
            outcome = outcome.and_then(|has_pending_event| Ok(written? | has_pending_event));
        }
        if let Some(audit) = &change.audit {
            let changes = self.trail.take().unwrap_or_default();
            self.put_next(&audit.with(changes))?;
        }
        outcome.map(|has_pending_event| Committed { has_pending_event })
    }

    /// Returns whether an event became pending.
    fn write(&mut self, write: &Write) -> Result<bool, CommitError> {
        match write {
            Write::Workspace(it) => self.put_next(it)?,
            Write::ApiKey(hash, key) => {
                let of = |key| KeyOf { hash: hash.clone(), key };
                let before = self.json(&keys::api_key(hash))?.map(of);
                self.follow(before, &of((**key).clone()))?;
            }
            Write::Payment(write) => return self.payment(write),
            Write::Payout(write) => return self.payout(write),
            Write::Delivery(it) => self.delivery(it)?,
            Write::EndpointAdded { endpoint, at_most } => self.add_endpoint(endpoint, *at_most)?,
            Write::EndpointChanged(it) => self.put_next(&**it)?,
            Write::EndpointRemoved(it) => self.remove_versioned(&**it)?,
            Write::GatewayToken(gateway, token) => {
                let of = |token| TokenOf { gateway: gateway.to_string(), token };
                let before = self.json(&keys::gateway_token(gateway))?.map(of);
                self.follow(before, &of(token.clone()))?;
            }
            Write::App(it) => self.put_next(&**it)?,
            Write::Destination(it) => self.put_next(&**it)?,
            Write::KeyClaimed(it) => self.claim_key(&it.0, &it.1)?,
            Write::KeyReleased(key, token) => self.release_key(key, token)?,
            Write::FannedOut { event, after, .. } => self.fanned_out(event, after.as_ref())?,
            Write::DeliveryChanged(it) | Write::DeliveryResent(it) => self.delivery_changed(it)?,
            Write::LogPart(it) => self.put_next(&**it)?,
            Write::SettledRow(it) => self.put_next(&**it)?,
            Write::Books(it) => self.books(it)?,
            Write::Coverage(it) => self.put_next(&**it)?,
            Write::GatewayPause(it) => self.put_next(&**it)?,
            Write::PlatformKey(it) => self.put_next(&**it)?,
            Write::Notices(it) => self.put_next(&**it)?,
            Write::PersonSession(it) => self.put_next(&**it)?,
            Write::PersonSessionRemoved(it) => self.remove_versioned(&**it)?,
            Write::Migration(it) => self.put_next(&**it)?,
        }
        Ok(false)
    }

    /// Writes a record whose version must follow the stored one.
    fn put_next<R: Record + Versioned + DeserializeOwned>(&mut self, record: &R) -> Result<(), CommitError> {
        let before = self.json(&record.key())?;
        self.follow(before, record)
    }

    /// Removes a record that has the stored version.
    fn remove_versioned<R: Record + Versioned + DeserializeOwned>(&mut self, record: &R) -> Result<(), CommitError> {
        match self.json::<R>(&record.key())? {
            Some(stored) if stored.version() == record.version() => self.delete(&stored),
            _ => Err(Conflict::Stale.into()),
        }
    }

    fn follow<R: Record + Versioned>(&mut self, before: Option<R>, record: &R) -> Result<(), CommitError> {
        check_follows(before.as_ref().map(Versioned::version), before_of(record.version()))?;
        self.replace(before.as_ref(), record)
    }

    fn books(&mut self, entry: &BooksEntry) -> Result<(), CommitError> {
        self.put_next(entry)?;
        let Some((head, fees)) = fees_of(entry) else { return Ok(()) };
        let balance_minor = self.head(&head)?.sum(&fees);
        if balance_minor < 0 { Err(Conflict::Overdrawn { balance_minor }.into()) } else { Ok(()) }
    }

    fn add_endpoint(&mut self, endpoint: &Endpoint, at_most: usize) -> Result<(), CommitError> {
        let head = self.head(&keys::head_of_scope(&endpoint.scope()))?;
        let count = head.sum(ENDPOINTS);
        let own = head.sums.get(OF_ENDPOINTS).and_then(|it| usize::try_from(*it).ok());
        let at_most = own.map_or(at_most, |own| own.min(at_most));
        if usize::try_from(count).unwrap_or_default() >= at_most {
            return Err(Conflict::TooManyEndpoints { at_most }.into());
        }
        self.put_next(endpoint)
    }

    /// Returns whether its event became pending.
    fn payment(&mut self, write: &PaymentWrite) -> Result<bool, CommitError> {
        let PaymentWrite { session, json, booking, event, without_event, unique, overdraft, erases } = write;
        let (scope, key) = (session.scope(), keys::payment(&session.payment.id));
        let before = match self.get(&key)? {
            Some(record) => Some(StoredPayment::parse(&key, &record)?),
            None => None,
        };
        check_follows(before.as_ref().map(|it| it.session.version), before_of(session.version))?;
        if let Some(unique) = unique
            && self.count(&List::found(&scope, unique))? > 0
        {
            return Err(Conflict::LookupUsed.into());
        }
        // An erasure changes the data of all events in the same way.
        let keeps_data =
            event.is_none() && (erases.is_some() || before.as_ref().is_some_and(|before| *before.json == *json));
        let is_limited = match &before {
            Some(it) => it.is_limited,
            None => self.check_limits(&scope, &session.payment)?,
        };
        let (position, mut events, mut bookings, mut is_data) = match &before {
            Some(it) => (it.position, it.events.clone(), it.bookings.clone(), it.is_data && keeps_data),
            None => (self.count(&List::payments(&scope))?, Vec::new(), Vec::new(), false),
        };
        let event = match event {
            Some(event) => {
                is_data = event.data == *json;
                events.push(event.id.clone());
                Some(self.new_event(write, &scope, event, is_data)?)
            }
            None if booking.is_none() => None,
            None => return Err(StoreError::corrupt(&key, "its change has a booking and no event").into()),
        };
        bookings.extend(without_event.iter().map(|it| it.id.clone()));
        let (session, json) = (Cow::Borrowed(session), Cow::Borrowed(json));
        let after = StoredPayment { session, json, position, events, bookings, is_data, is_limited };
        self.replace(before.as_ref(), &after)?;
        if let Some(event) = &event {
            self.replace(None, event)?;
        }
        for BookingWrite { id, created_at, booking } in without_event {
            let money = self.new_money(&money_of(&after.session, &scope), *booking)?;
            let subject = after.session.payment.id.clone().into();
            let (id, created_at, scope) = (id.clone(), *created_at, scope.clone());
            self.replace(None, &StoredBooking { id, created_at, scope, subject, money })?;
        }
        if let (Some(policy), Some(before)) = (erases, &before) {
            before.events.iter().try_for_each(|event| self.erase_event(event, *policy))?;
        }
        if let Some(overdraft) = overdraft {
            let funds = self.funds(&scope, after.session.payment.currency, &[])?;
            if funds.balance - funds.under_way < -i128::from(overdraft.as_minor()) {
                return Err(Conflict::OverdraftExceeded.into());
            }
        }
        // This comes last because it fails while the last event is unknown. By then the place has seen all other reads.
        if let Some(before) = before.filter(|before| before.is_data && !keeps_data) {
            self.write_out(&before)?;
        }
        Ok(event.is_some_and(|event| event.pending.is_some()))
    }

    /// Writes the data of a payment's last event to the event, because the payment changes.
    fn write_out(&mut self, payment: &StoredPayment<'_>) -> Result<(), CommitError> {
        let Some(id) = payment.events.last() else { return Ok(()) };
        let key = keys::event(id);
        let missing = || StoreError::corrupt(&key, "the last event of its payment is not there");
        let event: StoredEvent = self.json(&key)?.ok_or_else(missing)?;
        let event = StoredEvent { data: Some(payment.json.clone().into_owned()), ..event };
        self.put(key.clone(), event.text().map_err(|error| StoreError::corrupt(&key, error))?);
        Ok(())
    }

    fn new_event(
        &mut self,
        write: &PaymentWrite,
        scope: &Scope,
        event: &EventWrite,
        is_data: bool,
    ) -> Result<StoredEvent, CommitError> {
        let PaymentWrite { session, booking, .. } = write;
        let EventWrite { id, kind, created_at, data } = event;
        let payment = &session.payment;
        let money = booking.map(|booking| self.new_money(&money_of(session, scope), booking)).transpose()?;
        let is_pending = self.head(&keys::head_of_scope(scope))?.sum(ENDPOINTS) > 0;
        Ok(StoredEvent {
            id: id.clone(),
            event: kind.clone(),
            created_at: *created_at,
            scope: scope.clone(),
            subject: payment.id.clone().into(),
            version: session.version,
            data: (!is_data).then(|| data.clone()),
            position: self.count(&List::events(scope))?,
            money,
            pending: is_pending.then_some(Pending { after: None }),
        })
    }

    pub(super) fn new_money(&mut self, of: &MoneyOf<'_>, booking: Booking) -> Result<StoredMoney, CommitError> {
        let MoneyOf { scope, currency, gateway, day, held_day } = *of;
        let listed = match MoneyMove::of(currency, booking) {
            Some(moved) => {
                let head = self.head(&keys::head_of_scope(scope))?;
                let balance = |currency| head.sum(&balance_of(currency, LedgerAccount::Merchant));
                let before = BothBalances { bdt: balance(Currency::Bdt), usd: balance(Currency::Usd) };
                Some(Listed::new(self.count(&List::transactions(scope))?, &moved, before))
            }
            None => None,
        };
        Ok(StoredMoney { currency, gateway, booking, day, held_day, listed })
    }

    /// Records that fan-out has handled the endpoints up to `after`, or all of them if it is `None`.
    fn fanned_out(&mut self, event: &EventId, after: Option<&WebhookId>) -> Result<(), CommitError> {
        let stored: Option<StoredEvent> = self.json(&keys::event(event))?;
        let Some(before) = stored.filter(|stored| stored.pending.is_some()) else { return Ok(()) };
        let pending = after.map(|after| Pending { after: Some(after.clone()) });
        let after = StoredEvent { pending, ..before.clone() };
        self.replace(Some(&before), &after)
    }

    /// The data of an event; `None` if it is not there.
    pub(super) fn data_of(&mut self, event: &EventId) -> Result<Option<RawJson>, CommitError> {
        let Some(stored) = self.json::<StoredEvent>(&keys::event(event))? else { return Ok(None) };
        if stored.data.is_some() {
            return Ok(stored.data);
        }
        let Some(key) = stored.subject.payment().map(keys::payment) else { return Ok(None) };
        let Some(record) = self.get(&key)? else { return Ok(None) };
        Ok(StoredPayment::parse(&key, &record)?.data_of(event))
    }

    fn delivery(&mut self, outgoing: &Outgoing) -> Result<(), CommitError> {
        let key = keys::delivery(&outgoing.delivery.id);
        let stored: Option<StoredDelivery> = self.json(&key)?;
        check_follows(stored.map(|it| it.delivery.version), before_of(outgoing.version))?;
        let mut positions = [0; 3];
        for (list, position) in StoredDelivery::lists(outgoing).zip(&mut positions) {
            *position = self.count(&list)?;
        }
        let delivery = without_payload(outgoing)?.into_owned();
        self.replace(None, &StoredDelivery { positions, is_passed: false, delivery })
    }

    fn delivery_changed(&mut self, outgoing: &Outgoing) -> Result<(), CommitError> {
        let key = keys::delivery(&outgoing.delivery.id);
        let stored: Option<StoredDelivery> = self.json(&key)?;
        let Some(before) = stored.filter(|it| before_of(outgoing.version) == Some(it.delivery.version)) else {
            return Err(Conflict::Stale.into());
        };
        let delivery = if before.is_passed && !outgoing.is_pending() {
            let mut ended = outgoing.clone();
            ended.redact().map_err(|error| StoreError::corrupt(&key, error))?;
            ended
        } else {
            without_payload(outgoing)?.into_owned()
        };
        let after = StoredDelivery { delivery, ..before.clone() };
        self.replace(Some(&before), &after)
    }

    /// Redacts the bodies of a delivery that was made before `before`, if there is such a time. `whole` is the delivery with its
    /// payload. Returns whether it was not redacted yet.
    pub(super) fn redact(&mut self, whole: &Outgoing, before: Option<Timestamp>) -> Result<bool, CommitError> {
        let id: &DeliveryId = &whole.delivery.id;
        let key = keys::delivery(id);
        let Some(stored) = self.json::<StoredDelivery>(&key)?.filter(|it| !it.is_passed) else { return Ok(false) };
        if before.is_some_and(|before| stored.delivery.delivery.created_at >= before) {
            return Ok(false);
        }
        let mut after = StoredDelivery { is_passed: true, ..stored.clone() };
        after.delivery.delivery.response_body = None;
        // A pending delivery keeps its payload until it ends.
        if !stored.delivery.is_pending() {
            after.delivery.delivery.payload = whole.delivery.payload.clone();
            after.delivery.redact().map_err(|error| StoreError::corrupt(&key, error))?;
        }
        self.replace(Some(&stored), &after)?;
        Ok(true)
    }
}

fn money_of<'s>(session: &Session, scope: &'s Scope) -> MoneyOf<'s> {
    let payment = &session.payment;
    MoneyOf {
        scope,
        currency: payment.currency,
        gateway: session.attempt.as_ref().map(|attempt| attempt.gateway),
        day: day_number(payment.created_at),
        held_day: payment.paid_at.map(held_day),
    }
}

/// The version that must be stored before `version`; `None` if there must be no record.
pub(super) fn before_of(version: u64) -> Option<u64> {
    version.checked_sub(1)
}

/// Checks that the stored version is `after`. `None` stands for no record.
pub(super) fn check_follows(stored: Option<u64>, after: Option<u64>) -> Result<(), CommitError> {
    if stored == after || planted!(VersionIgnored) { Ok(()) } else { Err(Conflict::Stale.into()) }
}

/// A delivery as it is stored: without the payload that its event has.
pub(super) fn without_payload(outgoing: &Outgoing) -> Result<Cow<'_, Outgoing>, StoreError> {
    if outgoing.event.is_none() {
        return Ok(Cow::Borrowed(outgoing));
    }
    let mut stored = outgoing.clone();
    let empty = RawJson::of(&serde_json::Map::new());
    stored.delivery.payload =
        empty.map_err(|error| StoreError::corrupt(outgoing.delivery.id.as_str().as_bytes(), error))?;
    Ok(Cow::Owned(stored))
}
