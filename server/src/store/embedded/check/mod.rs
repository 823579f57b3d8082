//! Checks a whole store.
//!
//! The check derives lists, bitmaps, counts, balances, indexes and the outbox from payments, deliveries and postings, and
//! compares. It reads the records once, in the order of their keys, and looks others up. Only sums stay in memory.

mod deliveries;
mod events;
mod found;
mod idempotency;
mod lists;
mod merchants;
mod payments;
mod sums;

use std::{borrow::Cow, fmt::Display, str::FromStr};

use journaled_tree::{Database, Read, TreeError};
use payments_core::{DeliveryId, EventId, PaymentId};
use serde::de::DeserializeOwned;

use self::sums::Sums;
use super::{
    keys,
    stored::{Stored, read_event},
};
use crate::{
    domain::{LogPart, StoredToken},
    store::{Checked, Finding, Migration, StoreError},
};

struct Check<'d> {
    database: &'d Database,
    checked: Checked,
    /// Derived from the records so far.
    sums: Sums,
}

/// Checks a database that nobody writes to meanwhile. Calls `progress` with the number of records read.
pub(super) fn check(database: &Database, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
    let mut check = Check { database, checked: Checked::default(), sums: Sums::default() };
    for entry in database.range(..) {
        match entry {
            Ok((key, value)) => {
                check.checked.records += u64::from(keys::is_record(&key));
                check.record(&key, &value)?;
            }
            Err(TreeError::Damaged { key: record, what }) => {
                check.checked.records += 1;
                check.checked.findings.push(Finding { record, what: format!("cannot be read: {what}") });
            }
            Err(error) => return Err(error.into()),
        }
        progress(check.checked.records);
    }
    check.compare_sums()?;
    Ok(check.checked)
}

impl Check<'_> {
    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        const WAITS: &str = "lists a payment that does not wait for anybody";
        let kind = key.split(|byte| *byte == b'/').next().unwrap_or_default();
        match kind {
            b"payment" => self.payment(key, value)?,
            b"posting" => self.posting(key, value)?,
            b"places" | b"marks" => match keys::name_and_number(&[kind, b"/"].concat(), key) {
                Some((name, number)) if kind == b"places" => self.leaf(key, value, name, number)?,
                Some((name, number)) => self.block(key, value, name, number)?,
                None => self.find(key, "is no record of a list or bitmap"),
            },
            b"ends" => self.expiries(key, value)?,
            b"check" => self.gateway_check(key)?,
            b"unsettled" => {
                let stored = self.stored(part(key, 1))?;
                self.expect(stored.is_some_and(|stored| stored.session.needs_manual_settlement()), key, WAITS);
            }
            b"review" => {
                let stored = self.stored(part(key, 1))?;
                self.expect(stored.is_some_and(|stored| stored.session.needs_manual_review()), key, WAITS);
            }
            b"found" => self.found(key, value)?,
            b"event-at" => self.event_places(key, value)?,
            b"delivery" => self.delivery(key, value)?,
            b"delivery-of" => self.deliveries_of(key, value)?,
            b"outbox" => self.outbox(key, value)?,
            b"retry" => self.retry(key)?,
            b"untold" => self.pending_event(key, value)?,
            b"used" => self.used(key, value)?,
            b"claim" => self.claim(key, value)?,
            b"responses" => self.responses(key, value)?,
            b"workspace" | b"workspace-of" | b"key" | b"key-of" | b"app" | b"endpoint" | b"endpoint-of" => {
                let agrees = self.agrees(kind, key, value)?;
                self.expect(agrees, key, "and its other half do not agree");
            }
            b"log" => {
                let part = self.parse::<LogPart>(key, value);
                self.expect(part.is_none_or(|part| keys::log_part(&part.key()) == key), key, "is not in its place");
            }
            b"gateway-token" => self.parses::<StoredToken>(key, value),
            // Sums are compared when all is read.
            b"balance" | b"volume" | b"day" | b"count" => {}
            _ if key == keys::REDACTED_UP_TO => self.parses::<DeliveryId>(key, value),
            _ if key == keys::MIGRATION => self.parses::<Migration>(key, value),
            _ if [journaled_tree::APPLIED, journaled_tree::COMMITTED_AT, journaled_tree::FORMAT].contains(&key) => {
                self.parses::<u64>(key, value);
            }
            _ => self.find(key, "is of no kind that this version writes"),
        }
        Ok(())
    }

    fn find(&mut self, key: &[u8], what: impl Display) {
        self.checked.findings.push(Finding { record: key.escape_ascii().to_string(), what: what.to_string() });
    }

    fn expect(&mut self, holds: bool, key: &[u8], what: impl Display) {
        if !holds {
            self.find(key, what);
        }
    }

    fn parse<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8]) -> Option<T> {
        serde_json::from_slice(value).map_err(|error| self.find(key, format_args!("cannot be read: {error}"))).ok()
    }

    fn parses<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8]) {
        self.parse::<T>(key, value);
    }

    /// Another record, if it exists and can be read. The check reports an unreadable record when it reaches it.
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, StoreError> {
        match self.database.get(key) {
            Err(TreeError::Damaged { .. }) => Ok(None),
            found => Ok(found?),
        }
    }

    fn other<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        Ok(self.get(key)?.and_then(|json| serde_json::from_slice(&json).ok()))
    }

    /// The record with an id, if both are valid.
    fn named<I: FromStr, T: DeserializeOwned>(
        &self,
        id: Option<&str>,
        key: fn(&I) -> Vec<u8>,
    ) -> Result<Option<T>, StoreError> {
        id.and_then(|id| id.parse().ok()).map_or(Ok(None), |id| self.other(&key(&id)))
    }

    fn stored(&self, payment: Option<&str>) -> Result<Option<Stored>, StoreError> {
        let key = payment.and_then(|id| Some(keys::session(&id.parse().ok()?)));
        let Some(key) = key else { return Ok(None) };
        Ok(self.get(&key)?.and_then(|record| Stored::parse(&key, &record).ok()))
    }

    fn has_event(&self, payment: &PaymentId, id: &EventId) -> Result<bool, StoreError> {
        match read_event(self.database, b"", payment, id) {
            Err(StoreError::Corrupt { .. }) => Ok(false),
            found => found.map(|_| true),
        }
    }
}

/// A part of a key after its kind, which is part 0.
fn part(key: &[u8], nth: usize) -> Option<&str> {
    str::from_utf8(key).ok()?.split('/').nth(nth)
}
