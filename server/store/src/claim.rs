//! Work that waits in a store, and who does it.

use payments_core::{DeliveryId, EventId, PaymentId, Slot, Timestamp, WebhookId};

use crate::domain::lease_runs;

/// How long the claims of a crashed server last.
pub const LEASE_SECONDS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Events whose deliveries are not all made, oldest first. Of two events of one payment the later one is not handed out
    /// while the earlier one is claimed, even by the same server: it may have lost that claim's answer.
    FanOut,
    /// Endpoints with deliveries in their outbox.
    Lanes,
    /// Deliveries whose next attempt is due by now, those that are due first before the others.
    Retries,
    /// Open sessions whose life has ended, those that ended first before the others.
    Expiry,
    /// Payments whose gateway is to be asked by now, those that are due first before the others.
    GatewayChecks,
}

impl Queue {
    /// Its name in keys.
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

    /// The id of what it is done to.
    pub fn id(&self) -> &str {
        self.parts().1
    }

    /// The slot of the developer whose work it is.
    pub fn slot(&self) -> Slot {
        self.parts().2
    }
}

/// A server's right to do one piece of work. It ends by its release or with its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub work: Work,
    /// A fencing token: no two claims on the same work have the same.
    pub epoch: u64,
}

/// Since when and until when work is claimed.
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

    /// Whether a claim until a time counts when this lease begins. All leases have one length.
    pub fn finds_running(&self, until: Timestamp) -> bool {
        lease_runs(until, self.until.as_millis() - self.now.as_millis(), self.now)
    }
}

/// A piece of work of a queue by time, and the time for which it is planned.
pub type Planned = (Timestamp, Work);
