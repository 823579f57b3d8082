//! Reading: the same for everyone, and for a change that is being made.

use std::{borrow::Cow, ops::RangeBounds};

use crate::{error::TreeError, key_range::KeyRange, merge::Entry};

/// Entries in the order of their keys, or in reverse.
///
/// They are no snapshot: what is committed while they are read may appear among them, and a part of a batch without the
/// rest. A key appears once at most. What was committed before they were asked for is there, or what has replaced it.
pub struct Entries(Box<dyn Iterator<Item = Result<Entry, TreeError>> + Send>);

impl Entries {
    pub(crate) fn new(entries: Option<impl Iterator<Item = Result<Entry, TreeError>> + Send + 'static>) -> Self {
        Self(Box::new(entries.into_iter().flatten()))
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, TreeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

/// Reads keys and values: what is durable, and in a [`View`](crate::View) also what its change and those before it in the
/// batch write.
pub trait Read {
    /// The value under a key.
    ///
    /// # Errors
    /// Where the value is damaged or the tree has failed.
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>, TreeError>;

    /// The entries of a range, in the order of their keys.
    fn range(&self, keys: impl RangeBounds<Vec<u8>>) -> Entries;

    /// The entries of a range, the last first.
    fn range_rev(&self, keys: impl RangeBounds<Vec<u8>>) -> Entries;

    /// The entries whose keys have a prefix.
    fn prefix(&self, prefix: &[u8]) -> Entries {
        self.range(KeyRange::with_prefix(prefix, None))
    }

    /// The entries whose keys have a prefix, the last first.
    fn prefix_rev(&self, prefix: &[u8]) -> Entries {
        self.range_rev(KeyRange::with_prefix(prefix, None))
    }

    /// The entries whose keys have a prefix and come strictly after `after`.
    fn prefix_after(&self, prefix: &[u8], after: &[u8]) -> Entries {
        self.range(KeyRange::with_prefix(prefix, Some(after)))
    }
}
