//! Forgetting what no longer counts.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::Service;
use crate::{domain::KeptResponse, store::Prunable};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(10);
/// How much is forgotten in one change, so that no payment waits long behind it.
const AT_A_TIME: usize = 256;
/// The same of deliveries, which are longer.
const BODIES_AT_A_TIME: usize = 32;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

impl Service {
    /// Forgets the responses of idempotency keys after 24 hours, claims on them whose lease has ended, and the bodies of
    /// deliveries after the days that the operator says, for as long as it is polled.
    pub(crate) async fn tidy(self: Arc<Self>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = self.ambient.now();
            self.prune(Prunable::StoredResponses, KeptResponse::stale_before(now), AT_A_TIME).await;
            self.prune(Prunable::KeyClaims, now, AT_A_TIME).await;
            let bodies_before = self.settings.delivery_body_days.and_then(|days| days_before(days, now));
            if let Some(before) = bodies_before {
                self.prune(Prunable::DeliveryBodies, before, BODIES_AT_A_TIME).await;
            }
        }
    }

    /// Drops all that is older, in pieces.
    async fn prune(&self, what: Prunable, before: Timestamp, at_a_time: usize) {
        loop {
            match self.store.prune(what, before, at_a_time).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, ?what, "old records could not be dropped; it is tried again");
                    return;
                }
            }
        }
    }
}

fn days_before(days: u16, now: Timestamp) -> Option<Timestamp> {
    Timestamp::from_millis(now.as_millis() - i64::from(days) * DAY_MILLIS).ok()
}
