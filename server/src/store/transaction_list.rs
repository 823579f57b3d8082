//! The list of what has moved a scope's balance, in the order in which it became durable.

use payments_core::{EventId, PaymentId, Timestamp};

use super::EventsFrom;
use crate::domain::MoneyMove;

/// An entry of the list: the event of a change with postings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransactionEntry {
    pub(crate) event: EventId,
    pub(crate) payment: PaymentId,
    pub(crate) money: MoneyMove,
    /// The merchant's balance in the money's currency after it, in minor units.
    pub(crate) balance_minor: i128,
}

/// Where a part of the list begins, which goes on to older entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransactionsFrom {
    /// With the last entry.
    Newest,
    /// With the entry of this event.
    Event(EventId),
    /// Not after the last entry that happened before this time. It may begin up to some minutes later.
    Before(Timestamp),
}

impl TransactionsFrom {
    /// The time in the id of an entry after which no entry of the list happened before a time.
    pub(crate) fn margin(time: Timestamp) -> Timestamp {
        time.plus_millis(EventsFrom::COMMITTED_WITHIN_MILLIS)
    }
}
