//! Payments: their state, their indexes, their events and their postings.

use journaled_tree::Read;
use payments_core::{EventKind, Payment, Posting};
use serde::Deserialize;

use super::{
    super::{
        codec,
        keys::{self, StatusBitmap},
        packed,
        stored::{Event, Stored},
    },
    Check,
};
use crate::{
    domain::{Session, expected_events, expected_postings, faults, volume_of},
    store::StoreError,
};

/// The part of an event's data that is compared.
#[derive(Deserialize)]
struct DataHead {
    id: Option<String>,
    payment: Option<Box<DataHead>>,
}

impl Check<'_> {
    pub(super) fn payment(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.checked.payments += 1;
        let Some(Stored { place, session, events }) = self.parse::<Stored>(key, value) else { return Ok(()) };
        let payment = &session.payment;
        self.expect(key == keys::session(&payment.id), key, "holds another payment");
        for fault in faults(&session) {
            self.find(key, fault);
        }
        let scope = session.scope();
        if self.at(&scope, place)?.as_deref() != Some(payment.id.as_str()) {
            self.find(key, format_args!("is not at its place {place} in the list of payments"));
        }
        let block = self.bytes(&StatusBitmap::of(&scope, &payment.status).block(place))?;
        if !packed::is_set(&block, place % keys::BLOCK) {
            self.find(key, format_args!("is not marked at its place {place} among those of its status"));
        }
        let is_owned = self.is_there(&keys::workspace_of(&payment.developer_id))?;
        self.expect(is_owned, key, "belongs to a developer that is not there");

        let has_end = packed::has_line(&self.bytes(&keys::expiry(session.expires_at))?, payment.id.as_str());
        self.expect(
            has_end || session.expires_by_itself_at().is_none(),
            key,
            "is open and will never expire: its session's end is missing",
        );
        if let Some(at) = session.check_at {
            let has_check = self.is_there(&keys::check(at, &payment.id))?;
            self.expect(has_check, key, "is to be asked for at its gateway and will never be");
        }
        if session.needs_manual_settlement() {
            let is_listed = self.is_there(&keys::manual_settlement(&payment.id))?;
            self.expect(is_listed, key, "waits for its refund to be settled and is not among those that do");
        }
        if session.needs_manual_review() {
            let is_listed = self.is_there(&keys::manual_review(&payment.id))?;
            self.expect(is_listed, key, "waits for a person and is not among those that do");
        }
        self.events(key, payment, &events);
        self.ledger_of(key, &session)
    }

    /// Each expected event exists once, and every event is about this payment.
    pub(super) fn events(&mut self, key: &[u8], payment: &Payment, events: &[Event]) {
        for event in events {
            let Some(data) = &event.data else { continue };
            let Some(data) = self.parse::<DataHead>(key, data.as_str().as_bytes()) else { continue };
            let about = data.id.or_else(|| data.payment.and_then(|payment| payment.id));
            self.expect(about.as_deref() == Some(payment.id.as_str()), key, "has an event about another payment");
        }
        let times = |kind: &EventKind| events.iter().filter(|event| event.event == *kind).count();
        for (kind, is_owed) in expected_events(payment) {
            let (found, owed) = (times(&kind), usize::from(is_owed));
            if found != owed {
                self.find(key, format_args!("has {found} events {kind}, and its state comes to {owed}"));
            }
        }
    }

    /// A payment's postings are those of its state. Adds them to the derived balances.
    pub(super) fn ledger_of(&mut self, key: &[u8], session: &Session) -> Result<(), StoreError> {
        let payment = &session.payment;
        let mut moves = Vec::new();
        for entry in self.database.prefix(&keys::postings_of(&payment.id)) {
            let (at, json) = entry?;
            if let Ok(postings) = codec::parse::<Vec<Posting>>(&at, &json) {
                moves.push(postings);
            }
        }
        let found = moves.iter().map(|postings| {
            postings.iter().map(|posting| (posting.account, i128::from(posting.minor))).collect::<Vec<_>>()
        });
        if !expected_postings(payment).into_iter().eq(found) {
            self.find(key, format_args!("is {}, and its postings are not those of that", payment.raw_status));
        }
        let scope = session.scope();
        for postings in &moves {
            for posting in postings {
                let at = keys::balance(&scope, payment.currency, posting.account);
                *self.balances.entry(at).or_default() += i128::from(posting.minor);
            }
            if let Some(minor) = volume_of(postings) {
                let volume = self.volumes.entry(keys::volume(&scope, payment.currency)).or_default();
                *volume = (volume.0 + minor, volume.1 + 1);
            }
        }
        Ok(())
    }

    pub(super) fn posting(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(postings) = self.parse::<Vec<Posting>>(key, value) else { return Ok(()) };
        let sum: i128 = postings.iter().map(|posting| i128::from(posting.minor)).sum();
        if sum != 0 {
            self.find(key, format_args!("its postings sum to {sum}, not to zero"));
        }
        let payment = Self::parts(key).first().and_then(|id| id.parse().ok());
        let is_owned = payment.map(|id| self.is_there(&keys::session(&id))).transpose()?.unwrap_or_default();
        self.expect(is_owned, key, "belongs to a payment that is not there");
        Ok(())
    }
}
