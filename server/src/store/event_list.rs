//! The list of a scope's events, in the order in which they became durable.

use payments_core::{EventId, EventKind, PaymentId, Timestamp};
use serde::{Deserialize, Serialize};

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventEntry {
    pub(crate) id: EventId,
    pub(crate) kind: EventKind,
    /// Its payment, which holds it.
    pub(crate) payment: PaymentId,
}

/// Where a part of the list begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventsFrom {
    /// At the oldest event.
    Beginning,
    /// Strictly after this one.
    After(EventId),
    /// Not later than the first event that happened at this time or later. It may begin up to some minutes earlier.
    Time(Timestamp),
}

impl EventsFrom {
    /// How much earlier than its commit an event may have happened, by whatever server's clock.
    pub(crate) const COMMITTED_WITHIN_MILLIS: u32 = 60_000;

    /// The earliest time in the id of an event from which a list is read that begins at a time: events stand in the order of
    /// their commits, which is nearly that of their times.
    pub(crate) fn margin(time: Timestamp) -> Timestamp {
        Timestamp::from_millis(time.as_millis() - i64::from(Self::COMMITTED_WITHIN_MILLIS)).unwrap_or(time)
    }
}
