//! The deliveries to an endpoint from a time on.

use payments_core::{DeliveryId, Timestamp};

use super::EventsFrom;

/// Where a part of the list begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveriesFrom {
    /// Not later than the first delivery that was made at this time or later. It may begin up to some minutes earlier.
    pub(crate) since: Timestamp,
    /// Strictly after this one.
    pub(crate) after: Option<DeliveryId>,
}

impl DeliveriesFrom {
    /// The earliest time in an id from which the list is read: as events do, deliveries stand in nearly the order of their times.
    pub(crate) fn earliest(&self) -> Timestamp {
        EventsFrom::margin(self.after.as_ref().and_then(DeliveryId::created_at).unwrap_or(self.since))
    }
}
