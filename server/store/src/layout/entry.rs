//! Entries follow from records.
//!
//! One function for each kind of record says which entries it has. A commit applies the difference between the entries before
//! and after it, `check` compares them, and a migration builds them again.

use payments_core::{Currency, Day, Status, Timestamp, WebhookId};

use super::{
    keys::{self, TimeIndex},
    list::List,
};
use crate::domain::{DayTotals, Scope};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A value under a key of its own.
    Key { key: Vec<u8>, value: Vec<u8> },
    /// An owner under a time in an index.
    At { index: TimeIndex, time: Timestamp, owner: Vec<u8> },
    /// An owner under a key that several may share.
    Owner { key: Vec<u8>, owner: Vec<u8> },
    /// An addition to a sum of a head.
    Sum { head: Vec<u8>, name: String, amount: i128 },
    /// The item at a position of a list. It is never removed.
    Item { list: List, position: u64, item: Vec<u8> },
    /// The bit of a payment, at its position, in the bitmap of its status.
    Bit { scope: Scope, status: Status, position: u64 },
    /// The position of a payment in the list of a lookup value. Only an erasure of the customer's data removes it.
    Found { list: List, position: u64 },
    /// An addition to the totals of a day, counted from 1970. It is never removed.
    Day { scope: Scope, currency: Currency, day: u32, added: DayTotals },
    /// A pending delivery in the lane of an endpoint.
    Lane { scope: Scope, endpoint: WebhookId },
}

pub(super) trait Record {
    fn key(&self) -> Vec<u8>;
    fn text(&self) -> Result<Vec<u8>, serde_json::Error>;
    fn entries(&self) -> Vec<Entry>;
}

/// The key of an owner's entry in an index. Some keys are shared.
pub(super) fn key_at(index: TimeIndex, time: Timestamp, owner: &[u8], packs: bool) -> Vec<u8> {
    let mut key = index.at(time);
    if !(packs && index.is_shared()) {
        key.extend_from_slice(owner);
    }
    key
}

/// The owners that a key of an index names.
pub(super) fn owners_at(index: TimeIndex, key: &[u8], value: &[u8]) -> Vec<Vec<u8>> {
    let shared = index.at(Timestamp::UNIX_EPOCH).len();
    match key.get(shared..) {
        Some(owner) if !owner.is_empty() => vec![owner.to_vec()],
        _ => super::codec::items(value).map(<[u8]>::to_vec).collect(),
    }
}

pub(super) fn key_alone(key: Vec<u8>) -> Entry {
    Entry::Key { key, value: Vec::new() }
}

/// Adds one to a count over all developers of a cell.
pub(super) fn gauge(name: String) -> Entry {
    Entry::Sum { head: keys::gauges(), name, amount: 1 }
}

const MILLIS_A_DAY: i64 = 24 * 60 * 60 * 1000;

/// The number of the day of a time, counted from 1970.
pub(super) fn day_number(time: Timestamp) -> u32 {
    u32::try_from(time.as_millis() / MILLIS_A_DAY).unwrap_or_default()
}

pub(super) fn day_of(number: u32) -> Day {
    Day::of(Timestamp::from_millis(i64::from(number) * MILLIS_A_DAY).unwrap_or(Timestamp::UNIX_EPOCH))
}
