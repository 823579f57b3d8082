//! Payments: their state, their indexes, their events and their postings.

use payments_core::Posting;

use super::{
    super::{
        keys::{self, StatusBitmap},
        packed,
        stored::{Parts, Stored},
    },
    Check, part,
};
use crate::{
    domain::{effects, faults, owner_of, volume_of},
    store::{
        StoreError,
        invariants::{event_faults, money_of_events, posting_fault, sum_fault},
    },
};

impl Check<'_> {
    pub(super) fn payment(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.checked.payments += 1;
        let parts = match Parts::of(key, value).and_then(|parts| Ok((Stored::of(&parts)?, parts))) {
            Ok(parts) => parts,
            Err(error) => {
                self.find(key, error);
                return Ok(());
            }
        };
        let (Stored { position, session, events }, parts) = parts;
        let (payment, scope) = (&session.payment, session.scope());
        self.expect(parts.is_of(&scope), key, "names another scope than its payment");
        let is_served = serde_json::to_string(payment).is_ok_and(|json| json == parts.payment);
        self.expect(is_served, key, "holds a payment that would be written otherwise");
        self.expect(key == keys::session(&payment.id), key, "holds another payment");
        for fault in faults(&session) {
            self.find(key, fault);
        }
        let is_at_position = self.payment_at(&scope, position)?.as_deref() == Some(payment.id.as_str());
        self.expect(is_at_position, key, format_args!("is not at its position {position} in the list of payments"));
        let block = self.get(&StatusBitmap::of(&scope, &payment.status).block(position))?.unwrap_or_default();
        let is_marked = packed::is_set(&block, position % keys::BLOCK);
        self.expect(is_marked, key, format_args!("has no bit at its position {position} for its status"));
        self.is_found(key, &session, position)?;
        if let Some(at) = session.unattempted_expiry() {
            let expiries = self.get(&keys::bucket(keys::EXPIRIES, at))?.unwrap_or_default();
            let has_end = packed::has_line(&expiries, payment.id.as_str());
            self.expect(has_end, key, "is open and will never expire: its session's end is missing");
        }
        let review = session.needs_manual_review().then(|| keys::manual_review(&payment.id));
        let settlement = session.needs_manual_settlement().then(|| keys::manual_settlement(&payment.id));
        let check = session.check_at.map(|at| keys::check(at, &payment.id));
        for (other, missing) in [
            (Some(keys::workspace_of(&owner_of(&payment.developer_id))), "belongs to a developer that is not there"),
            (check, "is to be asked for at its gateway and will never be"),
            (settlement, "waits for its refund to be settled and is not among those that do"),
            (review, "waits for a person and is not among those that do"),
        ] {
            let is_there = other.map_or(Ok(true), |other| self.get(&other).map(|found| found.is_some()))?;
            self.expect(is_there, key, missing);
        }
        for fault in event_faults(payment, &events) {
            self.find(key, fault);
        }
        let postings = self.postings(&payment.id)?;
        for (event, money) in events.iter().zip(money_of_events(payment.currency, &events, &postings)) {
            let place = self.place_of(&event.id)?.filter(|place| place.scope == scope);
            let (is_listed, moves_money) = (place.is_some(), place.is_some_and(|place| place.transaction.is_some()));
            self.expect(is_listed, key, format_args!("has the event {}, which is not in the list of events", event.id));
            let what = format_args!("has the event {}, which is not a transaction as its postings say", event.id);
            self.expect(moves_money == money.is_some(), key, what);
        }
        if let Some(fault) = posting_fault(payment, &postings) {
            self.find(key, fault);
        }
        if let Some((day, added)) = effects(None, &session, &postings.concat()).day {
            *self.sums.days.entry(keys::day(&scope, payment.currency, day)).or_default() += added;
        }
        Ok(())
    }

    /// The postings of a change sum to zero, and their payment exists. Adds them to the derived balances and volumes.
    pub(super) fn posting(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(postings) = self.parse::<Vec<Posting>>(key, value) else { return Ok(()) };
        if let Some(fault) = sum_fault(&postings) {
            self.find(key, fault);
        }
        let Some(Stored { session, .. }) = self.stored(part(key, 1))? else {
            self.find(key, "belongs to a payment that is not there");
            return Ok(());
        };
        let (scope, currency) = (session.scope(), session.payment.currency);
        for Posting { account, minor } in &postings {
            *self.sums.balances.entry(keys::balance(&scope, currency, *account)).or_default() += i128::from(*minor);
        }
        if let Some(minor) = volume_of(&postings) {
            let (volume, payments) = self.sums.volumes.entry(keys::volume(&scope, currency)).or_default();
            *volume += minor;
            *payments += 1;
        }
        Ok(())
    }
}
