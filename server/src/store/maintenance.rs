//! Looking after a store.

use std::path::PathBuf;

use async_trait::async_trait;
use payments_core::{PaymentId, Posting};
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::domain::{Outgoing, Session};

/// Records one by one.
pub(crate) type Each<'s, T> = Box<dyn Iterator<Item = Result<T, StoreError>> + 's>;

/// What an operator does with a store, as far as its engine offers it.
#[async_trait]
pub(crate) trait Maintenance: Send + Sync {
    /// Copies the whole store, as it is at one moment, into a directory that is missing or empty. Nothing waits for it.
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, MaintenanceError>;
    /// Keeps what leads from a backup to the present: the changes after this one. Until it is said again.
    fn keep_journal_after(&self, number: u64);
    /// Proves what must always hold of the whole store, which nobody may write to meanwhile. `progress` is told how many
    /// records have been read.
    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError>;
    /// How many records there are. It counts them, so it is for a progress bar only.
    fn records(&self) -> u64;
    /// Every payment with its session, in the order of their ids.
    fn each_session(&self) -> Each<'_, Session>;
    /// Every delivery, in the order of their ids.
    fn each_delivery(&self) -> Each<'_, Outgoing>;
    /// What each change of a payment posted, oldest first.
    fn postings_of(&self, id: &PaymentId) -> Result<Vec<Vec<Posting>>, StoreError>;
}

/// Why a store could not be looked after: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MaintenanceError(pub(crate) String);

/// A backup that was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackedUp {
    pub(crate) directory: PathBuf,
    /// How many records it holds.
    pub(crate) records: u64,
    /// The number of the change before those that it holds as changes.
    pub(crate) from: u64,
    /// The number of the last change that it holds.
    pub(crate) to: u64,
}

/// What came of a check.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Checked {
    /// How many records were read.
    pub(crate) records: u64,
    /// How many of them are payments.
    pub(crate) payments: u64,
    /// What does not hold; nothing in a sound store.
    pub(crate) findings: Vec<Finding>,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The record it was found at; bytes that are no text are escaped.
    pub(crate) record: String,
    /// What is wrong with it.
    pub(crate) what: String,
}
