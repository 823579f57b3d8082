//! A whole store as of one moment: what `check` and `export` read.

use payments_core::Posting;
use serde::Serialize;

use super::{Migration, StoreError, bytes::KeyValue};
use crate::domain::{Outgoing, Session};

pub(crate) type Each<'s, T> = Box<dyn Iterator<Item = Result<T, StoreError>> + 's>;

/// A store as of one moment. Its methods block: call them on a thread that runs no tasks.
pub(crate) trait Snapshot {
    /// Counts the records, for a progress bar.
    fn records(&self) -> Result<u64, StoreError>;
    /// Checks every record. Calls `progress` with the number of records read.
    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError>;
    /// Every payment with its session, in the order of their ids.
    fn each_session(&self) -> Each<'_, Session>;
    /// Every payment with its session and the postings of each of its changes, oldest first, in the order of their ids.
    fn each_session_with_postings(&self) -> Each<'_, (Session, Vec<Vec<Posting>>)>;
    fn each_delivery(&self) -> Each<'_, Outgoing>;
    /// The records of a kind, in the order of what stands behind the kind in their keys.
    fn each(&self, kind: &'static str) -> Each<'_, KeyValue>;
    /// The first values of a slot that has some, strictly after a key, at most `at_most`, in the order of their keys.
    fn values_after(&self, key: Option<&[u8]>, at_most: usize) -> Result<Vec<KeyValue>, StoreError>;
    fn migration(&self) -> Result<Option<Migration>, StoreError>;
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Checked {
    pub(crate) records: u64,
    pub(crate) payments: u64,
    /// The faults; none in a sound store.
    pub(crate) findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The record's key, with other bytes than text escaped.
    pub(crate) record: String,
    pub(crate) what: String,
}
