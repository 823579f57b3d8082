//! The reads that a database and a change's view have in common.

use std::{
    borrow::Cow,
    ops::{Bound, RangeBounds},
};

use crate::error::TreeError;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Entries in key order, or in reverse key order.
///
/// A scan is not a snapshot: a batch that is committed during the scan may appear in part. Each key appears at most once. An
/// entry that was committed before the scan began appears, or the value that replaced it.
pub type Entries = Box<dyn Iterator<Item = Result<Entry, TreeError>> + Send>;

/// The lower and the upper bound of a scan's keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Reads durable keys and values. A [`View`](crate::View) also reads the writes of its batch.
pub trait Read {
    /// Returns the value under a key.
    ///
    /// # Errors
    /// If the value is damaged or the tree has failed.
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, TreeError>;

    /// Returns the entries of a key range, in key order or reversed.
    fn scan(&self, keys: KeyRange, is_reversed: bool) -> Entries;

    /// Returns the entries of a range in key order.
    fn range(&self, keys: impl RangeBounds<Vec<u8>>) -> Entries {
        self.scan((keys.start_bound().cloned(), keys.end_bound().cloned()), false)
    }

    /// Returns the entries whose keys have this prefix.
    fn prefix(&self, prefix: &[u8]) -> Entries {
        self.scan((Bound::Included(prefix.to_vec()), after_prefix(prefix)), false)
    }
}

/// Returns the upper bound of the keys with this prefix.
pub(crate) fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    // Increments the last byte that is not 0xff and drops the bytes after it.
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| &prefix[..=last]);
    match kept.and_then(|kept| kept.split_last()) {
        Some((last, before)) => Bound::Excluded([before, &[last + 1]].concat()),
        None => Bound::Unbounded,
    }
}
