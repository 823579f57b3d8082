//! Work that waits in a store, and who does it.

use payments_core::{EventId, PaymentId, Timestamp, WebhookId};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Events whose deliveries are not all made, oldest first. Of two events of one payment the later one is not handed out
    /// while another server holds the earlier one.
    FanOut,
    /// Endpoints with pending deliveries.
    Lanes,
    /// Open sessions whose life has ended, those that ended first before the others.
    Expiry,
    /// Payments whose gateway is to be asked by now, those that are due first before the others.
    GatewayChecks,
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// Make the deliveries of an event.
    FanOut(EventId),
    /// Make the requests of an endpoint's pending deliveries.
    Lane(WebhookId),
    /// Expire a session.
    Expiry(PaymentId),
    /// Ask a payment's gateway.
    GatewayCheck(PaymentId),
}

/// A server's right to do one piece of work. It ends by its release or with its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) work: Work,
    /// A fencing token: no two claims on the same work have the same.
    pub(crate) epoch: u64,
}

/// Who claims, and until when.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) server: ServerId,
    pub(crate) now: Timestamp,
    /// When others may claim the work, if this server has neither released nor renewed its claim.
    pub(crate) until: Timestamp,
}

impl Lease {
    pub(crate) fn new(server: ServerId, now: Timestamp, seconds: u32) -> Self {
        Self { server, now, until: now.plus_seconds(seconds) }
    }
}

/// Tells one run of a server from every other, by random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerId(pub(crate) [u8; 16]);
