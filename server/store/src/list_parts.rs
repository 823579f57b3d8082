//! Which part of a list to read, and the entries of lists that are no records.
//!
//! A list stands in the order of its commits, which is nearly that of the times: servers' clocks differ.

use payments_core::{DeliveryId, EventId, EventKind, PaymentId, Status, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::{Lookup, MoneyMove};

/// How much earlier or later than its neighbours in a list a record may have been made.
const COMMITTED_WITHIN_MILLIS: u32 = 60_000;

/// A time before which a list has nothing that was made at `time` or later.
pub fn earliest_in_list(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millis() - i64::from(COMMITTED_WITHIN_MILLIS)).unwrap_or(time)
}

/// A time from which on a list has nothing that was made before `time`.
pub(super) fn latest_in_list(time: Timestamp) -> Timestamp {
    time.plus_millis(COMMITTED_WITHIN_MILLIS)
}

/// Which payments of a scope a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentSource {
    All,
    Status(Status),
    /// Those that are found by a value.
    Lookup(Lookup),
}

/// A part of a list of payments, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaymentsFrom {
    /// Only payments after this one of the scope, which are older.
    pub after: Option<PaymentId>,
    /// No payment that was created at this time or later is left out. Some earlier ones may be there.
    pub created_after: Option<Timestamp>,
    /// No payment that was created before this time is left out. Some later ones may be there.
    pub created_before: Option<Timestamp>,
}

/// An entry of the list of a scope's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    pub id: EventId,
    pub kind: EventKind,
    /// Its payment, which holds it.
    pub payment: PaymentId,
}

/// Where a part of the list of a scope's events begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    Beginning,
    After(EventId),
    /// Not later than the first event that happened at this time or later. It may begin up to some minutes earlier.
    Time(Timestamp),
}

/// An entry of the list of what has moved a scope's balance: the event of a change with postings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionEntry {
    pub event: EventId,
    pub payment: PaymentId,
    pub money: MoneyMove,
    /// The merchant's balance in the money's currency after it, in minor units.
    pub balance_minor: i128,
}

/// Where a part of the list of transactions begins, which goes on to older entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionsFrom {
    Newest,
    Event(EventId),
    /// Not after the last entry that happened before this time. It may begin up to some minutes later.
    Before(Timestamp),
}

/// Where a part of the list of the deliveries to an endpoint begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveriesFrom {
    /// Not later than the first delivery that was made at this time or later. It may begin up to some minutes earlier.
    pub since: Timestamp,
    pub after: Option<DeliveryId>,
}

impl DeliveriesFrom {
    /// The earliest time in an id of the part.
    pub fn earliest(&self) -> Timestamp {
        earliest_in_list(self.after.as_ref().and_then(DeliveryId::created_at).unwrap_or(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_list_has_what_was_committed_a_moment_later_or_earlier() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000).unwrap();
        let margin = i64::from(COMMITTED_WITHIN_MILLIS) / 1_000;
        assert!(margin >= 60);
        assert_eq!(earliest_in_list(at(1_000)), at(1_000 - margin));
        assert_eq!(latest_in_list(at(1_000)), at(1_000 + margin));
    }
}
