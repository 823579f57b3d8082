//! Where a list reaches a time.

use payments_core::{EventId, Timestamp};

use super::{
    codec::Records,
    keys::{self, List},
    packed,
};
use crate::store::StoreError;

/// The number of the first leaf of a list that begins at a time or later, of the leaves with the first `count` entries. Each
/// entry begins with an id, which tells its time.
pub(super) fn first_leaf_from(
    records: &impl Records,
    list: &List,
    count: u64,
    time: Timestamp,
) -> Result<u64, StoreError> {
    let (mut low, mut high) = (0, count.div_ceil(keys::LEAF));
    while low < high {
        let middle = u64::midpoint(low, high);
        let leaf = records.bytes(&list.leaf(middle * keys::LEAF))?;
        let first = packed::lines(&leaf).next().and_then(|line| line.split(' ').next());
        // All kinds of ids tell their times alike.
        let begins_at = first.and_then(|id| id.parse::<EventId>().ok()?.created_at());
        if begins_at.is_some_and(|begins_at| begins_at < time) { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}
