//! Checks a whole database.
//!
//! The check trusts the bodies of payments, deliveries and postings, derives columns, sums and references from them, and
//! compares. It reads each table once, in the order of its key. Only sums stay in memory.

mod days;
mod deliveries;
mod found;
mod idempotency;
mod payments;
mod records;
mod sums;

use std::{collections::BTreeMap, fmt, fmt::Display};

use payments_core::EventId;
use tokio_postgres::{Row, types::ToSql};

use super::{
    load::{LoadError, payment_body},
    snapshot::PostgresSnapshot,
    sqlstate::store_error,
};
use crate::{
    domain::DayTotals,
    store::{Checked, Finding, Result, StoreError},
};

struct Check<'c> {
    snapshot: &'c PostgresSnapshot,
    progress: &'c mut dyn FnMut(u64),
    checked: Checked,
    /// The sums of money that the postings come to, by developer, environment and name.
    money: BTreeMap<(String, String, String), i128>,
    /// What the payments of each day come to, by developer, environment, currency and day.
    days: BTreeMap<String, DayTotals>,
}

/// A table's rows, and the check of one.
type Table = (&'static str, fn(&mut Check<'_>, &Row) -> Result<()>);

/// Checks every row. Calls `progress` with the number of rows read.
pub(super) fn check(snapshot: &PostgresSnapshot, progress: &mut dyn FnMut(u64)) -> Result<Checked> {
    const TABLES: [Table; 15] = [
        (records::RECORDS, |check, row| check.record(row)),
        (records::ENDPOINT_COUNTS, |check, row| check.endpoint_count(row)),
        (payments::PAYMENTS, |check, row| check.payment(row)),
        (payments::POSTINGS_OF_NONE, |check, row| check.posting_of_none(row)),
        (payments::EVENTS, |check, row| check.listed_event(row)),
        (found::LOOKUPS, |check, row| check.lookup(row)),
        (payments::CHECKPOINTS, |check, row| check.checkpoint(row)),
        (idempotency::RESPONSES_AND_CLAIMS, |check, row| check.idempotency(row)),
        (deliveries::PENDING_EVENTS, |check, row| check.pending_event(row)),
        (deliveries::DELIVERIES, |check, row| check.delivery(row)),
        (deliveries::REDACTION, |check, row| check.redaction(row)),
        (deliveries::LEASES, |check, row| check.lease(row)),
        // The payments come before: their postings are summed up by then.
        (sums::TOTALS, |check, row| check.total(row)),
        (days::DAYS, |check, row| check.day(row)),
        (sums::BLOCK_SUMS, |check, row| check.block_sum(row)),
    ];
    let mut check =
        Check { snapshot, progress, checked: Checked::default(), money: BTreeMap::new(), days: BTreeMap::new() };
    for (sql, check_row) in TABLES {
        if sql == deliveries::LEASES && !snapshot.has_leases() {
            continue;
        }
        for row in snapshot.rows(sql)? {
            check_row(&mut check, &row?)?;
        }
    }
    check.missing_totals();
    check.missing_days();
    Ok(check.checked)
}

impl Check<'_> {
    /// Counts rows that were read.
    fn read(&mut self, rows: usize) {
        self.checked.records += rows as u64;
        (self.progress)(self.checked.records);
    }

    fn find(&mut self, key: &str, what: impl Display) {
        self.checked.findings.push(Finding { record: key.escape_debug().to_string(), what: what.to_string() });
    }

    fn expect(&mut self, holds: bool, key: &str, what: impl Display) {
        if !holds {
            self.find(key, what);
        }
    }

    /// A column equals what the body says.
    fn column<T: PartialEq + fmt::Debug>(&mut self, key: &str, name: &str, stored: &T, expected: &T) {
        let what = format_args!("has {stored:?} in its column {name}, and its body says {expected:?}");
        self.expect(stored == expected, key, what);
    }

    /// A sum equals what the rows come to. `None` is a sum that is not stored.
    fn sum(&mut self, key: &str, stored: Option<i128>, expected: i128) {
        match stored {
            Some(stored) if stored != expected => {
                self.find(key, format_args!("is stored as {stored}, and the records come to {expected}"));
            }
            None if expected != 0 => {
                self.find(key, format_args!("is missing, and the records come to {expected}"));
            }
            _ => {}
        }
    }

    /// What was read from a row, unless it is damaged.
    fn readable<T>(&mut self, key: &str, read: Result<T, impl Into<LoadError>>) -> Result<Option<T>> {
        match read.map_err(Into::into) {
            Ok(read) => Ok(Some(read)),
            Err(LoadError::Store(StoreError::Corrupt { what, .. })) => {
                self.find(key, format_args!("cannot be read: {what}"));
                Ok(None)
            }
            Err(LoadError::Store(error)) => Err(error),
            Err(LoadError::Database(error)) => Err(store_error(&error)),
        }
    }

    fn is_there(&self, sql: &'static str, key: &(dyn ToSql + Sync)) -> Result<bool> {
        Ok(!self.snapshot.query(sql, &[key])?.is_empty())
    }
}

/// Whether a payment's body has an event. An unreadable body is reported with its payment.
fn has_event(body: Option<&str>, id: &EventId) -> bool {
    let payment = body.and_then(|body| payment_body("", body).ok());
    payment.is_some_and(|(_, events)| events.iter().any(|event| event.id == *id))
}
