//! Checks a whole store.
//!
//! The check derives lists, bitmaps, counts, balances, indexes and the outbox from payments, deliveries and postings, and
//! compares. It reads the records once, in the order of their keys, and looks others up. Only sums stay in memory.

mod deliveries;
mod idempotency;
mod lists;
mod merchants;
mod payments;
mod sums;

use std::{collections::BTreeMap, fmt::Display};

use journaled_tree::{Database, Read, TreeError};
use payments_core::DeliveryId;
use serde::de::DeserializeOwned;

use super::{codec::Records, keys, stored::Stored};
use crate::{
    domain::KeptToken,
    store::{Checked, Finding, StoreError},
};

struct Check<'d> {
    database: &'d Database,
    checked: Checked,
    /// Sums derived from the records, by the keys of the stored sums.
    balances: BTreeMap<Vec<u8>, i128>,
    volumes: BTreeMap<Vec<u8>, (i128, u64)>,
    /// Counts of lists and bitmaps, and the counts that the deliveries imply.
    counts: BTreeMap<Vec<u8>, u64>,
    deliveries: BTreeMap<Vec<u8>, u64>,
}

/// Checks a database that nobody writes to meanwhile. Calls `progress` with the number of records read.
pub(super) fn check(database: &Database, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
    let mut check = Check {
        database,
        checked: Checked::default(),
        balances: BTreeMap::new(),
        volumes: BTreeMap::new(),
        counts: BTreeMap::new(),
        deliveries: BTreeMap::new(),
    };
    for entry in database.range(..) {
        check.checked.records += 1;
        match entry {
            Ok((key, value)) => check.record(&key, &value)?,
            Err(TreeError::Damaged { key: record, what }) => {
                check.checked.findings.push(Finding { record, what: format!("cannot be read: {what}") });
            }
            Err(error) => return Err(error.into()),
        }
        progress(check.checked.records);
    }
    check.sums()?;
    Ok(check.checked)
}

impl Check<'_> {
    fn find(&mut self, key: &[u8], what: impl Display) {
        self.checked.findings.push(Finding { record: key.escape_ascii().to_string(), what: what.to_string() });
    }

    fn expect(&mut self, holds: bool, key: &[u8], what: &str) {
        if !holds {
            self.find(key, what);
        }
    }

    /// Another record, if it exists and can be read. The check reports an unreadable record when it reaches it.
    fn other<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        match self.database.read(key) {
            Err(StoreError::Corrupt { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    fn is_there(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.database.has(key)
    }

    fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        Ok(self.database.get(key)?.is_some_and(|found| *found == *value))
    }

    fn parse<T: DeserializeOwned>(&mut self, key: &[u8], value: &[u8]) -> Option<T> {
        serde_json::from_slice(value).map_err(|error| self.find(key, format_args!("cannot be read: {error}"))).ok()
    }

    /// The parts of a key after its kind; none if the key is not text.
    fn parts(key: &[u8]) -> Vec<&str> {
        std::str::from_utf8(key).map(|text| text.split('/').skip(1).collect()).unwrap_or_default()
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let kind = key.split(|byte| *byte == b'/').next().unwrap_or_default();
        match kind {
            b"payment" => self.payment(key, value),
            b"posting" => self.posting(key, value),
            b"places" => self.leaf(key, value),
            b"marks" => self.marks(key, value),
            b"delivery" => self.delivery(key, value),
            b"outbox" => self.outbox(key),
            b"untold" => self.untold(key, value),
            b"used" => self.used(key, value),
            b"claim" => self.claim(key, value),
            b"responses" => self.responses(key, value),
            b"ends" => self.ends(key, value),
            b"check" => self.gateway_check(key),
            b"unsettled" | b"review" => self.waiting(key),
            b"workspace" | b"workspace-of" | b"key" | b"key-of" | b"app" => self.of_a_merchant(kind, key, value),
            b"endpoint" | b"endpoint-of" => self.endpoint(kind, key, value),
            b"gateway-token" => {
                self.parse::<KeptToken>(key, value);
                Ok(())
            }
            // Sums are compared when all is read.
            b"balance" | b"volume" | b"count" => Ok(()),
            _ if key == keys::REDACTED_UP_TO => {
                self.parse::<DeliveryId>(key, value);
                Ok(())
            }
            _ if [journaled_tree::APPLIED, journaled_tree::COMMITTED_AT, journaled_tree::FORMAT].contains(&key) => {
                self.parse::<u64>(key, value);
                Ok(())
            }
            _ => {
                self.find(key, "is of no kind that this version writes");
                Ok(())
            }
        }
    }

    /// A payment, if it exists and can be read.
    fn stored(&self, id: &str) -> Result<Option<Stored>, StoreError> {
        Ok(id.parse().ok().map(|id| self.other(&keys::session(&id))).transpose()?.flatten())
    }

    /// A record of many entries; empty if it cannot be read.
    fn bytes(&self, key: &[u8]) -> Result<Vec<u8>, StoreError> {
        match self.database.bytes(key) {
            Err(StoreError::Corrupt { .. }) => Ok(Vec::new()),
            outcome => outcome,
        }
    }
}
