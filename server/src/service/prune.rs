//! Prunes idempotency records and the audit log, and redacts old deliveries.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use payments_core::Timestamp;

use super::{Service, days_before};
use crate::{domain::StoredResponse, process::poll::poll, store::Prunable};

const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The time between two sweeps over the payments.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Maximum records per change, so that payments do not wait long behind it.
const BATCH_SIZE: usize = 256;
/// Maximum deliveries per change. Deliveries are longer.
const DELIVERY_BATCH_SIZE: usize = 32;
const ROUNDS_AN_HOUR: u32 = 360;

impl Service {
    /// Prunes stored responses after 24 hours and key claims after their lease, and redacts deliveries after
    /// `delivery_body_days`, erases customers' data after `customer_data_days`, and drops logged requests after `request_log_days`
    /// and entries of the audit log after `audit_days`. Runs forever.
    pub async fn prune(self: Arc<Self>) {
        let round = AtomicU32::new(0);
        let customers = poll(SWEEP_INTERVAL, || async {
            if let Some(days) = self.settings.retention.customer_data_days {
                self.erase_old_customers(days_before(self.ambient.now(), days)).await;
            }
        });
        let others = poll(POLL_INTERVAL, || async {
            let now = self.ambient.now();
            self.prune_older(Prunable::StoredResponses, StoredResponse::stale_before(now), BATCH_SIZE).await;
            self.prune_older(Prunable::KeyClaims, now, BATCH_SIZE).await;
            if let Some(days) = self.settings.delivery_body_days {
                self.prune_older(Prunable::DeliveryBodies, days_before(now, days), DELIVERY_BATCH_SIZE).await;
            }
            if let Some(days) = self.settings.audit_days {
                self.prune_older(Prunable::Audit, days_before(now, days), BATCH_SIZE).await;
            }
            let retention = self.settings.retention;
            if round.fetch_add(1, Ordering::Relaxed).is_multiple_of(ROUNDS_AN_HOUR)
                && let Err(error) = self.drop_old_requests(retention.oldest_request(now)).await
            {
                tracing::error!(%error, "could not drop old logged requests; trying again in an hour");
            }
        });
        tokio::join!(customers, others);
    }

    /// Prunes all records older than `before`, in batches.
    async fn prune_older(&self, what: Prunable, before: Timestamp, batch_size: usize) {
        loop {
            match self.store.prune(what, before, batch_size).await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => return tracing::error!(%error, ?what, "could not prune old records; trying again"),
            }
        }
    }
}
