//! Maintenance: check, export, back up.

use std::path::PathBuf;

use async_trait::async_trait;
use payments_core::{PaymentId, Posting};
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::domain::{Outgoing, Session};

/// Records, one by one.
pub(crate) type Each<'s, T> = Box<dyn Iterator<Item = Result<T, StoreError>> + 's>;

/// The maintenance that an engine offers.
#[async_trait]
pub(crate) trait Maintenance: Send + Sync {
    /// Copies the store, as of one moment, into a directory that is missing or empty. Commits do not wait for it.
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, MaintenanceError>;
    /// Keeps the journal after this change, and drops what is before. The next call replaces this one.
    fn keep_journal_after(&self, number: u64);
    /// Checks every record. Nobody may write to the store meanwhile. Calls `progress` with the number of records read.
    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError>;
    /// Counts the records, for a progress bar.
    fn records(&self) -> u64;
    /// Every payment with its session, in the order of their ids.
    fn each_session(&self) -> Each<'_, Session>;
    /// Every delivery, in the order of their ids.
    fn each_delivery(&self) -> Each<'_, Outgoing>;
    /// The postings of each change of a payment, oldest first.
    fn postings_of(&self, id: &PaymentId) -> Result<Vec<Vec<Posting>>, StoreError>;
}

/// Why maintenance failed: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MaintenanceError(pub(crate) String);

/// A backup that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackedUp {
    pub(crate) directory: PathBuf,
    /// How many records it holds.
    pub(crate) records: u64,
    /// The number of the change before the first one that it holds as a journal entry.
    pub(crate) from: u64,
    /// The number of the last change that it holds.
    pub(crate) to: u64,
}

/// The result of a check.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Checked {
    /// How many records were read.
    pub(crate) records: u64,
    /// How many of them are payments.
    pub(crate) payments: u64,
    /// The faults; none in a sound store.
    pub(crate) findings: Vec<Finding>,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The record's key, with other bytes than text escaped.
    pub(crate) record: String,
    /// What is wrong with it.
    pub(crate) what: String,
}
