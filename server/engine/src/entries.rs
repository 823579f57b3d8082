//! The request and the result of a scan.

use std::ops::Bound;

use crate::error::TreeError;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Entries in key order, or in reverse key order.
///
/// A scan is not a snapshot: it may show part of a batch that is committed during the scan. Each key appears at most once.
/// For an entry committed before the scan began, that entry or its later value appears.
pub type Entries = Box<dyn Iterator<Item = Result<Entry, TreeError>> + Send>;

/// The lower and the upper bound of a scan's keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);
