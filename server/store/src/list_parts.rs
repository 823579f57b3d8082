//! The part of a list to read, and the entries of the lists of events and transactions.
//!
//! A list has the order of its commits. Its times are only nearly in order, because the clocks of servers differ.

use payments_core::{DeliveryId, EventId, EventKind, PaymentId, Status, Timestamp, TransactionId};
use serde::{Deserialize, Serialize};

use crate::domain::{Lookup, MoneyMove, Subject};

/// How far the times of neighbours in a list may be out of order.
const COMMITTED_WITHIN_MILLIS: u32 = 60_000;

/// Returns an earlier time. No record of `time` or later comes before the first record of that earlier time.
pub fn earliest_in_list(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.as_millis() - i64::from(COMMITTED_WITHIN_MILLIS)).unwrap_or(time)
}

/// Returns a later time. No record from before `time` comes after the first record of that later time.
pub(super) fn latest_in_list(time: Timestamp) -> Timestamp {
    time.plus_millis(COMMITTED_WITHIN_MILLIS)
}

/// Which payments of a scope a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentSource {
    All,
    Status(Status),
    /// The payments with this value.
    Lookup(Lookup),
}

/// A part of a list of payments, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaymentsFrom {
    /// Only payments after this payment of the scope: older ones.
    pub after: Option<PaymentId>,
    /// Only payments created at this time or later, and possibly some slightly older ones.
    pub created_after: Option<Timestamp>,
    /// Only payments created before this time, and possibly some slightly newer ones.
    pub created_before: Option<Timestamp>,
}

/// An entry of the list of a scope's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    pub id: EventId,
    pub kind: EventKind,
}

/// Where a part of the list of a scope's events begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    Beginning,
    After(EventId),
    /// At the last event.
    Last,
    /// At the first event of this time or later, or up to some minutes earlier.
    Time(Timestamp),
}

/// An entry of the list of a scope's transactions: a booking that changed the merchant's balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionEntry {
    /// The booking's id; if it has an event, the event's with another prefix.
    pub id: TransactionId,
    pub subject: Subject,
    pub money: MoneyMove,
    /// The merchant's balance after the transaction, in minor units of its currency.
    pub balance_minor: i128,
}

/// Where a part of the list of transactions begins. It goes on to older entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionsFrom {
    Newest,
    Transaction(TransactionId),
    /// At the last entry before this time, or up to some minutes later.
    Before(Timestamp),
}

/// Where a part of the list of the deliveries to an endpoint begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveriesFrom {
    /// The part begins at the first delivery of this time or later, or up to some minutes earlier.
    pub since: Timestamp,
    pub after: Option<DeliveryId>,
}

impl DeliveriesFrom {
    /// The earliest time that an id of the part can have.
    pub fn earliest(&self) -> Timestamp {
        earliest_in_list(self.after.as_ref().and_then(DeliveryId::created_at).unwrap_or(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_by_time_includes_records_committed_a_minute_early_or_late() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000).unwrap();
        let margin = i64::from(COMMITTED_WITHIN_MILLIS) / 1_000;
        assert!(margin >= 60);
        assert_eq!(earliest_in_list(at(1_000)), at(1_000 - margin));
        assert_eq!(latest_in_list(at(1_000)), at(1_000 + margin));
    }
}
