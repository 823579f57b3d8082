//! Prunes idempotency records and redacts old deliveries.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::Service;
use crate::{domain::KeptResponse, store::Prunable};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum records per change, so that payments do not wait long behind it.
const BATCH_SIZE: usize = 256;
/// Maximum deliveries per change. Deliveries are longer.
const DELIVERY_BATCH_SIZE: usize = 32;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl Service {
    /// Prunes stored responses after 24 hours and key claims after their lease, and redacts deliveries after
    /// `delivery_body_days`. Runs forever.
    pub(crate) async fn tidy(self: Arc<Self>) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = self.ambient.now();
            self.prune(Prunable::StoredResponses, KeptResponse::stale_before(now), BATCH_SIZE).await;
            self.prune(Prunable::KeyClaims, now, BATCH_SIZE).await;
            let bodies_before = self.settings.delivery_body_days.and_then(|days| days_before(days, now));
            if let Some(before) = bodies_before {
                self.prune(Prunable::DeliveryBodies, before, DELIVERY_BATCH_SIZE).await;
            }
        }
    }

    /// Prunes all records older than `before`, in batches.
    async fn prune(&self, what: Prunable, before: Timestamp, batch_size: usize) {
        loop {
            match self.store.prune(what, before, batch_size).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, ?what, "could not prune old records; trying again");
                    return;
                }
            }
        }
    }
}

fn days_before(days: u16, now: Timestamp) -> Option<Timestamp> {
    Timestamp::from_millis(now.as_millis() - i64::from(days) * DAY_MILLIS).ok()
}
