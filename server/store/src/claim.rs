//! Work that waits in a store, and the claims of servers on it.

use payments_core::{DeliveryId, EventId, PaymentId, Slot, Timestamp, WebhookId};

use crate::domain::lease_runs;

/// How long the claims of a crashed server last.
pub const LEASE_SECONDS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Events whose deliveries are not all made, oldest first. While an event is claimed, later events of its payment are not
    /// handed out, even to the same server: it may have lost the answer to its claim.
    FanOut,
    /// Endpoints with deliveries in their outbox.
    Lanes,
    /// Deliveries whose next attempt is due, the earliest first.
    Retries,
    /// Open sessions that have expired, the earliest first.
    Expiry,
    /// Payments whose next query at the gateway is due, the earliest first.
    GatewayChecks,
}

impl Queue {
    /// The queue's name in keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::FanOut => "fan-out",
            Self::Lanes => "lane",
            Self::Retries => "retry",
            Self::Expiry => "expiry",
            Self::GatewayChecks => "gateway-check",
        }
    }

    pub fn work(self, id: &str) -> Option<Work> {
        match self {
            Self::FanOut => id.parse().ok().map(Work::FanOut),
            Self::Lanes => id.parse().ok().map(Work::Lane),
            Self::Retries => id.parse().ok().map(Work::Retry),
            Self::Expiry => id.parse().ok().map(Work::Expiry),
            Self::GatewayChecks => id.parse().ok().map(Work::GatewayCheck),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Work {
    /// Make the deliveries of an event.
    FanOut(EventId),
    /// Make the requests of an endpoint's pending deliveries.
    Lane(WebhookId),
    /// Return a delivery to its endpoint's outbox.
    Retry(DeliveryId),
    Expiry(PaymentId),
    GatewayCheck(PaymentId),
}

impl Work {
    fn parts(&self) -> (Queue, &str, Slot) {
        match self {
            Self::FanOut(id) => (Queue::FanOut, id.as_str(), id.slot()),
            Self::Lane(id) => (Queue::Lanes, id.as_str(), id.slot()),
            Self::Retry(id) => (Queue::Retries, id.as_str(), id.slot()),
            Self::Expiry(id) => (Queue::Expiry, id.as_str(), id.slot()),
            Self::GatewayCheck(id) => (Queue::GatewayChecks, id.as_str(), id.slot()),
        }
    }

    pub fn queue(&self) -> Queue {
        self.parts().0
    }

    /// The id of the event, endpoint, delivery or payment.
    pub fn id(&self) -> &str {
        self.parts().1
    }

    /// The slot of the developer whose work it is.
    pub fn slot(&self) -> Slot {
        self.parts().2
    }
}

/// A server's right to do one piece of work. The claim ends when it is released or when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub work: Work,
    /// A fencing token: two claims on the same work never have the same one.
    pub epoch: u64,
}

/// The time at which a claim is made, and the time at which it ends.
#[derive(Debug, Clone)]
pub struct Lease {
    pub now: Timestamp,
    /// When others may claim the work, if this server has neither released nor renewed its claim.
    pub until: Timestamp,
}

impl Lease {
    pub fn new(now: Timestamp, seconds: u32) -> Self {
        Self { now, until: now.plus_seconds(seconds) }
    }

    /// Whether a claim that ends at `until` still counts when this lease begins. All leases have the same length.
    pub fn finds_running(&self, until: Timestamp) -> bool {
        lease_runs(until, self.until.as_millis() - self.now.as_millis(), self.now)
    }
}

/// The time for which a piece of timed work is planned, and the work.
pub type Planned = (Timestamp, Work);
