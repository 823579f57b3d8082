//! What a scan is asked for, and what it returns.

use std::ops::Bound;

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
