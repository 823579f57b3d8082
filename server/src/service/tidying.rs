//! Forgetting what no longer counts.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{Refused, Service};
use crate::domain::KeptResponse;
use crate::store::{Change, Write};

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
            if let Err(error) = self.forget_responses().await {
                tracing::error!(%error, "old responses could not be forgotten; it is tried again");
            }
            if let Err(error) = self.prune_claims().await {
                tracing::error!(%error, "claims on idempotency keys could not be pruned; it is tried again");
            }
            if let Some(days) = self.settings.delivery_body_days
                && let Err(error) = self.forget_delivery_bodies(days).await
            {
                tracing::error!(%error, "old deliveries could not be forgotten; it is tried again");
            }
        }
    }

    async fn forget_responses(&self) -> Result<(), Refused> {
        let kept_before = KeptResponse::stale_before(self.ambient.now());
        while self.store.has_response_before(kept_before).await? {
            let forget = Write::ResponsesForgotten { kept_before, at_most: AT_A_TIME };
            self.store.commit(Change::of(forget)).await?;
        }
        Ok(())
    }

    async fn prune_claims(&self) -> Result<(), Refused> {
        let ended_before = self.ambient.now();
        while self.store.has_claim_ended_before(ended_before).await? {
            self.store.commit(Change::of(Write::ClaimsPruned { ended_before, at_most: AT_A_TIME })).await?;
        }
        Ok(())
    }

    async fn forget_delivery_bodies(&self, days: u16) -> Result<(), Refused> {
        let before = self.ambient.now().as_millis() - i64::from(days) * DAY_MILLIS;
        let Ok(created_before) = Timestamp::from_millis(before) else { return Ok(()) };
        while self.store.has_delivery_body_before(created_before).await? {
            let forget = Write::DeliveryBodiesForgotten { created_before, at_most: BODIES_AT_A_TIME };
            self.store.commit(Change::of(forget)).await?;
        }
        Ok(())
    }
}
