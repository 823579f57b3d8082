//! Payments: their state, their indexes, their events and their postings.

use journaled_tree::Read;
use payments_core::{EventKind, Payment, Posting};

use super::{
    super::{
        codec,
        keys::{self, StatusBitmap},
        packed,
        stored::{DataHead, Stored},
    },
    Check, part,
};
use crate::{
    domain::{expected_events, expected_postings, faults, volume_of},
    store::{StoreError, StoredEvent},
};

impl Check<'_> {
    pub(super) fn payment(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.checked.payments += 1;
        let Some(Stored { position, session, events }) = self.parse(key, value) else { return Ok(()) };
        let (payment, scope) = (&session.payment, session.scope());
        self.expect(key == keys::session(&payment.id), key, "holds another payment");
        for fault in faults(&session) {
            self.find(key, fault);
        }
        let is_at_position = self.payment_at(&scope, position)?.as_deref() == Some(payment.id.as_str());
        self.expect(is_at_position, key, format_args!("is not at its position {position} in the list of payments"));
        let block = self.get(&StatusBitmap::of(&scope, &payment.status).block(position))?.unwrap_or_default();
        let is_marked = packed::is_set(&block, position % keys::BLOCK);
        self.expect(is_marked, key, format_args!("has no bit at its position {position} for its status"));
        if let Some(at) = session.unattempted_expiry() {
            let expiries = self.get(&keys::bucket(keys::EXPIRIES, at))?.unwrap_or_default();
            let has_end = packed::has_line(&expiries, payment.id.as_str());
            self.expect(has_end, key, "is open and will never expire: its session's end is missing");
        }
        let review = session.needs_manual_review().then(|| keys::manual_review(&payment.id));
        let settlement = session.needs_manual_settlement().then(|| keys::manual_settlement(&payment.id));
        let check = session.check_at.map(|at| keys::check(at, &payment.id));
        for (other, missing) in [
            (Some(keys::workspace_of(&payment.developer_id)), "belongs to a developer that is not there"),
            (check, "is to be asked for at its gateway and will never be"),
            (settlement, "waits for its refund to be settled and is not among those that do"),
            (review, "waits for a person and is not among those that do"),
        ] {
            let is_there = other.map_or(Ok(true), |other| self.get(&other).map(|found| found.is_some()))?;
            self.expect(is_there, key, missing);
        }
        self.events(key, payment, &events);
        self.postings_of(key, payment)
    }

    /// Each expected event exists once, and every event is about this payment.
    fn events(&mut self, key: &[u8], payment: &Payment, events: &[StoredEvent]) {
        for data in events.iter().filter_map(|event| event.data.as_ref()) {
            let Some(about) = self.parse::<DataHead>(key, data.as_str().as_bytes()) else { continue };
            let is_about_it = about.payment().as_deref() == Some(payment.id.as_str());
            self.expect(is_about_it, key, "has an event about another payment");
        }
        let times = |kind: &EventKind| events.iter().filter(|event| event.event == *kind).count();
        for (kind, is_expected) in expected_events(payment) {
            let (found, expected) = (times(&kind), usize::from(is_expected));
            self.expect(
                found == expected,
                key,
                format_args!("has {found} events {kind}, and its state comes to {expected}"),
            );
        }
    }

    /// A payment's postings are those of its state.
    fn postings_of(&mut self, key: &[u8], payment: &Payment) -> Result<(), StoreError> {
        let mut found = Vec::new();
        for entry in self.database.prefix(&keys::postings_of(&payment.id)) {
            let (at, json) = entry?;
            let postings: Vec<Posting> = codec::parse(&at, &json).unwrap_or_default();
            found.push(postings.iter().map(|posting| (posting.account, i128::from(posting.minor))).collect::<Vec<_>>());
        }
        let is_expected = found == expected_postings(payment);
        self.expect(
            is_expected,
            key,
            format_args!("is {}, and its postings are not those of that", payment.raw_status),
        );
        Ok(())
    }

    /// The postings of a change sum to zero, and their payment exists. Adds them to the derived balances and volumes.
    pub(super) fn posting(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(postings) = self.parse::<Vec<Posting>>(key, value) else { return Ok(()) };
        let sum: i128 = postings.iter().map(|posting| i128::from(posting.minor)).sum();
        self.expect(sum == 0, key, format_args!("its postings sum to {sum}, not to zero"));
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
